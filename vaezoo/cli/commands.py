"""vaezoo's own commands by their names. Each imports what it runs: training needs none of it."""

from collections.abc import Callable

from datamodules import ImageDataModule


def _evaluate(args: list[str]) -> None:
    from datamodules.table_files import read_table
    from vaezoo.evaluation.command import run_evaluate
    from vaezoo.tracking.joining import add_to_run

    run_evaluate(args, ImageDataModule, read_table, add_to_run)


def _figure(args: list[str]) -> None:
    from vaezoo.pictures.traversals import run_figure
    from vaezoo.tracking.joining import add_to_run

    run_figure(args, ImageDataModule, add_to_run)


def _traverse(args: list[str]) -> None:
    from vaezoo.pictures.traversals import run_traverse
    from vaezoo.tracking.joining import add_to_run

    run_traverse(args, ImageDataModule, add_to_run)


def _explore(args: list[str]) -> None:
    from vaezoo.explorer.command import run_explore

    run_explore(args, ImageDataModule)


def _report(args: list[str]) -> None:
    from vaezoo.report.command import run_report

    run_report(args, ImageDataModule)


def _export(args: list[str]) -> None:
    from vaezoo.sharing.export import run_export

    run_export(args, ImageDataModule)


def _dashboard(args: list[str]) -> None:
    from vaezoo.tracking.dashboard import run_dashboard

    run_dashboard(args)


def _study(args: list[str]) -> None:
    from vaezoo.study.command import run_study
    from vaezoo.tracking.studies import add_study

    run_study(args, add_study)


def _reproduce(args: list[str]) -> None:
    from vaezoo.study.reproduce import run_reproduce
    from vaezoo.tracking.studies import add_study

    run_reproduce(args, add_study)


def _experiments(args: list[str]) -> None:
    from vaezoo.cli.experiments import run_experiments

    run_experiments(args)


def _share(args: list[str]) -> None:
    from vaezoo.sharing.command import run_share

    run_share(args, ImageDataModule)


def _pretrained(args: list[str]) -> None:
    from vaezoo.sharing.command import run_pretrained

    run_pretrained(args)


OWN_COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "evaluate": _evaluate,
    "figure": _figure,
    "traverse": _traverse,
    "explore": _explore,
    "report": _report,
    "export": _export,
    "dashboard": _dashboard,
    "study": _study,
    "reproduce": _reproduce,
    "experiments": _experiments,
    "share": _share,
    "pretrained": _pretrained,
}
