"""Downloads from a local server that cuts off, stalls, damages and refuses."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from datamodules import download as module
from datamodules.download import download

BODY = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
MD5 = hashlib.md5(BODY).hexdigest()
Reply = Callable[["Handler"], None]


class Server(ThreadingHTTPServer):
    """Gives each request the next reply, and the last one for ever; notes the ranges that were asked for."""

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.ranges = list(replies), list[str | None]()
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no news."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.ranges.append(self.headers["Range"])
        reply = self.server.replies.pop(0) if len(self.server.replies) > 1 else self.server.replies[0]
        reply(self)

    def log_message(self, *args: object) -> None:
        pass

    def begin(self, body: bytes, ranges: bool = True) -> bytes:
        """Send the header; return what the body must be."""
        wanted = self.headers["Range"] if ranges else None
        first = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if first >= len(body):
            self.send_error(416)
            return b""
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - first))
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        return body[first:]


def whole(handler: Handler) -> None:
    handler.wfile.write(handler.begin(BODY))


def cut_off(handler: Handler) -> None:
    handler.wfile.write(handler.begin(BODY)[:100_000])


def stalled(handler: Handler) -> None:
    handler.wfile.write(handler.begin(BODY)[:50_000])
    handler.wfile.flush()
    handler.server.released.wait(20)


def damaged(handler: Handler) -> None:
    body = bytearray(BODY)
    body[200_000] ^= 1
    handler.wfile.write(handler.begin(bytes(body)))


def without_ranges(handler: Handler) -> None:
    handler.wfile.write(handler.begin(BODY, ranges=False))


def missing(handler: Handler) -> None:
    handler.send_error(404)


def chunked(size: int) -> Reply:
    """A reply without a length, of two pieces, the second cut off at a size."""

    def reply(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in (BODY[:150_000], BODY[150_000:]):
            handler.wfile.write(b"%x\r\n" % len(piece) + piece[:size] + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n" if size >= 150_000 else b"")

    return reply


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setattr(module, "PAUSE", 0)
    servers = []

    def start(*replies: Reply) -> Server:
        servers.append(Server(*replies))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}).start()
        return servers[-1]

    yield start
    for server in servers:
        server.released.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "data" / "file.bin"


def part_of(target: Path) -> Path:
    return target.with_name("file.bin.part")


def test_a_whole_reply(serve: Callable[..., Server], target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve(whole)
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY
    assert not part_of(target).exists()
    assert "file.bin: 100%" in capsys.readouterr().err
    download(server.url, target, MD5)
    assert server.ranges == [None]  # there already


def test_a_cut_off_reply_is_resumed(serve: Callable[..., Server], target: Path) -> None:
    server = serve(cut_off, cut_off, whole)
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_a_reply_that_is_always_cut_off_stays_resumable(serve: Callable[..., Server], target: Path) -> None:
    server = serve(lambda handler: handler.wfile.write(handler.begin(BODY)[:10]))
    with pytest.raises(
        ConnectionError, match=r"closed after 30 of 300000 bytes\): 30 bytes are kept in .*bin\.part, run"
    ):
        download(server.url, target, MD5)
    assert not target.exists()
    assert part_of(target).read_bytes() == BODY[:30]
    server = serve(whole)
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY
    assert server.ranges == ["bytes=30-"]


def test_a_stalled_reply_is_given_up_and_resumed(serve: Callable[..., Server], target: Path) -> None:
    server = serve(stalled, whole)
    start = time.monotonic()
    download(server.url, target, MD5, timeout=0.3)
    assert time.monotonic() - start < 5
    assert target.read_bytes() == BODY
    assert server.ranges == [None, "bytes=50000-"]


def test_a_server_that_always_stalls(serve: Callable[..., Server], target: Path) -> None:
    server = serve(stalled)
    with pytest.raises(ConnectionError, match=r"timed out\): 150000 bytes are kept in .*run again to resume"):
        download(server.url, target, MD5, timeout=0.2)
    assert part_of(target).read_bytes() == BODY[:150_000]


def test_a_damaged_reply_is_fetched_anew(serve: Callable[..., Server], target: Path) -> None:
    server = serve(damaged, whole)
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY
    assert server.ranges == [None, None]


def test_a_reply_that_is_always_damaged(serve: Callable[..., Server], target: Path) -> None:
    with pytest.raises(ValueError, match=rf"without the MD5 checksum {MD5}: fetch file\.bin elsewhere"):
        download(serve(damaged).url, target, MD5)
    assert not target.exists()
    assert not part_of(target).exists()


@pytest.mark.parametrize("stale", [b"something else", BODY + b"and more", bytes(300_000)])
def test_a_partial_file_of_another_version(serve: Callable[..., Server], target: Path, stale: bytes) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(stale)
    server = serve(whole)
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY
    assert server.ranges == [f"bytes={len(stale)}-", None]


def test_a_partial_file_that_is_whole(serve: Callable[..., Server], target: Path) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(BODY)
    download(serve(whole).url, target, MD5)
    assert target.read_bytes() == BODY


def test_a_server_without_ranges_starts_over(serve: Callable[..., Server], target: Path) -> None:
    server = serve(cut_off, without_ranges)
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY
    assert server.ranges == [None, "bytes=100000-"]


def test_replies_without_a_length(serve: Callable[..., Server], target: Path) -> None:
    server = serve(chunked(140_000), chunked(150_000))
    download(server.url, target, MD5)
    assert target.read_bytes() == BODY


def test_an_address_without_a_file(serve: Callable[..., Server], target: Path) -> None:
    with pytest.raises(ConnectionError, match=r"answered 404 Not Found\): run again, or put the file at .*file\.bin"):
        download(serve(missing).url, target, MD5)


def test_no_server(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionError, match="refused"):
            download(f"http://127.0.0.1:{taken.getsockname()[1]}/file.bin", target, MD5)


def test_callers_at_once_fetch_once(serve: Callable[..., Server], target: Path) -> None:
    server = serve(whole)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download(server.url, target, MD5), range(4)))
    assert target.read_bytes() == BODY
    assert server.ranges == [None]


def test_a_disk_that_cannot_be_written(serve: Callable[..., Server], target: Path) -> None:
    target.parent.write_text("")
    with pytest.raises(OSError, match=r"file\.bin cannot be written \(File exists\).*set data_dir"):
        download(serve(whole).url, target, MD5)


@pytest.mark.parametrize("suffix", ["part", "lock"])
def test_nothing_is_written_through_a_link(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / f"file.{suffix}").symlink_to(tmp_path / "mine")
    with pytest.raises(ValueError, match=rf"file\.{suffix} is a link: remove it"):
        download("http://127.0.0.1:9/file", tmp_path / "file", MD5)
    assert (tmp_path / "mine").read_text() == "mine"
