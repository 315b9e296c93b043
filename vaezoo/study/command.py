"""`vaezoo study`: many runs from one file, on Ray."""

import os
import shlex
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from vaezoo.pictures.figures import add_style_options, style_of
from vaezoo.runs.additions import add_tracking_option
from vaezoo.runs.experiments import find_experiment
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.options import CommandParser
from vaezoo.study.file import Study, read_study
from vaezoo.study.findings import StudyFindings, TrackStudy
from vaezoo.study.folder import JobFolder
from vaezoo.study.grid import Run, chosen, expand, text
from vaezoo.study.job import Job
from vaezoo.study.plots import STYLE, draw_plots
from vaezoo.study.results import write_all
from vaezoo.study.sweep import write_sweeps
from vaezoo.text import aligned, printable

EPILOG = """\
Each run is one `vaezoo fit` process and one `vaezoo evaluate` process on its last checkpoint. Finished runs are
skipped: repeat the command to resume an interrupted study, or after adding seeds. --output holds runs and results:
runs/NAME/, results.csv, results.parquet, summary.md, summary.tex and plots/. On a cluster, all machines must share that
folder."""


def run_study(args: Sequence[str], track: TrackStudy) -> None:
    """Run what is left of a study, and write its tables.

    Args:
        args: Command line after `vaezoo study`.
        track: Adds the results to Weights & Biases, where the runs are.
    """
    options = _parser().parse_args(list(args))
    study = read_study(Path(find_experiment(options.study, "studies")))
    runs = expand(study, options.budget)
    if options.sweep:
        for path in write_sweeps(Path(options.sweep), study, options.budget):
            print(f"sweep: {path} (wandb sweep {path}, then wandb agent with the id that it prints)")
    elif options.plots_only:
        redraw(study, runs, options)
    elif options.dry_run:
        _print_commands(chosen(runs, options.only), _jobs(study, runs, _output(study, options), options))
    else:
        run_all(study, options, track)


def run_all(study: Study, options: Namespace, track: TrackStudy, known: Container[str] = ()) -> None:
    """Run what is left of a study, and write its tables.

    Args:
        study: The study.
        options: What `add_options` has added.
        track: Adds the results to Weights & Biases, where the runs are.
        known: Identities of runs whose results are known from elsewhere.
    """
    runs, output = expand(study, options.budget), _output(study, options)
    jobs = _jobs(study, runs, output, options)
    wanted = {run.name: jobs[run.name] for run in chosen(runs, options.only) if run.identity not in known}
    # Ray reads this when it is imported. Off, it listens to this machine alone; on, to every network that it is in.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0" if options.address is None else "1"
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401

        from vaezoo.study.runner import run_jobs
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("studies need more packages: pip install 'vaezoo[study]'") from error
    left = sum(not job.result() for job in wanted.values())
    print(f"{study.name}: {len(wanted)} runs, {len(wanted) - left} of them done already", flush=True)
    if left and options.hang_minutes:
        print(f"a run that makes no progress for {options.hang_minutes:g} minutes is tried again", flush=True)
    try:
        failed = run_jobs(wanted, study, output, options.address, options.retries) if left else {}
    except KeyboardInterrupt:
        print("interrupted: repeat the command to resume", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        results = {name: result for name, job in jobs.items() if (result := job.result())}
        written = write_all(
            output, f"{study.name}, budget {options.budget}", runs, results, options.budget, study.summary
        )
    print("\n".join(f"written: {path}" for path in written))
    for name, reason in failed.items():
        lines = [f"{name}: {reason}", *JobFolder(jobs[name].folder).last_lines().splitlines()]
        print("", *map(printable, lines), sep="\n", file=sys.stderr)
    redraw(study, runs, options)
    if options.wandb:
        checkpoints = {name: output / result["checkpoint"] for name, result in results.items()}
        plots = sorted((output / "plots").glob("*.png"))
        track(StudyFindings(f"{study.name}, budget {options.budget}", output, checkpoints, written, plots))
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(wanted)} runs failed: {', '.join(failed)}; logs are in {output}/runs"
        )


def finished(study: Study, options: Namespace) -> dict[str, dict[str, Any]]:
    """Results of all finished runs by name, each with its `place` in the grid and its folder as `path`.

    Args:
        study: The study.
        options: What `add_options` has added.
    """
    runs, output = expand(study, options.budget), _output(study, options)
    jobs, found = _jobs(study, runs, output, options), {}
    for run in runs:
        if result := jobs[run.name].result():
            found[run.name] = {**result, "part": run.part, "place": run.place, "path": output / result["folder"]}
    return found


def redraw(study: Study, runs: Sequence[Run], options: Namespace) -> None:
    """Draw a study's plots from its results.csv, without running anything.

    Args:
        study: The study.
        runs: Its runs at the budget.
        options: What `add_options` has added.
    """
    axes = list(dict.fromkeys(["config", *(axis for run in runs for axis in run.place)]))
    title = f"{study.name}, budget {options.budget}"
    scores = study.summary.get("scores", ())
    drawn, missing = draw_plots(_output(study, options), title, study.plots, axes, scores, style_of(options))
    print("\n".join([*(f"written: {path}" for path in drawn), *(f"not drawn: {reason}" for reason in missing)]))


def _output(study: Study, options: Namespace) -> Path:
    folder = study.name if options.budget == "full" else f"{study.name}-{options.budget}"
    return Path(options.output or Path("runs", "studies", folder)).resolve()


def _jobs(study: Study, runs: list[Run], output: Path, options: Namespace) -> dict[str, Job]:
    cpus = study.cpus if options.cpus_per_run is None else options.cpus_per_run
    if options.retries < 0 or options.hang_minutes < 0 or cpus <= 0:
        raise ValueError("--retries and --hang_minutes must be at least 0, and --cpus_per_run above 0")
    jobs = {}
    for run in runs:
        facts = {"run": run.name, "config": str(run.config), "overrides": run.overrides, "seed": run.seed}
        jobs[run.name] = Job(
            folder=output / "runs" / run.experiment,
            identity=run.identity,
            fit=run.fit(output / "runs"),
            scores=run.scores() if options.wandb else ["evaluate", "--wandb=false", *run.scores()[1:]],
            cpus=cpus,
            gpus=study.gpus if options.gpus_per_run is None else options.gpus_per_run,
            hang_seconds=60 * options.hang_minutes,
            cwd=Path.cwd(),
            may_stop=bool(study.scheduler),
            facts=facts,
        )
    return jobs


def _print_commands(runs: list[Run], jobs: dict[str, Job]) -> None:
    axes = list(dict.fromkeys(axis for run in runs for axis in run.place))
    rows = [["run", *axes, "seed", "state"]]
    for run in runs:
        values = [text(run.place[axis]) if axis in run.place else "" for axis in axes]
        rows.append([run.name, *values, str(run.seed), "done" if jobs[run.name].result() else "to run"])
    print("\n".join(aligned(rows)))
    for run in runs:
        job = jobs[run.name]
        vaezoo = [sys.executable, "-m", "vaezoo"]
        last = f"{shlex.quote(str(job.folder))}/{RunFolder(Path('*')).last}"
        print(f"\n# {run.name}\n{shlex.join([*vaezoo, *job.fit])}\n{shlex.join([*vaezoo, *job.scores])} {last}")


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo study", description="Run a grid of experiments from one file, on Ray.", epilog=EPILOG
    )
    parser.add_argument("study", type=str, help="A study file, or a name such as larvae_rates.")
    add_options(parser)
    parser.add_argument("--dry_run", action="store_true", help="Print all runs and their commands, then exit.")
    parser.add_argument("--sweep", type=str | None, help="Write the grid as a Weights & Biases sweep, then exit.")
    return parser


def add_options(parser: ArgumentParser) -> None:
    """How the runs of a study are run."""
    parser.add_argument("--budget", type=str, default="full", help="Budget of the study, usually full or smoke.")
    parser.add_argument(
        "--output", type=str | None, help="Folder of runs and results. Defaults to runs/studies/NAME, or NAME-BUDGET."
    )
    parser.add_argument(
        "--only",
        type=str,
        nargs="+",
        default=["*"],
        help="Run only these runs, by the names that `vaezoo study --dry_run` lists; * matches anything.",
    )
    parser.add_argument("--plots_only", action="store_true", help="Redraw the plots from results.csv, then exit.")
    add_style_options(parser, STYLE)
    parser.add_argument(
        "--address",
        type=str | None,
        help="Address of a Ray cluster. Defaults to a new one, reachable from this machine only.",
    )
    parser.add_argument(
        "--hang_minutes",
        type=float,
        default=60.0,
        help="Restart a run after so many minutes without output, log or checkpoint; 0 waits forever.",
    )
    parser.add_argument("--cpus_per_run", type=float | None, help="CPUs and threads per run. Defaults to the study's.")
    parser.add_argument("--gpus_per_run", type=float | None, help="GPUs per run. Defaults to the study's.")
    parser.add_argument(
        "--retries",
        type=int,
        default=2,
        help="Retries of a failed run, from its last checkpoint. A run that fails the same way twice is given up.",
    )
    add_tracking_option(parser, "the scores of each checkpoint, and a table of all,")
