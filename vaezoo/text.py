"""Text for people and programs: spelling suggestions, single lines, tables, and JSON of any number.

Run and file names are untrusted, so each output is escaped: terminals, spreadsheets, LaTeX, Markdown.
"""

import json
import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ending for an error about an unknown name: suggests the nearest known one, or is empty."""
    close = get_close_matches(name, dict.fromkeys(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def on_one_line(text: str, longest: int) -> str:
    """Text without line breaks and control characters, shortened if long."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= longest else f"{text[:longest]}…"


def reason(error: BaseException) -> str:
    """Why something failed, on one line."""
    return on_one_line(str(error), 300) or type(error).__name__


def printable(text: object) -> str:
    """Text for the terminal, with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def spreadsheet_cell(text: str) -> str:
    """Text for CSV; a leading quote keeps spreadsheets from reading it as a formula."""
    text = printable(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Table rows as lines with aligned columns."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def tabular(rows: Sequence[Sequence[str]]) -> str:
    """A LaTeX tabular; the first row is its header."""
    header, *body = [" & ".join(map(_escaped, row)) + r" \\" for row in rows]
    begin = rf"\begin{{tabular}}{{{'l' * len(rows[0])}}}"
    return "\n".join([begin, r"\hline", header, r"\hline", *body, r"\hline", r"\end{tabular}", ""])


def json_text(content: Any, **options: Any) -> str:
    """JSON that writes non-finite numbers as the strings "NaN", "Infinity" and "-Infinity".

    Python's `float` and JavaScript's `Number` both read these.

    Args:
        content: Dictionaries, lists and plain values.
        options: As in `json.dumps`.
    """
    return json.dumps(_spelt(content), allow_nan=False, **options)


_LATEX = {character: f"\\{character}" for character in "_%&#${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
}


def _escaped(cell: str) -> str:
    return "".join(_LATEX.get(character, character) for character in printable(cell))


def _spelt(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spelt(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelt(item) for item in value]
    return json.dumps(value) if isinstance(value, float) and not math.isfinite(value) else value
