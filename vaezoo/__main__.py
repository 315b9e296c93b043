"""Entry point of the `vaezoo` command."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import vaezoo
from vaezoo.cli.common import HELP

OVERVIEW = f"""\
vaezoo: disentangled representation learning with variational autoencoders

usage: vaezoo COMMAND [--config FILE] [options]

commands:
  experiments what comes with vaezoo:   vaezoo experiments; vaezoo experiments copy betavae_3dshapes .
  fit         train a model:            vaezoo fit --config betavae_3dshapes
  validate    losses on validation data: vaezoo validate --config FILE --ckpt_path RUN
  test        losses on test data
  predict     codes of the test images
  evaluate    disentanglement scores:   vaezoo evaluate --ckpt_path RUN
  dashboard   charts of runs on W&B:    vaezoo dashboard --project vaezoo
  traverse    pictures of the latents:  vaezoo traverse --ckpt_path RUN
  figure      figures for a paper:      vaezoo figure RUN reconstructions --output fig.pdf --width 8.5cm
  report      runs as one HTML file:    vaezoo report runs/demo -o report.html
  study       many runs from one file:  vaezoo study larvae_rates --dry_run
  reproduce   a paper's numbers:        vaezoo reproduce welavae_table1 --budget short

common options:
  --config FILE            configuration, or the name of one; may be given more than once, later ones win
  --model NAME             model, for example BetaVAE; --model.help NAME lists its arguments
  --data NAME              dataset, for example Shapes3DDataModule; --data.help NAME lists its arguments
  --trainer.ARG VALUE      any argument of Lightning's Trainer, for example --trainer.max_steps 1000
  --trainer.logger NAME    log elsewhere as well: WandbLogger, TensorBoardLogger or MLFlowLogger
  --experiment NAME        name of the run's folder, runs/NAME/TIME
  --name NAME              what reports and W&B call the run; else the settings in which it differs
  --ckpt_path PATH         continue from a checkpoint or a run; last: the experiment's furthest with these settings
  --init_from PATH         start a new run with a checkpoint's weights; --freeze_encoder true keeps the encoder as it is
  --print_config           print the complete configuration and exit

{HELP}
`vaezoo COMMAND --help` lists every option; `vaezoo --version` prints the version.
"""
HOME = Path(vaezoo.__file__).resolve().parent.parent
"""Where vaezoo and its datamodules lie side by side."""


def main(args: list[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    The overview is plain text so that `vaezoo --help` need not load torch.
    """
    args = sys.argv[1:] if args is None else args
    if args == ["--version"]:
        print(f"vaezoo {vaezoo.__version__}")
        return 0
    if not args or args[0] in ("-h", "--help"):
        print(OVERVIEW, end="")
        return 0
    if hiding := hides_data():
        print(hiding, file=sys.stderr)
        return 1
    import torch  # this and the command line take seconds to load

    # Gradients of labels that are known by heart fall below 1e-38, where a CPU multiplies many times slower: there they
    # are 0. Set before anything is computed, as threads take it over from the one that starts them.
    torch.set_flush_denormal(True)
    from vaezoo.cli.main import run

    return run(args)


def hides_data() -> str:
    """One line where another package called `datamodules`, as many projects have one, hides vaezoo's; else empty.

    Nothing of that package is imported.
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
    """Let what lies in the current folder hide nothing: `python -m` puts it first on the path."""
    if sys.path[0] in ("", os.getcwd()) and Path.cwd() != HOME:  # noqa: PTH109
        sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    put_current_folder_last()
    sys.exit(main())
