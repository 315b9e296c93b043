"""Entry point of the `vaezoo` command."""

import atexit
import ctypes
import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import vaezoo
from vaezoo.cli.common import HELP

OVERVIEW = f"""\
vaezoo: disentangled representation learning with variational autoencoders

usage: vaezoo COMMAND [options]

find something to run:
  experiments   list the configurations that come with vaezoo, or copy one
  pretrained    list the trained models that come with vaezoo
train a model:
  fit           train, or resume a training
  validate      losses on the validation images
  test          losses on the test images
  predict       codes of the test images, as codes.npz
score it:
  evaluate      disentanglement scores with intervals, of checkpoints or of codes from any program
look at it:
  explore       a page with a slider for every latent unit
  traverse      pictures of what each latent does
  figure        figures for a paper, as PNG, PDF or SVG
  report        runs as one HTML file
  dashboard     charts of runs on Weights & Biases
give it away:
  share         a run as a folder that anyone can load, with a model card
  export        encoder and decoder as ONNX, PyTorch programs or safetensors
compare many runs:
  study         a grid of runs from one file
  reproduce     a paper's numbers, beside what it prints

{HELP}
examples:
  vaezoo fit --config betavae_3dshapes
  vaezoo fit --model BetaVAE --data ImageFolderDataModule --data.data_dir photos --trainer.max_epochs 100
  vaezoo evaluate --ckpt_path RUN
  vaezoo traverse --ckpt_path RUN
  vaezoo report runs/betavae_3dshapes

RUN is the folder that fit prints. `vaezoo COMMAND --help` lists every option; `vaezoo --version` prints the version.
"""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
HOME = Path(vaezoo.__file__).resolve().parent.parent
"""Where vaezoo and its datamodules lie side by side."""


def main(args: list[str] | None = None) -> int:
    """Run the command line; returns the exit code, 141 where whoever read the output, as `head`, has seen enough."""
    try:
        try:
            return _main(sys.argv[1:] if args is None else args)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        sys.stdout = io.StringIO()  # for what is still said at the end
        return 141


def _main(args: list[str]) -> int:
    """The overview is plain text, so `vaezoo --help` need not load torch."""
    if args == ["--version"]:
        print(f"vaezoo {vaezoo.__version__}")
        return 0
    if not args or args[0] in ("-h", "--help"):
        print(OVERVIEW, end="")
        return 0
    if hiding := hides_data():
        print(hiding, file=sys.stderr)
        return 1
    with no_search_for_garbage():
        import torch  # this and the command line take seconds to load

        from vaezoo.cli.main import run

    # Gradients of labels that are known by heart fall below 1e-38, where a CPU multiplies many times slower: there they
    # are 0. Set before anything is computed, as threads take it over from the one that starts them.
    torch.set_flush_denormal(True)
    keep_memory()
    if not torch.cuda.is_available():
        # Lightning's way to look for GPUs loads NVIDIA's library each time, and Adam looks in every step.
        os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    return run(args)


@contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """Keep Python from searching what is imported for garbage, now and at the end: that takes some two seconds."""
    if "lightning" in sys.modules:  # in somebody's program, whose memory this must not keep
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    gc.freeze()
    atexit.register(leave_quickly)


def leave_quickly() -> None:
    """Search nothing at the end. Destructors that miss their modules then, as a file lock does, have nothing to say."""
    gc.freeze()
    sys.unraisablehook = lambda _: None


def keep_memory() -> None:
    """Keep freed memory for the next step: to return it and ask again takes a fifth of a CPU's time. For glibc only."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 2**30)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def hides_data() -> str:
    """An error line if another package named `datamodules` hides vaezoo's, as many projects have one; else empty.

    Does not import that package.
    """
    spec = find_spec("datamodules")
    found = Path(spec.origin).resolve().parent if spec and spec.origin else None
    if found is None or found.parent == HOME:
        return ""
    return (
        f"vaezoo: error: {found} hides vaezoo's own package of that name: rename it, or take {found.parent} off "
        "PYTHONPATH"
    )


def put_current_folder_last() -> None:
    """Keep files in the current folder from hiding packages: `python -m` puts it first on the path."""
    if sys.path[0] in ("", os.getcwd()) and Path.cwd() != HOME:  # noqa: PTH109
        sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    put_current_folder_last()
    sys.exit(main())
