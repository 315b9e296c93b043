"""A study's YAML file, checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from vaezoo.evaluation.arguments import read_scores
from vaezoo.study.stopping import SCHEDULERS

SECTIONS = ("model", "data", "trainer")
EVALUATE = ("metrics", "images", "split", "latents", "resamples", "seed")
OWN = ("seeds", "evaluate", "only")  # keys of a budget that are no options of a run
STATISTICS = ("n", "mean", "lowest", "highest", "best")


@dataclass(frozen=True)
class Part:
    """One configuration of a study, with what is its own.

    Attributes:
        config: Path of its file.
        overrides: Options of all its runs.
        grid: Axes by name. A list holds values of the option that the axis is named after; a mapping holds points by
            name, each with the options that it sets together.
        seeds: Its seeds, where they differ from the study's.
    """

    config: Path
    overrides: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Study:
    """What a study's file says.

    Attributes:
        name: Name of the study.
        parts: Its configurations by name.
        seeds: Seeds of every run.
        grid: Axes that all configurations share.
        overrides: Options of all runs.
        budgets: Options by budget, which win over all others; `seeds` and `evaluate` replace the study's, `only` names
            the places in the grid that are run, as patterns of their names.
        evaluate: Options of `vaezoo evaluate`.
        cpus: CPUs of a run.
        gpus: GPUs of a run.
        scheduler: Class, metric, mode and options of a scheduler of Ray Tune; empty for none.
        summary: `rows`, `scores` and `statistics` of the summary.
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


def read_study(path: Path) -> Study:
    """Read and check a study.

    Raises:
        ValueError: Something in it is wrong; the message says where.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no study at {path}")
    try:
        content = _mapping(yaml.safe_load(path.read_text(encoding="utf-8")), "the file")
        return _study(content, path.stem)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _study(given: dict[str, Any], stem: str) -> Study:
    known = (
        "name",
        "configs",
        "seeds",
        "grid",
        "overrides",
        "budgets",
        "evaluate",
        "resources",
        "scheduler",
        "summary",
    )
    _known(given, known, "the study")
    parts = {str(name): _part(part, name) for name, part in _mapping(given.get("configs"), "configs").items()}
    if not parts:
        raise ValueError("configs names no configuration, for example {larvae: experiments/larvae_3dshapes.yaml}")
    resources = _mapping(given.get("resources"), "resources")
    _known(resources, ("cpus", "gpus"), "resources")
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
    )


def _part(given: Any, name: str) -> Part:
    where = f"configs.{name}"
    given = {"config": given} if isinstance(given, str) else _mapping(given, where)
    _known(given, ("config", "overrides", "grid", "seeds"), where)
    config = Path(str(given.get("config", "")))
    if not config.is_file():
        raise ValueError(f"{where}: no file {str(config)!r}; paths start at the current folder")
    return Part(
        config,
        _overrides(given.get("overrides"), f"{where}.overrides"),
        _grid(given.get("grid"), f"{where}.grid"),
        _seeds(given.get("seeds", ()), f"{where}.seeds"),
    )


def _seeds(given: Any, where: str) -> tuple[int, ...]:
    """Seeds as a list, or how many, counted from 0."""
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return tuple(range(given))
    if not isinstance(given, (list, tuple)) or not all(type(seed) is int and seed >= 0 for seed in given):
        raise ValueError(f"{where}: expected a list of whole numbers, or how many, got {given!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"{where}: a seed is there twice")
    return tuple(given)


def _grid(given: Any, where: str) -> dict[str, Any]:
    grid: dict[str, Any] = {}
    for axis, points in _mapping(given, where).items():
        if isinstance(points, list):
            _overrides({axis: None}, where)
            grid[axis] = points
        elif isinstance(points, dict):
            grid[axis] = {str(name): _overrides(point, f"{where}.{axis}.{name}") for name, point in points.items()}
        if not grid.get(axis):
            raise ValueError(f"{where}.{axis}: expected a list of values, or points by name, got {points!r}")
    return grid


def _overrides(given: Any, where: str) -> dict[str, Any]:
    overrides = _mapping(given, where)
    for key in overrides:
        if str(key).split(".")[0] not in SECTIONS:
            raise ValueError(f"{where}: {key!r} is no option of {', '.join(SECTIONS)}, such as trainer.max_steps")
    return overrides


def _budgets(given: Any) -> dict[str, dict[str, Any]]:
    budgets: dict[str, dict[str, Any]] = {"full": {}}
    for name, budget in _mapping(given, "budgets").items():
        where, options = f"budgets.{name}", dict(_mapping(budget, f"budgets.{name}"))
        checked = {
            "seeds": _seeds(options.pop("seeds", ()), f"{where}.seeds"),
            "evaluate": _evaluate(options.pop("evaluate", None), f"{where}.evaluate"),
            "only": _names(options.pop("only", []), f"{where}.only"),
        }
        budgets[str(name)] = {**_overrides(options, where), **{key: value for key, value in checked.items() if value}}
    return budgets


def _evaluate(given: Any, where: str) -> dict[str, Any]:
    evaluate = _mapping(given, where)
    _known(evaluate, EVALUATE, where)
    read_scores(_names(evaluate.get("metrics", []), f"{where}.metrics"))
    return evaluate


def _scheduler(given: Any) -> dict[str, Any]:
    scheduler = _mapping(given, "scheduler")
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
    summary = _mapping(given, "summary")
    _known(summary, ("rows", "scores", "statistics"), "summary")
    checked = {key: _names(names, f"summary.{key}") for key, names in summary.items()}
    _known(checked.get("statistics", ()), STATISTICS, "summary.statistics")
    return checked


def _amount(given: Any, where: str, above: bool = False) -> float:
    """A number of at least 0; above it where nothing is not enough."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given < 0 or (above and given == 0):
        raise ValueError(f"{where}: expected a number {'above' if above else 'of at least'} 0, got {given!r}")
    return given


def _names(given: Any, where: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"{where}: expected a list of names, got {given!r}")
    return given


def _mapping(given: Any, where: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"{where}: expected keys with values, got {given!r}")
    return dict(given)


def _known(given: Iterable[Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            close = get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f" (known: {', '.join(known)})"
            raise ValueError(f"{where}: unknown key {key!r}{hint}")
