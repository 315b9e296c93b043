"""Download files: resumed, verified and moved into place only when complete."""

import hashlib
import time
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from filelock import FileLock
from tqdm import tqdm

ATTEMPTS = 3
PAUSE = 1.0  # seconds between attempts
BLOCK = 1 << 16


def download(url: str, target: Path, md5: str | None, timeout: float = 30) -> None:
    """Download a file unless it exists.

    A partial download is kept in `<target>.part`; the next call resumes it.

    Args:
        url: Address of the file.
        target: Where to save it, atomically.
        md5: Expected checksum. None skips the check.
        timeout: Give up after so many seconds without data.

    Raises:
        ConnectionError: The download failed or is incomplete; the partial file stays.
        ValueError: The checksum is wrong, and the file is removed; or the target is a link.
        OSError: It cannot be written; the partial file stays.
    """
    part, lock = Path(f"{target}.part"), Path(f"{target}.lock")
    for path in (part, lock):
        if path.is_symlink():  # it would write to wherever the link leads
            raise ValueError(f"{path} is a link: remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            if not target.exists():  # another process may have fetched it meanwhile
                _fetch(url, target, part, md5, timeout)
    except ConnectionError:
        raise
    except OSError as error:  # those of the network have become ConnectionError
        raise OSError(
            f"{target} cannot be written ({error.strerror}): free the space or set data_dir to a writable folder; "
            "run again to resume"
        ) from error


def _fetch(url: str, target: Path, part: Path, md5: str | None, timeout: float) -> None:
    reason = ""
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE if attempt else 0)
        try:
            _transfer(url, part, timeout)
        except _TransferError as error:
            reason = str(error)
            continue
        if md5 is None or _md5(part) == md5:
            part.replace(target)
            return
        part.unlink()  # damaged, or pieces of two versions: there is nothing to resume
        reason = "checksum"
    if reason == "checksum":
        raise ValueError(
            f"{url} gave a file without the MD5 checksum {md5}: fetch {target.name} elsewhere and put it at {target}"
        )
    kept = f"{_size(part)} bytes are kept in {part}, run again to resume there" if _size(part) else "run again"
    raise ConnectionError(f"{url} could not be downloaded ({reason}): {kept}, or put the file at {target} yourself")


class _TransferError(Exception):
    """The network's fault; trying again may help."""


def _transfer(url: str, part: Path, timeout: float) -> None:
    """Append to the partial file what it lacks."""
    have = _size(part)
    try:
        reply = urlopen(Request(url, headers={"Range": f"bytes={have}-"} if have else {}), timeout=timeout)
    except HTTPError as error:
        if error.code == 416:  # nothing comes after these bytes: all is here, or too much, which the checksum tells
            return
        raise _TransferError(f"the server answered {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        raise _TransferError(str(error)) from error
    with reply:
        if reply.status != 206:  # the server sends the whole file again
            have = 0
        length = reply.headers["Content-Length"]
        total = None if length is None else have + int(length)
        with (
            part.open("ab" if have else "wb") as file,
            tqdm(desc=part.stem, total=total, initial=have, unit="B", unit_scale=True) as bar,
        ):
            for block in _blocks(reply):
                file.write(block)
                bar.update(len(block))
    if total is not None and _size(part) < total:
        raise _TransferError(f"the connection closed after {_size(part)} of {total} bytes")


def _blocks(reply: HTTPResponse) -> Iterator[bytes]:
    """The body of a reply; errors of the network, and only those, become interruptions."""
    try:
        while block := reply.read1(BLOCK):  # what has come by now, so that a stall loses nothing
            yield block
    except (OSError, HTTPException) as error:
        raise _TransferError(f"the connection broke: {error}") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
