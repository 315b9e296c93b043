"""`vaezoo report`: runs as one HTML file."""

from collections.abc import Sequence
from pathlib import Path

from lightning.pytorch import LightningDataModule
from tqdm import tqdm

from vaezoo.report.data import first_images
from vaezoo.report.joining import shown_runs
from vaezoo.report.page import Entry, check_writable, write_page
from vaezoo.report.pictures import Picture, from_file
from vaezoo.report.runs import Run, find_runs, read_run
from vaezoo.report.strips import Limits, draw_run
from vaezoo.runs.data import RunData
from vaezoo.runs.options import CommandParser
from vaezoo.text import printable, reason


def run_report(args: Sequence[str], data_class: type[LightningDataModule]) -> None:
    """Read runs, draw what their checkpoints have learnt, and write one page.

    Args:
        args: Command line after `vaezoo report`.
        data_class: Base of the datamodules that give the images.
    """
    options = _parser().parse_args(list(args))
    if not options.runs:
        raise ValueError("name the folder of a run, or of several, for example: vaezoo report runs/demo")
    folders, output = find_runs([Path(path) for path in options.runs]), Path(options.output)
    check_writable(output)
    points = Limits.for_runs(len(folders)).points
    read = _with_own_names([read_run(folder, points) for folder in folders])
    runs, hidden = shown_runs(read, points, None if options.all else [Path(path) for path in options.runs])
    if not runs:
        raise FileNotFoundError(f"no run has logged or saved anything; --all shows the {hidden} that started")
    limits, images = Limits.for_runs(len(runs)), RunData(data_class, keep=first_images)
    if options.max_units is not None:
        limits = limits._replace(units=options.max_units)
    entries: list[Entry] = []
    for run in tqdm(runs, "runs", unit="run", leave=False, disable=len(runs) < 2 or None):
        entries.append(Entry(run, draw_run(run, images, limits), _pictures(run, limits.picture_side)))
    write_page(output, entries)
    for entry in entries:
        for note in entry.run.notes:
            print(printable(f"{entry.run.name}: {note}"))
    if hidden:
        print(f"{hidden} without a logged row or checkpoint {'is' if hidden == 1 else 'are'} hidden: --all shows them")
    print(f"report: {output} ({output.stat().st_size / 1e6:.1f} MB, {len(entries)} run{'s' * (len(entries) > 1)})")


def _with_own_names(runs: list[Run]) -> list[Run]:
    """Call a run by its path where another one has its name."""
    seen: set[str] = set()
    for run in runs:
        run.name = str(run.path) if run.name in seen else run.name
        seen.add(run.name)
    return runs


def _pictures(run: Run, side: int) -> list[Picture]:
    pictures = []
    for file in run.pictures:
        try:
            pictures.append(from_file(file, side))
        except Exception as error:  # cut off, or no picture at all
            run.notes.append(f"{file.parent.name}/{file.name} could not be read: {reason(error)}")
    return pictures


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo report",
        description="Show runs in one HTML file that needs no server or network.",
    )
    parser.add_argument(
        "runs", nargs="*", type=str, help="Run folders, runs/EXPERIMENT/TIME, or folders that contain runs."
    )
    parser.add_argument("-o", "--output", type=str, default="report.html", help="File to write.")
    parser.add_argument("--all", action="store_true", help="Also show runs that logged and saved nothing.")
    parser.add_argument(
        "--max_units",
        type=int | None,
        help="Largest number of latent units per run. By default, more runs show fewer units each.",
    )
    return parser
