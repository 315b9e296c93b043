"""A study as a list of runs."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from vaezoo.metrics.arguments import read_scores
from vaezoo.runs.files import read_yaml
from vaezoo.specs import import_options
from vaezoo.study.columns import axis_columns, short_name
from vaezoo.study.file import OWN, Part, Study
from vaezoo.study.includes import digest, included_files
from vaezoo.study.plot_section import check_plots


@dataclass(frozen=True)
class Run:
    """One training and its scores.

    Attributes:
        name: Configuration, place in the grid and seed, for people.
        part: Name of its configuration in the study.
        config: File of the configuration.
        content: What is in it.
        place: Place in the grid by the column of each axis.
        overrides: Options that win over the configuration.
        seed: Seed of the training.
        evaluate: Options of `vaezoo evaluate`.
        files: Checksums of the files that configuration and options name.
    """

    name: str
    part: str
    config: Path
    content: Any
    place: dict[str, Any]
    overrides: dict[str, Any]
    seed: int
    evaluate: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)

    @property
    def training(self) -> str:
        """Identity of the training: what its result depends on; no name, no comment, and not whether it is compiled."""
        overrides = {key: value for key, value in self.overrides.items() if key != "compile"}
        return _digest([self.content, overrides, self.seed, *([self.files] if self.files else [])])

    @property
    def identity(self) -> str:
        """Identity of the run, scores included."""
        return _digest([self.training, self.evaluate])

    @property
    def experiment(self) -> str:
        """Name of its folder: another training never meets this one's files."""
        return f"{self.name}-{self.training[:8]}"

    def fit(self, runs_dir: Path) -> list[str]:
        """Arguments of `vaezoo` that train it."""
        options = {**self.overrides, "trainer.enable_progress_bar": False}
        place = [f"--runs_dir={runs_dir}", f"--experiment={self.experiment}", f"--seed_everything={self.seed}"]
        return ["fit", *import_options(), f"--config={self.config}", *flags(options), *place]

    def scores(self) -> list[str]:
        """Arguments of `vaezoo` that score a checkpoint, which comes last."""
        args = ["evaluate", *import_options()]
        for key, value in self.evaluate.items():
            args += [f"--{key}", *(map(text, value) if isinstance(value, list) else [text(value)])]
        return [*args, "--ckpt_path"]


def expand(study: Study, budget: str = "full") -> list[Run]:
    """All runs of a study: configurations × grids × seeds.

    Args:
        study: The study.
        budget: Which of its budgets.

    Raises:
        ValueError: There is no such budget, a configuration has no seeds, two runs have one name, the summary names an
            axis that is not there, a plot an axis or score, or the budget a run.
    """
    if budget not in study.budgets:
        raise ValueError(f"no budget is called {budget!r}: {study.name} has {', '.join(study.budgets)}")
    runs = [run for name, part in study.parts.items() for run in _runs(study, name, part, study.budgets[budget])]
    columns = {"config", "seed", *(axis for run in runs for axis in run.place)}
    for row in study.summary.get("rows", []):
        if row not in columns:
            raise ValueError(
                f"{study.name}: summary.rows: no axis is called {row!r}, there are {', '.join(sorted(columns))}"
            )
    _check_plots(study)
    for pattern in study.budgets[budget].get("only", []):
        if not any(fnmatchcase(run.name.rpartition("-s")[0], pattern) for run in runs):
            raise ValueError(f"{study.name}: budgets.{budget}.only: no run fits {pattern!r}")
    twice = [name for name, count in Counter(run.name for run in runs).items() if count > 1]
    if twice:
        raise ValueError(f"{study.name}: two runs are called {twice[0]!r}")
    return runs


def chosen(runs: Sequence[Run], patterns: Sequence[str]) -> list[Run]:
    """Runs whose names match a pattern.

    Args:
        runs: Runs of a study.
        patterns: Names; `*` matches anything.

    Raises:
        ValueError: No run matches one of them.
    """
    for pattern in patterns:
        if not any(fnmatchcase(run.name, pattern) for run in runs):
            raise ValueError(f"--only: no run is called {pattern!r}; there are {', '.join(run.name for run in runs)}")
    return [run for run in runs if any(fnmatchcase(run.name, pattern) for pattern in patterns)]


def axes(study: Study, part: Part) -> dict[str, Any]:
    """Axes of a configuration: those of the study, and its own, which replace those of the same name."""
    return {**study.grid, **part.grid}


def flags(options: Mapping[str, Any]) -> list[str]:
    """Options as arguments of the command line."""
    return [f"--{key}={text(value)}" for key, value in options.items()]


def text(value: Any) -> str:
    """A value as the command line reads it."""
    return value if isinstance(value, str) else json.dumps(value)


def _runs(study: Study, name: str, part: Part, budget: dict[str, Any]) -> Iterator[Run]:
    options = {key: value for key, value in budget.items() if key not in OWN}
    seeds = budget.get("seeds") or part.seeds or study.seeds
    if not seeds:
        raise ValueError(f"{study.name}: no seeds for {name}; give seeds: [0, 1, 2], or how many")
    content, own, columns = read_yaml(part.config), axes(study, part), _columns(study, part)
    files = included_files(content, part.config.parent)
    evaluate = {**study.evaluate, **part.evaluate, **budget.get("evaluate", {})}
    for points in product(*(_points(axis, given) for axis, given in own.items())):
        place = {columns[axis]: value for axis, value, _ in points}
        chosen = {key: value for *_, point in points for key, value in point.items()}
        overrides = {**study.overrides, **part.overrides, **chosen, **options}
        title = "-".join([name, *(f"{short_name(axis, own[axis])}={text(value)}" for axis, value, _ in points)])
        title = re.sub(r"[^\w.=+-]+", "_", title)
        if any(fnmatchcase(title, pattern) for pattern in budget.get("only", ["*"])):
            named = {**files, **included_files(overrides, Path())}
            for seed in seeds:
                yield Run(f"{title}-s{seed}", name, part.config, content, place, overrides, seed, evaluate, named)


def _check_plots(study: Study) -> None:
    places = [column for part in study.parts.values() for column in _columns(study, part).values()]
    evaluations = [study.evaluate, *(part.evaluate for part in study.parts.values())]
    evaluations += [budget.get("evaluate", {}) for budget in study.budgets.values()]
    metrics = [label for options in evaluations for label in read_scores(options.get("metrics", []))]
    try:
        check_plots(study.plots, list(dict.fromkeys(["config", *places])), list(dict.fromkeys(metrics)))
    except ValueError as error:
        raise ValueError(f"{study.name}: {error}") from error


def _points(axis: str, given: Any) -> list[tuple[str, Any, dict[str, Any]]]:
    """Points of an axis: its name, the value there, and the options set."""
    if isinstance(given, dict):
        return [(axis, name, point) for name, point in given.items()]
    return [(axis, value, {axis: value}) for value in given]


def _columns(study: Study, part: Part) -> dict[str, str]:
    try:
        return axis_columns(axes(study, part))
    except ValueError as error:
        raise ValueError(f"{study.name}: {error}") from error


def _digest(content: Any) -> str:
    return digest(json.dumps(content, sort_keys=True, default=str))
