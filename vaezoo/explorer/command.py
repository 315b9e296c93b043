"""`vaezoo explore`: opens the page of checkpoints."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import Namespace
from lightning.pytorch import LightningDataModule

from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.images import POOL, Images
from vaezoo.explorer.opening import launch, require_gradio
from vaezoo.pictures.subjects import Subject
from vaezoo.runs.data import RunData, split_data_options
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.runs.options import CommandParser, checkpoint_in
from vaezoo.text import on_one_line, printable

LONGEST = 200  # letters of a reason
PORTS = 65_535


def run_explore(args: Sequence[str], data_class: type[LightningDataModule]) -> None:
    """Open the page and wait until it is stopped.

    Args:
        args: Command line after `vaezoo explore`.
        data_class: Base of the datamodules to choose from.
    """
    own, data_args = split_data_options(args)
    options = _parser().parse_args(own)
    _check(options)
    require_gradio()
    explorer = explorer_of(options, RunData(data_class, data_args), bool(data_args))
    quiet = {"quiet": True, "prevent_thread_lock": True}
    page = launch(explorer, port=options.port, share=options.share, open=options.open, **quiet)
    print(f"open {page.share_url or page.local_url} in a browser; Ctrl-C ends it", flush=True)
    page.block_thread()


def explorer_of(options: Namespace, run_data: RunData, data_named: bool) -> Explorer:
    """The checkpoints, with the data of the first one.

    Args:
        options: What the parser has read.
        run_data: Opens the data of runs.
        data_named: Whether the command line names the data: what is not there is an error then, else a remark.
    """
    paths = [Path(checkpoint_in(path)) for path in options.runs]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no checkpoint at {path}")
    subjects = [Subject(path, load(path), run_data) for path in paths]
    models = dict(zip(_names(subjects), (subject.model for subject in subjects), strict=True))
    Explorer(models)  # latents that do not fit are said before images are read
    return Explorer(models, _images(subjects[0], options, data_named))


def _images(subject: Subject, options: Namespace, data_named: bool) -> Images | None:
    try:
        data = subject.data
    except Exception as error:  # files that are not here, most often: the prior and uploads need none
        if data_named:
            raise
        reason = on_one_line(str(error), LONGEST)
        print(printable(f"without test images, as the run's data cannot be opened ({reason})"))
        return None
    return Images.of(data, options.pool, options.seed)


def _names(subjects: Sequence[Subject]) -> list[str]:
    """Experiment, model and step; where these do not tell them apart the run, or the file, or a number at last."""
    choices = (
        [one.title for one in subjects],
        [f"{RunFolder.of(one.path).title} · {one.path.stem}" for one in subjects],
        [str(one.path) for one in subjects],
    )
    numbered = [f"{one.path} ({i})" for i, one in enumerate(subjects)]
    return next((names for names in choices if len(set(names)) == len(names)), numbered)


def _check(options: Namespace) -> None:
    for name, least in (("pool", 1), ("seed", 0), ("port", 1)):
        if options[name] is not None and options[name] < least:
            raise ValueError(f"--{name} must be {least} or more, not {options[name]}")
    if options.port is not None and options.port > PORTS:
        raise ValueError(f"--port must be 1 to {PORTS}, not {options.port}")


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo explore",
        description="Open a page in the browser with a slider for every latent unit. The picture follows the slider.",
        epilog="--data NAME and --data.ARG VALUE override the run's data; --data.help NAME lists arguments.",
    )
    add = parser.add_argument
    add(
        "runs",
        nargs="+",
        type=str,
        help="Runs (best checkpoint) or checkpoints. Several are shown side by side with the same codes.",
    )
    add("--port", type=int | None, help="Port of the page. Defaults to the first free one from 7860 on.")
    add("--share", action="store_true", help="Publish the page through Gradio's servers, for anyone with the link.")
    add("--open", action="store_true", help="Open the page in a browser.")
    add(
        "--pool",
        type=int,
        default=POOL,
        help="Test images to choose from, and training images to search for neighbours.",
    )
    add("--seed", type=int, default=0, help="Seed of the order of images, as in vaezoo figure.")
    return parser
