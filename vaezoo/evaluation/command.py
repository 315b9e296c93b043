"""`vaezoo evaluate`: score checkpoints on their own or other data."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from jsonargparse import Namespace
from lightning.pytorch import LightningDataModule

from vaezoo.evaluation.codes_files import ReadTable, read_codes
from vaezoo.evaluation.report import score_table, tables_at, write_json, write_tables
from vaezoo.evaluation.scores import evaluate
from vaezoo.metrics.arguments import read_scores
from vaezoo.metrics.catalogue import METRICS
from vaezoo.metrics.functional.places import BINS
from vaezoo.metrics.given import evaluate as evaluate_codes
from vaezoo.metrics.scoring import Evaluation
from vaezoo.runs.additions import Additions, Track, add_tracking_option, is_tracked
from vaezoo.runs.data import RunData, require_fitting_images, split_data_options
from vaezoo.runs.folder import RunFolder, scores_of
from vaezoo.runs.loading import load
from vaezoo.runs.options import CommandParser, checkpoint_in
from vaezoo.text import printable


def run_evaluate(
    args: Sequence[str], data_class: type[LightningDataModule], read_table: ReadTable, track: Track
) -> None:
    """Score each checkpoint or file of codes, print one table, and leave `metrics.json` beside each.

    Args:
        args: Command line after `vaezoo evaluate`.
        data_class: Base of the datamodules to choose from.
        read_table: Reads tables of codes.
        track: Adds the scores of a checkpoint to its run on Weights & Biases.
    """
    own, data_args = split_data_options(args)
    options = _parser().parse_args(own)
    named = read_scores(options.metrics or ())
    for name, least in (("images", 1), ("resamples", 0), ("seed", 0)):
        if (value := options[name]) is not None and value < least:
            raise ValueError(f"--{name} must be {least} or more, not {value}")
    if bool(options.codes) == bool(options.ckpt_path):
        raise ValueError("give checkpoints by --ckpt_path, or files of codes by --codes")
    if options.codes:
        _run_codes(options, data_args, read_table)
        return
    paths = [Path(checkpoint_in(path)) for path in options.ckpt_path]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no checkpoint at {path}")
    tables_at(options.output)
    run_data, evaluations, pools = RunData(data_class, data_args), {}, {}
    additions: list[Additions] = []
    for path, label in zip(paths, _labels(paths), strict=True):
        data, settings = run_data.of(RunFolder.of(path))
        evaluations[label], pools[label], found = _evaluated(path, data, settings, options, _json_path(path, paths))
        additions += [found] if options.wandb and is_tracked(path) else []
    written = list(dict.fromkeys(_json_path(path, paths) for path in paths))
    _conclude(evaluations, pools, written, named, options.output)
    for found in additions:
        track(found)


def _run_codes(options: Namespace, data_args: Sequence[str], read_table: ReadTable) -> None:
    """Score files of codes instead of checkpoints."""
    for name in ("split", "latents"):
        if options[name] is not None:
            raise ValueError(f"--{name} is for checkpoints: a file of codes is scored as it is")
    if data_args:
        raise ValueError("--data is for checkpoints: a file of codes contains its factors")
    paths = [Path(path) for path in options.codes]
    files = {str(path): read_codes(path, read_table) for path in paths}
    tables_at(options.output)
    evaluations, pools, written = {}, {}, []
    chosen = {key: options[key] for key in ("metrics", "seed", "resamples")}
    chosen["skip"] = len(paths) > 1
    for path, (label, file) in zip(paths, files.items(), strict=True):
        try:
            bins = options.factor_bins if options.factor_bins is not None else file.factor_bins or BINS
            evaluations[label] = evaluate_codes(**{**file._asdict(), "factor_bins": bins}, **chosen)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        pools[label] = f"{len(file.codes):,} codes of {path}, seed {options.seed}"
        written.append(path.with_name(f"metrics_{path.stem}.json"))
        write_json(written[-1], evaluations[label], {"codes": path.name, "seed": options.seed})
    _conclude(evaluations, pools, written, read_scores(options.metrics or ()), options.output)


def _conclude(
    evaluations: dict[str, Evaluation],
    pools: dict[str, str],
    written: list[Path],
    named: Iterable[str],
    output: str | None,
) -> None:
    """Print one table of all, and write it where the user says; a score that fits none of several is an error."""
    if unfit := [name for name in named if not any(name in found.results for found in evaluations.values())]:
        reasons = {found.skipped[unfit[0]] for found in evaluations.values()}
        raise ValueError(f"{unfit[0]} does not fit: {'; '.join(sorted(reasons))}")
    print("\n".join(map(printable, dict.fromkeys(pools.values()))))
    print(score_table(evaluations))
    tables = tables_at(output)
    write_tables(tables, evaluations)
    notes = [*_left_out(evaluations), *(f"written: {path}" for path in (*written, *tables))]
    if len(evaluations) > 1 and not output:
        notes.append("--output NAME writes this table to NAME.csv and NAME.tex")
    print("\n".join(map(printable, notes)))


def _evaluated(
    path: Path, data: Any, settings: dict[str, Any], options: Namespace, target: Path
) -> tuple[Evaluation, str, Additions]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load(path).to(device if options.device == "auto" else options.device)
    require_fitting_images(path, model, data)
    split = options.split or data.evaluation_split
    found = evaluate(
        model,
        data,
        options.metrics,
        options.images,
        split,
        options.seed,
        options.resamples,
        options.latents,
        skip=len(options.ckpt_path) > 1,
    )
    record = {
        "checkpoint": path.name,
        "model": type(model).__name__,
        "step": int(model.step),
        "latents": options.latents or [name for name, group in model.latents.items() if group.decoded],
        "data": {**settings, "source": data.source, "split": split, "factors": list(data.factor_names)},
        "seed": options.seed,
    }
    write_json(target, found, record)
    pool = f"{found.images:,} {split} images of {type(data).__name__} ({data.source}), seed {options.seed}"
    known = [result.definition["images"] for result in found.results.values() if "images" in result.definition]
    additions = Additions(path, model, "evaluate", found, split, data, options.seed, files=[target])
    pool += f"; factors and labels are known of {min(known):,} of them" if known else ""
    return found, pool, additions


def _left_out(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """One line a reason, with all scores that it keeps from being computed; of which checkpoints, if not of all."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for label, found in evaluations.items():
        for score, reason in found.skipped.items():
            reasons.setdefault(reason, {}).setdefault(score, []).append(label)
    lines = []
    for reason, scores in reasons.items():
        labels = dict.fromkeys(label for of in scores.values() for label in of)
        of = "" if len(labels) == len(evaluations) else f" of {', '.join(labels)}"
        lines.append(f"left out{of}: {', '.join(scores)}: {reason}")
    return lines


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo evaluate",
        description="Score checkpoints, or codes from any program, with 95 % bootstrap intervals.",
        epilog="--data NAME and --data.ARG VALUE override the run's data; --data.help NAME lists arguments.",
    )
    parser.add_argument(
        "--ckpt_path", nargs="+", type=str, help="Checkpoints, or runs (best checkpoint). Several are compared."
    )
    parser.add_argument(
        "--codes",
        nargs="+",
        type=str,
        help="Score files of codes instead: .npz with codes (N, D), factors (N, K) and optionally factor_names, "
        "factor_kinds and discrete (class counts of the probabilities in the last columns); or CSV or Parquet with "
        "columns code… and factors.",
    )
    parser.add_argument(
        "--factor_bins",
        type=int | None,
        help="With --codes: equal-width bins for factors with more distinct values, for scores that need bins. "
        f"Defaults to the file's value, or {BINS}.",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        type=str,
        help=f"Scores: {', '.join(METRICS)}. Defaults to all that apply. Pass arguments in parentheses, such as "
        "'sap_dip(threshold=0.01)' or 'beta_vae_dip(pairs=100, points=5000)'; metrics.json lists them all. Latent "
        "groups in square brackets restrict a score to their codes: mig_20 'mig_20[y]'.",
    )
    parser.add_argument("--images", type=int, default=10_000, help="Number of images to encode.")
    parser.add_argument(
        "--split",
        type=Literal["train", "val", "test", "all"] | None,
        help="Split of the images. Defaults to test, or the next best if there is no test set.",
    )
    parser.add_argument("--latents", nargs="+", type=str, help="Latent groups to score. Defaults to all.")
    parser.add_argument("--resamples", type=int | None, help="Bootstrap resamples per interval; 0 for no intervals.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of images, scores and intervals.")
    parser.add_argument("--device", type=str, default="auto", help="Device of the encoder.")
    parser.add_argument(
        "--output",
        type=str | None,
        help="Table to write: NAME.csv, NAME.tex, or NAME for both. Never overwrites files.",
    )
    add_tracking_option(parser, "the scores of a checkpoint")
    return parser


def _labels(paths: list[Path]) -> list[str]:
    """Runs as `experiment/time`, shared models by their folder, or paths where that does not tell them apart."""
    runs = [
        run.title if path.parent == run.checkpoints else str(run.path if path == run.weights else path)
        for path in paths
        for run in [RunFolder.of(path)]
    ]
    count = Counter(runs)
    return [run if count[run] == 1 else str(path) for run, path in zip(runs, paths, strict=True)]


def _json_path(path: Path, paths: list[Path]) -> Path:
    """`metrics.json`, with the checkpoint's name where several share a folder."""
    shared = sum(other.parent.resolve() == path.parent.resolve() for other in set(paths)) > 1
    return scores_of(path, named=shared)
