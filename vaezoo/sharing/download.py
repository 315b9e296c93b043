"""One file from the web, of a size and checksum that are known before."""

from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from tqdm import tqdm

from vaezoo.runs.files import atomic_write
from vaezoo.runs.shared import sha256_of

_BLOCK = 1 << 16
_TIMEOUT = 30.0  # seconds without a byte


def download(address: str, target: Path, size: int, sha256: str) -> None:
    """Fetch a file; it is in place only once it is the one that was asked for.

    Args:
        address: Where it lies; http or https.
        target: Where it goes.
        size: Its bytes; no more of them are read.
        sha256: Its checksum, in hexadecimal digits.

    Raises:
        ConnectionError: It did not come.
        ValueError: What came is another file.
    """
    if not address.startswith(("https://", "http://")):
        raise ValueError(f"{address} is no address of the web: it begins with https://")
    with atomic_write(target) as draft:
        try:
            _transfer(address, draft, size)
        except (HTTPException, TimeoutError, ConnectionError, OSError) as error:
            raise ConnectionError(
                f"{address} could not be downloaded ({error}): check the network and run again"
            ) from error
        if draft.stat().st_size != size or sha256_of(draft) != sha256:
            raise ValueError(
                f"{address} gave another file than was asked for: its SHA-256 is not {sha256}; nothing was kept; run "
                "again, and report it where it happens again"
            )


def _transfer(address: str, draft: Path, size: int) -> None:
    left = size + 1  # one more tells a file that is too long
    with (
        urlopen(address, timeout=_TIMEOUT) as reply,
        draft.open("wb") as file,
        tqdm(desc=address.rpartition("/")[2], total=size, unit="B", unit_scale=True, disable=None) as bar,
    ):
        while left and (block := reply.read(min(_BLOCK, left))):
            file.write(block)
            left -= len(block)
            bar.update(len(block))
