"""Scores that a shared model comes with: taken from what `vaezoo evaluate` left, and computed once more."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vaezoo.evaluation.report import as_plain, from_plain, main_scores
from vaezoo.evaluation.scores import evaluate
from vaezoo.metrics.arguments import settable
from vaezoo.metrics.scoring import Evaluation
from vaezoo.models import VAE
from vaezoo.runs.folder import all_scores

KEPT = ("split", "source", "images", "seed", "latents", "metrics")
"""What is kept of an evaluation: enough to repeat it."""
TOLERANCE = 1e-3
"""Share of a score without an interval by which it may differ when it is computed again: by device and library."""


def kept_scores(record: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a `metrics.json`.

    Raises:
        ValueError: It holds no scores.
    """
    from_plain(record)
    data = record.get("data")
    flat = {**record, **({key: data.get(key) for key in ("split", "source")} if isinstance(data, dict) else {})}
    return {name: flat.get(name) for name in KEPT}


def scores_beside(checkpoint: Path) -> dict[str, Any] | None:
    """Scores that `vaezoo evaluate` left of this checkpoint, and of no other one; None where there are none."""
    for file in all_scores(checkpoint.parent):
        record = read_scores_file(file)
        if record.get("checkpoint") == checkpoint.name:
            return kept_scores(record)
    return None


def read_scores_file(file: Path) -> dict[str, Any]:
    """Content of a `metrics.json`.

    Raises:
        ValueError: It is none.
    """
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        from_plain(record)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} holds no scores as vaezoo evaluate writes them ({error})") from error
    return dict(record)


def again(model: VAE, data: Any, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Compute kept scores of a model once more, with the same images, seed, arguments and resamples.

    Args:
        model: The model.
        data: Its data, set up.
        kept: The scores.
    """
    definitions = {label: result.definition for label, result in from_plain(kept).results.items()}
    resamples = {(definition.get("interval") or {}).get("resamples", 0) for definition in definitions.values()}
    # A record names the groups that codes are read from; asked for by name, the KL would leave out all others.
    own = [name for name, group in model.latents.items() if group.decoded]
    found = evaluate(
        model,
        data,
        [_entry(label, definition) for label, definition in definitions.items()],
        int(kept["images"]),
        kept.get("split") or data.evaluation_split,
        int(kept.get("seed") or 0),
        resamples.pop() if len(resamples) == 1 else None,  # the catalogue has several
        None if kept.get("latents") == own else kept.get("latents"),
    )
    return kept_scores({**kept, **as_plain(found)})


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Scores that left their interval, or differ by more than `TOLERANCE` where they have none, in words."""
    one, two = from_plain(before), from_plain(after)
    lines = []
    for metric, result in one.results.items():
        for name in main_scores(result):
            value = result.scores[name]
            low, high = result.intervals.get(name, (value, value))
            room = TOLERANCE * max(1.0, abs(value))
            now = two.results[metric].scores[name]
            if value == value and not low - room <= now <= high + room:  # NaN is the same as any
                lines.append(f"{name} was {value:.4g} [{low:.4g}, {high:.4g}] and is {now:.4g}")
    return lines


def largest_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, float]:
    """The main score that changed most, and by how much."""
    one, two = from_plain(before), from_plain(after)
    changes = [
        (abs(two.results[metric].scores[name] - result.scores[name]), name)
        for metric, result in one.results.items()
        for name in main_scores(result)
    ]
    change, name = max((pair for pair in changes if pair[0] == pair[0]), default=(0.0, "all"))
    return name, change


def shown(kept: Mapping[str, Any] | None) -> Evaluation:
    """Kept scores for tables; none of them where there are none."""
    return from_plain(kept) if kept else Evaluation({}, {}, 0)


def _entry(label: str, definition: Mapping[str, Any]) -> str:
    """A score as `--metrics` names it, with the arguments that it was computed with."""
    name = label.partition("[")[0]
    given = definition.get("arguments") or {}
    arguments = {key: given[key] for key in settable(name) if given.get(key) is not None}
    return f"{label}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})" if arguments else label
