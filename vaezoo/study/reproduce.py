"""`vaezoo reproduce`: a paper's numbers by one command, compared with what is expected of them."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vaezoo.runs.commits import own_commit
from vaezoo.runs.experiments import SHIPPED
from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder, scores_of
from vaezoo.runs.options import CommandParser
from vaezoo.study.claims import claims_table
from vaezoo.study.command import add_options, finished, redraw, run_all
from vaezoo.study.expected import Row, compare, comparison_table, read_expected
from vaezoo.study.file import read_study
from vaezoo.study.findings import TrackStudy
from vaezoo.study.grid import Run, expand
from vaezoo.text import did_you_mean

EXPECTED, RESULTS = "expected.json", "results"
EPILOG = """\
NAME is a study that `vaezoo experiments` lists. It runs as in `vaezoo study`: finished runs are skipped, so repeat the
command to resume an interrupted study. Then the means over seeds are compared with experiments/expected.json; the exit
code is 1 if one is outside its tolerance. Without NAME, prints the records in experiments/results beside the papers'
numbers."""


def run_reproduce(args: Sequence[str], track: TrackStudy) -> None:
    """Run a study at one of its budgets and compare it with what is expected, or print what was recorded.

    Args:
        args: Command line after `vaezoo reproduce`.
        track: Adds the results to Weights & Biases, where the runs are.
    """
    options = _parser().parse_args(list(args))
    folder = experiments_folder()
    expected = read_expected(folder / EXPECTED)
    if options.name is None:
        print("\n\n".join(recorded(expected).values()) or f"{folder / RESULTS} is empty: make records with --record")
        return
    if options.name not in expected:
        hint = did_you_mean(options.name, expected)
        raise ValueError(f"{folder / EXPECTED} has no {options.name!r}{hint} (there are {', '.join(expected)})")
    if options.record and folder == SHIPPED:
        raise ValueError("--record writes to experiments/results: run it in the folder that holds experiments/")
    study = read_study(folder / "studies" / f"{options.name}.yaml")
    planned = expand(study, options.budget)
    if options.plots_only:
        redraw(study, planned, options)
        return
    file = folder / RESULTS / f"{options.name}-{options.budget}.json"
    known = read_record(file, planned) if options.record else []
    try:
        run_all(study, options, track, {run["identity"] for run in known})
    finally:  # what is finished is recorded, even if others failed or were interrupted
        known = read_record(file, planned) if options.record else []  # others may have recorded runs meanwhile
        runs = joined(known, [_record(name, result) for name, result in finished(study, options).items()])
        if options.record and runs:
            _write(file, options.name, options.budget, runs)
    print(f"\n{findings(expected[options.name], runs)}\n")
    _judge(expected[options.name], runs, options.budget)


def experiments_folder() -> Path:
    """The folder `experiments/` below the current one, or what is shipped where it holds no expectations."""
    here = Path("experiments")
    return here if (here / EXPECTED).is_file() else SHIPPED


def recorded(expected: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Every recorded study as its command and a table, by the name of its file.

    Args:
        expected: Rows by study.
    """
    made = {}
    for file in sorted((experiments_folder() / RESULTS).glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        made[file.stem] = f"{record['command']}\n\n{findings(expected[record['study']], record['runs'])}"
    return made


def findings(rows: Sequence[Row], runs: Sequence[Mapping[str, Any]]) -> str:
    """What was measured beside what the papers print, then how sure their claims are, if several seeds ran."""
    return "\n\n".join(filter(None, (comparison_table(rows, runs), claims_table(rows, runs))))


def _judge(rows: Sequence[Row], runs: Sequence[Mapping[str, Any]], budget: str) -> None:
    said, off = compare(rows, runs, budget)
    print("\n".join(f"{'OFF' if line in off else 'ok '} {line}" for line in said))
    if not said:
        print(f"{EXPECTED} expects nothing of the budget {budget!r}: there is nothing to compare with")
    if off:
        raise RuntimeError(f"{len(off)} of {len(said)} means are out of their tolerance: {'; '.join(off)}")


def read_record(file: Path, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Recorded runs that the study would repeat as they are: same settings, seed and scores.

    Args:
        file: The record; none need be there.
        runs: Runs of the study.
    """
    if not file.is_file():
        return []
    current = {run.identity for run in runs}
    record = json.loads(file.read_text(encoding="utf-8"))
    return [run for run in record["runs"] if run.get("identity") in current]


def joined(known: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Recorded runs with new ones, sorted by name. A recorded one stays as it is, with the commit that made it."""
    runs = {run["run"]: run for run in (*new, *known)}
    return sorted(runs.values(), key=lambda run: (run["run"].rpartition("-s")[0], run["seed"]))


def _write(file: Path, name: str, budget: str, runs: Sequence[Mapping[str, Any]]) -> None:
    command = f"vaezoo reproduce {name} --budget {budget}"
    record = {"study": name, "budget": budget, "command": command, "runs": runs}
    with atomic_write(file) as draft:
        draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"recorded: {file}, {len(runs)} runs")


def _record(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """What a run gave, as small plain data: settings, cost, scores, and what it was made with."""
    folder = RunFolder(result["path"])
    config, measured = folder.read_config(), json.loads(scores_of(folder.last).read_text(encoding="utf-8"))
    trainer = {key: config["trainer"][key] for key in ("max_steps", "max_epochs", "precision")}
    return {
        "run": name,
        "config": result["part"],
        "place": result["place"],
        **{key: result[key] for key in ("seed", "identity", "steps", "seconds", "attempts", "scores")},
        "images": {"source": measured["data"]["source"], "scored": measured["images"]},
        "file": result["config"],
        "settings": {"model": config["model"], "data": config["data"], "trainer": trainer},
        "machine": {"processor": platform.machine(), "cpus": os.cpu_count()},
        "versions": measured["versions"] | {"commit": own_commit()},
    }


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo reproduce",
        description="Reproduce a paper's numbers and compare them with the expected values.",
        epilog=EPILOG,
    )
    parser.add_argument("name", type=str | None, nargs="?", help="Study, for example welavae_table1.")
    add_options(parser)
    parser.add_argument(
        "--record",
        action="store_true",
        help="Also write the results to experiments/results. Recorded runs are not run again.",
    )
    return parser
