"""`vaezoo report`: runs as one HTML file."""

from collections.abc import Sequence
from pathlib import Path

from lightning.pytorch import LightningDataModule
from tqdm import tqdm

from vaezoo.report.data import first_images
from vaezoo.report.page import Entry, check_writable, write_page
from vaezoo.report.pictures import Picture, from_file
from vaezoo.report.runs import Run, find_runs, one_line, read_run
from vaezoo.report.strips import Limits, draw_run
from vaezoo.runs.data import RunData
from vaezoo.runs.options import CommandParser
from vaezoo.text import printable


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
    limits, images = Limits.for_runs(len(folders)), RunData(data_class, keep=first_images)
    if options.max_units is not None:
        limits = limits._replace(units=options.max_units)
    entries: list[Entry] = []
    for folder in tqdm(folders, "runs", unit="run", leave=False, disable=len(folders) < 2 or None):
        run = read_run(folder, limits.points)
        if any(run.name == entry.run.name for entry in entries):
            run.name = str(folder)
        entries.append(Entry(run, draw_run(run, images, limits), _pictures(run, limits.picture_side)))
    write_page(output, entries)
    for entry in entries:
        for note in entry.run.notes:
            print(printable(f"{entry.run.name}: {note}"))
    print(f"report: {output} ({output.stat().st_size / 1e6:.1f} MB, {len(entries)} run{'s' * (len(entries) > 1)})")


def _pictures(run: Run, side: int) -> list[Picture]:
    pictures = []
    for file in run.pictures:
        try:
            pictures.append(from_file(file, side))
        except Exception as error:  # cut off, or no picture at all
            run.notes.append(f"{file.parent.name}/{file.name} could not be read: {one_line(error)}")
    return pictures


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo report",
        description="One HTML file that shows runs, and opens without a server or network.",
    )
    parser.add_argument(
        "runs", nargs="*", type=str, help="Folders of runs, runs/EXPERIMENT/TIME, or folders that hold such."
    )
    parser.add_argument("-o", "--output", type=str, default="report.html", help="The file to write.")
    parser.add_argument(
        "--max_units", type=int | None, help="Most latent units drawn of each run; fewer the more runs by default."
    )
    return parser
