"""The same grid for the agents of Weights & Biases."""

from pathlib import Path
from typing import Any

import yaml

from vaezoo.runs.files import atomic_write
from vaezoo.specs import import_options
from vaezoo.study.file import OWN, Part, Study
from vaezoo.study.grid import axes, flags, text


def write_sweeps(path: Path, study: Study, budget: str) -> list[Path]:
    """Write a sweep for each configuration: an agent's command has one.

    Args:
        path: File to write; with several configurations, their names are added to its own.
        study: The study.
        budget: Which of its budgets.
    """
    files = {
        name: path if len(study.parts) == 1 else path.with_name(f"{path.stem}_{name}{path.suffix}")
        for name in study.parts
    }
    for name, file in files.items():
        content = sweep_config(study, name, study.parts[name], study.budgets[budget])
        with atomic_write(file) as draft:
            draft.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return list(files.values())


def sweep_config(study: Study, name: str, part: Part, budget: dict[str, Any]) -> dict[str, Any]:
    """A grid sweep over one configuration.

    Raises:
        ValueError: An axis sets several options together, or the budget leaves places out, which a sweep cannot.
    """
    for axis, points in axes(study, part).items():
        if isinstance(points, dict):
            raise ValueError(
                f"configs.{name}: the points of {axis!r} are sets of options, but a W&B sweep takes plain values only"
            )
    if "only" in budget:
        raise ValueError(
            "this budget runs only part of the grid, but a W&B sweep runs all of it: choose another --budget"
        )
    fixed = {**study.overrides, **part.overrides, **budget}
    fixed = {key: value for key, value in fixed.items() if key not in (*OWN, *axes(study, part))}
    values = {axis: points for axis, points in axes(study, part).items() if axis not in budget}
    values["seed_everything"] = list(budget.get("seeds") or part.seeds or study.seeds)
    goal = {"min": "minimize", "max": "maximize"}[study.scheduler.get("mode", "min")]
    options = [*import_options(), *flags(fixed), f"--experiment={name}", "--trainer.logger=WandbLogger"]
    return {
        "name": f"{study.name} {name}",
        "program": "vaezoo",
        "method": "grid",
        "metric": {"name": study.scheduler.get("metric", "val/loss"), "goal": goal},
        "parameters": {key: {"values": [_plain(point) for point in points]} for key, points in values.items()},
        "command": ["${env}", "vaezoo", "fit", f"--config={part.config}", *options, "${args}"],
    }


def _plain(value: Any) -> Any:
    """A value that an agent, which knows nothing of JSON, writes as the command line reads it."""
    return value if isinstance(value, (int, float, str)) else text(value)
