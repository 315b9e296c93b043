"""The page: its parts in one file, with the runs as data inside."""

import base64
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from vaezoo.report.pictures import Picture
from vaezoo.report.runs import Run
from vaezoo.report.strips import Drawn
from vaezoo.runs.files import atomic_write
from vaezoo.text import json_text

SCRIPTS = ("base.js", "table.js", "curves.js", "settings.js", "explorer.js", "main.js")


@dataclass
class Entry:
    """A run with everything that was drawn of it."""

    run: Run
    drawn: Drawn | None
    pictures: list[Picture]


def write_page(path: Path, entries: Sequence[Entry]) -> None:
    """Write the page, all of it or nothing.

    Raises:
        OSError: The file cannot be written.
    """
    with atomic_write(path) as draft:
        draft.write_text(page(entries), encoding="utf-8")


def check_writable(path: Path) -> None:
    """Fail now rather than after everything is drawn."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file, for example report.html")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe = path.with_name(f".{path.name}.{os.getpid()}")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror}; name another place with -o") from error


def page(entries: Sequence[Entry]) -> str:
    """The HTML of runs.

    Names and settings may come from anyone. They enter as JSON, of which no character can end a script, and the page
    sets them as text only; its policy lets nothing but its own script run and nothing be fetched.
    """
    parts = files("vaezoo.report") / "page"
    style = (parts / "page.css").read_text(encoding="utf-8")
    script = "\n".join((parts / name).read_text(encoding="utf-8") for name in SCRIPTS)
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    content = {"written": time.strftime("%Y-%m-%d %H:%M"), "runs": [_run(entry) for entry in entries]}
    html = (parts / "page.html").read_text(encoding="utf-8")
    # One pass, so that nothing inserted is searched for the next mark.
    inserted = {"policy": policy, "style": style, "data": _json(content), "script": script}
    pieces = html.split("@@")
    return "".join(inserted[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _run(entry: Entry) -> dict[str, Any]:
    run = entry.run
    return {
        "name": run.label or run.name,
        "folder": run.name,
        "model": run.setting("model.class_path"),
        "data": run.setting("data.class_path").removesuffix("DataModule"),
        "source": run.setting("data.init_args.source"),
        "seed": run.setting("seed_everything"),
        "step": entry.drawn.step if entry.drawn else max((curve.x[-1] + 1 for curve in run.curves.values()), default=0),
        "settings": run.settings,
        "curves": {name: {"x": curve.x, "y": curve.y} for name, curve in run.curves.items()},
        "scores": {name: asdict(score) for name, score in run.scores.items()},
        "scored": run.scored,
        "drawn": asdict(entry.drawn) if entry.drawn else None,
        "pictures": [asdict(picture) for picture in entry.pictures],
        "notes": run.notes,
    }


def _json(content: Any) -> str:
    text = json_text(content, separators=(",", ":"))  # ASCII: no U+2028 either
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
