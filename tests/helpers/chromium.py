"""A browser for tests: Chromium, driven over a pipe by the DevTools protocol."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")


class Page:
    """One tab."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._buffer, self._id = read, write, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        os.write(
            self._write, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while (answer := self._next()).get("id") != self._id:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, file: Path | str) -> None:
        """Open a file, or an address."""
        self.call("Page.navigate", url=file if isinstance(file, str) else file.resolve().as_uri())
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < end, f"still not true: {condition}"
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        path = (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end))
        for kind, (x, y) in path:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def complaints(self, *own: str) -> list[str]:
        """What the console says, exceptions, and everything fetched but files, data URIs and one's own addresses."""
        self.run("0")  # events come before the answer
        bad = [
            str(e["params"]) for e in self.events if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
        ]
        said = [e["params"] for e in self.events if e.get("method") == "Runtime.consoleAPICalled"]
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [*bad, *map(str, said), *(url for url in sent if not url.startswith(("file:", "data:", *own)))]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], 60)[0], "the browser does not answer"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A page in a browser of its own; the pipe needs neither a port nor a websocket library."""
    assert PROGRAM is not None
    commands, answers = os.pipe(), os.pipe()

    def connect() -> None:  # Chromium reads from descriptor 3 and writes to 4; neither may be overwritten on the way
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (commands[0], answers[1])]
        for number, fd in zip((3, 4), ends, strict=True):
            os.dup2(fd, number)

    command = [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    process = subprocess.Popen(
        command, close_fds=False, preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(commands[0])
    os.close(answers[1])
    try:
        yield Page(answers[0], commands[1])
    finally:
        process.kill()
        process.wait()
        os.close(answers[0])
        os.close(commands[1])
