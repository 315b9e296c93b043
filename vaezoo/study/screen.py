"""The state of all runs while they run: a table in a terminal, one line a change elsewhere."""

import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TextIO

from vaezoo.text import aligned, printable

STATES = ("running", "failed", "waiting", "done")  # what matters first


@dataclass
class Line:
    """One run on the screen.

    Attributes:
        name: Its name.
        state: "waiting", "running", "done" or "failed".
        step: The last step it logged.
        loss: The training loss there.
        seconds: Time spent on it.
        note: What happened to it.
        silence: That it makes no progress, where it does not.
    """

    name: str
    state: str = "waiting"
    step: int | None = None
    loss: float | None = None
    seconds: float = 0.0
    note: str = ""
    silence: str = ""

    def cells(self) -> list[str]:
        """What is shown."""
        step, loss = "" if self.step is None else f"{self.step:,}", "" if self.loss is None else f"{self.loss:.4g}"
        time = f"{int(self.seconds) // 3600}:{int(self.seconds) // 60 % 60:02}:{int(self.seconds) % 60:02}"
        said = "; ".join(filter(None, [self.silence, self.note]))
        return [self.name, self.state, step, loss, time if self.seconds else "", said]


HEADER = ["run", "state", "step", "loss", "time", ""]


class Screen:
    """Shows lines again and again.

    Args:
        file: Where; redrawn in place where it is a terminal.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file or sys.stdout
        self._shown: dict[str, tuple[str, ...]] = {}
        self._height = 0

    def show(self, lines: list[Line]) -> None:
        """Show the present state."""
        if self.file.isatty():
            self._redraw(lines)
        else:
            for line in lines:
                if self._shown.get(line.name, ("waiting", "", "")) != (line.state, line.note, line.silence):
                    self._shown[line.name] = line.state, line.note, line.silence
                    print("  ".join(printable(cell) for cell in line.cells() if cell), file=self.file, flush=True)

    def _redraw(self, lines: list[Line]) -> None:
        width, height = shutil.get_terminal_size()
        count = Counter(line.state for line in lines)
        total = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
        # Runs beyond the screen could not be redrawn; those that wait or are done are the least interesting.
        kept = sorted(lines, key=lambda line: STATES.index(line.state))[: max(1, height - 4)]
        rows = [*aligned([HEADER, *(line.cells() for line in kept)]), total]
        up = f"\x1b[{self._height}F" if self._height else ""
        self.file.write(up + "".join(f"\x1b[2K{row[: width - 1]}\n" for row in rows) + "\x1b[0J")
        self.file.flush()
        self._height = len(rows)
