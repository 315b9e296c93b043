"""Start and end of `vaezoo COMMAND --help`: the most used options, and examples."""

from typing import Any

from vaezoo.cli.common import HELP

MOST_USED = """\
most used options:
  --config NAME            an experiment (see vaezoo experiments) or a file; later ones override earlier ones
  --model NAME             model, e.g. BetaVAE; --model.help NAME lists its arguments
  --data NAME              dataset, e.g. Shapes3DDataModule; --data.help NAME lists its arguments
  --trainer.max_steps N    how long to train, or --trainer.max_epochs N
  --data.labels X          labelled training images: 0.01 for 1 %, 100 for a hundred
  --seed_everything N      seed of weights, noise and data order; defaults to 0
  --trainer.devices N      GPUs or processes; --trainer.precision bf16-mixed is mixed precision
  --trainer.logger NAME    also log to WandbLogger, TensorBoardLogger or MLFlowLogger
  --ckpt_path PATH         resume a run or checkpoint; last: the furthest one of this experiment and settings
  --print_config           print the complete configuration and exit"""
TRAINED = """\
most used options:
  --config RUN/config.yaml the configuration of the run
  --ckpt_path RUN          the run (best checkpoint), or a checkpoint file
  --data.batch_size N      batch size; override any other option in the same way"""
LEADS = {
    "fit": f"Train a model. Every run gets its own folder, runs/EXPERIMENT/TIME.\n\n{MOST_USED}",
    "validate": f"Compute the losses of a trained model on the validation images.\n\n{TRAINED}",
    "test": f"Compute the losses of a trained model on the test images.\n\n{TRAINED}",
    "predict": f"Save the codes of the test images, with ids and factors, to codes.npz.\n\n{TRAINED}",
}
"""How the help of Lightning's commands begins."""
EXAMPLES = {
    "fit": """\
vaezoo fit --config betavae_3dshapes
vaezoo fit --config betavae_3dshapes --model.beta 8 --trainer.max_steps 20000
vaezoo fit --model BetaVAE --data ImageFolderDataModule --data.data_dir photos --trainer.max_epochs 100
vaezoo fit --model LaRVAE --data Shapes3DDataModule --data.labels 0.01 --trainer.max_steps 20000
vaezoo fit --config betavae_3dshapes --ckpt_path last""",
    "validate": "vaezoo validate --config RUN/config.yaml --ckpt_path RUN",
    "test": "vaezoo test --config RUN/config.yaml --ckpt_path RUN",
    "predict": "vaezoo predict --config RUN/config.yaml --ckpt_path RUN",
    "evaluate": """\
vaezoo evaluate --ckpt_path RUN
vaezoo evaluate --ckpt_path RUN OTHER --metrics mig_20 sap_dip dci_fast --output comparison
vaezoo evaluate --codes codes.npz""",
    "figure": """\
vaezoo figure RUN reconstructions --output fig.pdf --width 8.5cm --title false
vaezoo figure RUN ranked --output fig.svg --row_names z3='x position'""",
    "traverse": """\
vaezoo traverse --ckpt_path RUN
vaezoo traverse --ckpt_path RUN --image photo.png --span -3 3
vaezoo traverse --kind labels --ckpt_path BASELINE LARVAE""",
    "explore": """\
vaezoo explore RUN --open
vaezoo explore BASELINE LARVAE --port 7000""",
    "report": """\
vaezoo report runs/demo -o report.html
vaezoo report RUN OTHER -o report.html""",
    "export": """\
vaezoo export RUN
vaezoo export RUN --format torch_export --output models""",
    "dashboard": """\
vaezoo dashboard --project vaezoo
vaezoo dashboard --report runs/studies/larvae_rates""",
    "study": """\
vaezoo study larvae_rates --dry_run
vaezoo study welavae_table1 --budget smoke""",
    "reproduce": """\
vaezoo reproduce
vaezoo reproduce welavae_table1 --budget short""",
    "experiments": """\
vaezoo experiments
vaezoo experiments copy larvae_3dshapes .""",
    "share": """\
vaezoo share RUN --name partedvae_mine
vaezoo share RUN --name partedvae_mine --half true --license mit --hub me/partedvae_mine""",
    "pretrained": """\
vaezoo pretrained
vaezoo pretrained partedvae_mnist""",
}
"""How the help of every command ends."""


def parser_options(command: str) -> dict[str, Any]:
    """Arguments of the parser of one of Lightning's commands: a short usage, and first what people use."""
    usage = f"vaezoo {command} --config FILE [options]"
    return {"usage": usage, "description": LEADS[command]}


def example(command: str) -> str:
    """The first example of a command that shows arguments."""
    return next(line for line in EXAMPLES[command].splitlines() if line.count(" ") > 1)


def ending(command: str) -> str:
    """What follows the options of a command: those of every command, and examples."""
    lines = EXAMPLES[command].splitlines() if command in EXAMPLES else []
    return "\n".join([HELP, *(["examples:"] if lines else []), *(f"  {line}" for line in lines)])
