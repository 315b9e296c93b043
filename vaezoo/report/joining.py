"""Which runs a report shows: one that was continued is one run, starts that came to nothing are left out."""

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

from vaezoo.report.logs import read_curves
from vaezoo.report.runs import Run
from vaezoo.report.scores import Score, last_values
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.labels import NAME, run_labels

_LIMITS = ("ckpt_path", NAME, "allow_changes", "trainer.max_", "trainer.logger")  # may change in a run that goes on


def shown_runs(runs: Sequence[Run], points: int, empty: Container[Path] | None = ()) -> tuple[list[Run], int]:
    """Runs as a report shows them, labelled, and how many starts it leaves out.

    Args:
        runs: All that were read, the newest first.
        points: Most points of a curve.
        empty: Folders to show although they hold neither a logged row nor a checkpoint; None for all.
    """
    kept = [run for run in runs if empty is None or not run.empty or run.path in empty]
    joined = join_continued(kept, points)
    for run, label in zip(joined, run_labels([run.settings for run in joined], [r.name for r in joined]), strict=True):
        run.label = label
    return joined, len(runs) - len(kept)


def join_continued(runs: Sequence[Run], points: int) -> list[Run]:
    """One run for each training: the last folder, with the curves of those that it continues.

    Of several that continue the same run with the same settings, as after a kill, the furthest stands for all. What
    `vaezoo test` logged becomes scores of the run that it tested.

    Args:
        runs: All that were read, the newest first.
        points: Most points of a curve.
    """
    before = {id(run): _continued(run, runs) for run in runs}
    chains = {id(run): _chain(run, before) for run in runs}
    # Trainings by where they began and with which settings; of each, the run that went furthest.
    furthest: dict[tuple[int, tuple[tuple[str, str], ...]], Run] = {}
    for run in runs:
        if run.trained or before[id(run)] is None:
            key = id(chains[id(run)][0]), _kept_settings(run)
            if key not in furthest or _rank(run) > _rank(furthest[key]):
                furthest[key] = run
    shown = []
    for run in furthest.values():
        further = [other for other in furthest.values() if other is not run and _holds(chains[id(other)], run)]
        if not further:  # else one with changed settings goes on with it
            shown.append(_joined(chains[id(run)], points))
            tests = [test for test in runs if not test.trained and _holds(chains[id(run)], before[id(test)])]
            for test in reversed(tests):
                shown[-1].scores |= _tested(test)
    return sorted(shown, key=lambda run: [other.path for other in runs].index(run.path))


def _holds(chain: Sequence[Run], run: Run | None) -> bool:
    return any(other is run for other in chain)


def _continued(run: Run, runs: Sequence[Run]) -> Run | None:
    """The run from whose checkpoint another one started, wherever both lie now."""
    checkpoint = run.settings.get("ckpt_path", "null")
    if checkpoint == "null":
        return None
    folder = RunFolder.of(checkpoint).path
    for place in (folder.resolve(), run.path.resolve().parent / folder.name):
        for other in runs:
            if other is not run and other.path.resolve() == place:
                return other
    return None


def _chain(run: Run, before: dict[int, Run | None]) -> list[Run]:
    """A run after those that it continues, the first one first."""
    chain = [run]
    while (earlier := before[id(chain[0])]) is not None and not _holds(chain, earlier):
        chain.insert(0, earlier)
    return chain


def _kept_settings(run: Run) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in run.settings.items() if not item[0].startswith(_LIMITS)))


def _rank(run: Run) -> tuple[int, str]:
    """How far a run is; of several, the latest."""
    return max((curve.x[-1] for curve in run.curves.values()), default=-1), run.path.name


def _joined(chain: Sequence[Run], points: int) -> Run:
    last = chain[-1]
    if len(chain) == 1:
        return last
    logs: list[Path] = [RunFolder(run.path).log for run in chain if run.curves]
    curves = read_curves(logs, points)
    names = [run.settings[NAME] for run in chain if run.settings.get(NAME, "null") != "null"]
    # Scores of an earlier checkpoint are none of this one's.
    evaluated = {name: score for name, score in last.scores.items() if name not in last.curves}
    return replace(
        last,
        curves=curves,
        settings=last.settings | ({NAME: names[-1]} if names else {}),
        scores=evaluated | last_values(curves),
        checkpoint=last.checkpoint or next((run.checkpoint for run in reversed(chain) if run.checkpoint), None),
        pictures=last.pictures or next((run.pictures for run in reversed(chain) if run.pictures), []),
        notes=[f"continues {', '.join(run.name for run in chain[:-1])}", *last.notes],
    )


def _tested(test: Run) -> dict[str, Score]:
    values = {name: curve.last for name, curve in test.curves.items() if name.startswith("test/")}
    return {
        name: Score(value, main=name.count("/") == 1, about="logged by vaezoo test") for name, value in values.items()
    }
