"""Entry point of the `vaezoo` command."""

import sys

from vaezoo import __version__
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
  --ckpt_path PATH         continue from a checkpoint or a run; last: from the furthest of the experiment, if any
  --print_config           print the complete configuration and exit

{HELP}
`vaezoo COMMAND --help` lists every option; `vaezoo --version` prints the version.
"""


def main(args: list[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    The overview is plain text so that `vaezoo --help` need not load torch.
    """
    args = sys.argv[1:] if args is None else args
    if args == ["--version"]:
        print(f"vaezoo {__version__}")
        return 0
    if not args or args[0] in ("-h", "--help"):
        print(OVERVIEW, end="")
        return 0
    import torch  # this and the command line take seconds to load

    # Gradients of labels that are known by heart fall below 1e-38, where a CPU multiplies many times slower: there they
    # are 0. Set before anything is computed, as threads take it over from the one that starts them.
    torch.set_flush_denormal(True)
    from vaezoo.cli.main import run

    return run(args)


if __name__ == "__main__":
    sys.exit(main())
