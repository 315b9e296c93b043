"""A study's YAML file, checked."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from vaezoo.metrics.arguments import read_scores
from vaezoo.runs.experiments import find_experiment
from vaezoo.study.checks import known, mapping, names
from vaezoo.study.plot_section import Plot, read_plots
from vaezoo.study.stopping import SCHEDULERS

KEYS = (
    *("name", "configs", "seeds", "grid", "overrides", "budgets", "evaluate", "resources", "scheduler", "summary"),
    "plots",
)
SECTIONS = ("model", "data", "trainer", "compile")
EVALUATE = ("metrics", "images", "split", "latents", "resamples", "seed")
OWN = ("seeds", "evaluate", "only")  # keys of a budget that are no options of a run
MOST_SEED = 2**32 - 1  # NumPy knows no larger one: such a run could never start
STATISTICS = ("n", "mean", "lowest", "highest", "best")


@dataclass(frozen=True)
class Part:
    """One configuration of a study, with its own settings.

    Attributes:
        config: Path of its file.
        overrides: Options of all its runs.
        grid: Axes by name. A list holds values of the option that the axis is named after; a mapping holds points by
            name, each with the options that it sets together.
        seeds: Its seeds, if they differ from the study's.
        evaluate: Options of `vaezoo evaluate` that differ from the study's.
    """

    config: Path
    overrides: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    evaluate: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """Contents of a study's file.

    Attributes:
        name: Name of the study.
        parts: Its configurations by name.
        seeds: Seeds of every run.
        grid: Axes that all configurations share.
        overrides: Options of all runs.
        budgets: Options by budget; they override all others. `seeds` and `evaluate` replace the study's; `only` selects
            places in the grid by name patterns.
        evaluate: Options of `vaezoo evaluate`.
        cpus: CPUs of a run.
        gpus: GPUs of a run.
        scheduler: Class, metric, mode and options of a scheduler of Ray Tune; empty for none.
        summary: `rows`, `scores` and `statistics` of the summary.
        plots: Plots to draw. Defaults to every score over every axis.
    """

    name: str
    parts: dict[str, Part]
    seeds: tuple[int, ...]
    grid: dict[str, Any]
    overrides: dict[str, Any]
    budgets: dict[str, dict[str, Any]]
    evaluate: dict[str, Any]
    cpus: float
    gpus: float
    scheduler: dict[str, Any]
    summary: dict[str, list[str]]
    plots: tuple[Plot, ...]


def read_study(path: Path) -> Study:
    """Read and check a study.

    Raises:
        ValueError: Something in it is wrong; the message says where.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no study at {path}")
    try:
        content = mapping(yaml.safe_load(path.read_text(encoding="utf-8")), "the file")
        return _study(content, path.stem)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _study(given: dict[str, Any], stem: str) -> Study:
    known(given, KEYS, "the study")
    parts = {str(name): _part(part, name) for name, part in mapping(given.get("configs"), "configs").items()}
    if not parts:
        raise ValueError("configs names no configuration, for example {larvae: experiments/larvae_3dshapes.yaml}")
    resources = mapping(given.get("resources"), "resources")
    known(resources, ("cpus", "gpus"), "resources")
    return Study(
        name=str(given.get("name", stem)),
        parts=parts,
        seeds=_seeds(given.get("seeds", ()), "seeds"),
        grid=_grid(given.get("grid"), "grid"),
        overrides=_overrides(given.get("overrides"), "overrides"),
        budgets=_budgets(given.get("budgets")),
        evaluate=_evaluate(given.get("evaluate"), "evaluate"),
        cpus=_amount(resources.get("cpus", 1), "resources.cpus", above=True),
        gpus=_amount(resources.get("gpus", 0), "resources.gpus"),
        scheduler=_scheduler(given.get("scheduler")),
        summary=_summary(given.get("summary")),
        plots=read_plots(given.get("plots")),
    )


def _part(given: Any, name: str) -> Part:
    where = f"configs.{name}"
    given = {"config": given} if isinstance(given, str) else mapping(given, where)
    known(given, ("config", "overrides", "grid", "seeds", "evaluate"), where)
    config = Path(find_experiment(str(given.get("config", ""))))
    if not config.is_file():
        raise ValueError(f"{where}: no file {str(config)!r}; paths start at the current folder")
    return Part(
        config,
        _overrides(given.get("overrides"), f"{where}.overrides"),
        _grid(given.get("grid"), f"{where}.grid"),
        _seeds(given.get("seeds", ()), f"{where}.seeds"),
        _evaluate(given.get("evaluate"), f"{where}.evaluate"),
    )


def _seeds(given: Any, where: str) -> tuple[int, ...]:
    """Seeds as a list, or how many, counted from 0."""
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return tuple(range(given))
    if not isinstance(given, (list, tuple)) or not all(type(seed) is int and seed >= 0 for seed in given):
        raise ValueError(f"{where}: expected a list of whole numbers, or how many, got {given!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"{where}: a seed is there twice")
    if given and max(given) > MOST_SEED:
        raise ValueError(f"{where}: {max(given)} is too large, the largest is {MOST_SEED}")
    return tuple(given)


def _grid(given: Any, where: str) -> dict[str, Any]:
    grid: dict[str, Any] = {}
    for axis, points in mapping(given, where).items():
        if isinstance(points, list):
            _overrides({axis: None}, where)
            grid[axis] = points
        elif isinstance(points, dict):
            grid[axis] = {str(name): _overrides(point, f"{where}.{axis}.{name}") for name, point in points.items()}
        if not grid.get(axis):
            raise ValueError(f"{where}.{axis}: expected a list of values, or points by name, got {points!r}")
    return grid


def _overrides(given: Any, where: str) -> dict[str, Any]:
    overrides = mapping(given, where)
    for key in overrides:
        if str(key).split(".")[0] not in SECTIONS:
            raise ValueError(f"{where}: {key!r} is no option of {', '.join(SECTIONS)}, such as trainer.max_steps")
    return overrides


def _budgets(given: Any) -> dict[str, dict[str, Any]]:
    budgets: dict[str, dict[str, Any]] = {"full": {}}
    for name, budget in mapping(given, "budgets").items():
        where, options = f"budgets.{name}", dict(mapping(budget, f"budgets.{name}"))
        checked = {
            "seeds": _seeds(options.pop("seeds", ()), f"{where}.seeds"),
            "evaluate": _evaluate(options.pop("evaluate", None), f"{where}.evaluate"),
            "only": names(options.pop("only", []), f"{where}.only"),
        }
        budgets[str(name)] = {**_overrides(options, where), **{key: value for key, value in checked.items() if value}}
    return budgets


def _evaluate(given: Any, where: str) -> dict[str, Any]:
    evaluate = mapping(given, where)
    known(evaluate, EVALUATE, where)
    read_scores(names(evaluate.get("metrics", []), f"{where}.metrics"))
    return evaluate


def _scheduler(given: Any) -> dict[str, Any]:
    scheduler = mapping(given, "scheduler")
    if scheduler and not {"class", "metric", "mode"} <= scheduler.keys():
        raise ValueError(
            "scheduler: needs class, metric and mode, for example {class: ASHA, metric: val/loss, mode: min}"
        )
    if scheduler and scheduler["class"] not in SCHEDULERS:
        raise ValueError(f"scheduler.class: {scheduler['class']!r} is none of {', '.join(SCHEDULERS)}")
    if scheduler and scheduler["mode"] not in ("min", "max"):
        raise ValueError(f"scheduler.mode: expected min or max, got {scheduler['mode']!r}")
    return scheduler


def _summary(given: Any) -> dict[str, list[str]]:
    summary = mapping(given, "summary")
    known(summary, ("rows", "scores", "statistics"), "summary")
    checked = {key: names(listed, f"summary.{key}") for key, listed in summary.items()}
    known(checked.get("statistics", ()), STATISTICS, "summary.statistics")
    return checked


def _amount(given: Any, where: str, above: bool = False) -> float:
    """A number of at least 0; above it where nothing is not enough."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given < 0 or (above and given == 0):
        raise ValueError(f"{where}: expected a number {'above' if above else 'of at least'} 0, got {given!r}")
    return given
