"""A server on this machine that speaks as much of the Hugging Face Hub as `huggingface_hub` asks for here.

Requests and answers were read off the library. What the real Hub makes of them is not imitated.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import RLock, Thread
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Hub:
    """Repositories as commits of files, and what was asked for."""

    address: str = ""
    lock: Any = field(default_factory=RLock)
    repos: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def post(self, path: str, body: bytes) -> Any:
        sent = json.loads(body) if body.startswith(b"{") and b"\n" not in body.strip() else {}
        if path == "/api/repos/create":
            name = "/".join(filter(None, (sent.get("organization"), sent["name"])))
            self.repos.setdefault(name, {})
            self.private[name] = sent.get("visibility") == "private" or bool(sent.get("private"))
            return {"url": f"{self.address}/{name}", "name": name}
        if path == "/api/validate-yaml":
            return {"errors": [], "warnings": []}
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/preupload/main", path):
            modes = {True: "lfs", False: "regular"}
            names = [file["path"] for file in sent["files"]]
            files = [
                {"path": name, "uploadMode": modes[name.endswith(".safetensors")], "shouldIgnore": False}
                for name in names
            ]
            return {"files": files}
        if re.fullmatch(r"/[^/]+/[^/]+\.git/info/lfs/objects/batch", path):
            return {"transfer": "basic", "objects": [self._upload(entry) for entry in sent["objects"]]}
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", path):
            return self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        return None

    def _upload(self, entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "actions": {"upload": {"href": f"{self.address}/store/{entry['oid']}"}}}

    def _commit(self, repo: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                self.repos[repo][value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.repos[repo][value["path"]] = self.large[value["oid"]]
        commit = self.commit(repo)
        return {
            "success": True,
            "commitOid": commit,
            "commitUrl": f"{self.address}/{repo}/commit/{commit}",
            "hookOutput": "",
        }

    def commit(self, repo: str) -> str:
        return hashlib.sha1(b"".join(self.repos[repo].values())).hexdigest()

    def file(self, path: str) -> tuple[bytes, str] | None:
        """Content and commit of a file by its address."""
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if found is None or found[1] not in self.repos or found[3] not in self.repos[found[1]]:
            return None
        commit = self.commit(found[1])
        return (self.repos[found[1]][found[3]], commit) if found[2] in ("main", commit) else None


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A Hub that answers while the block runs, on any free port of 127.0.0.1."""
    state = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_HEAD(self) -> None:
            path = urlsplit(self.path).path
            with state.lock:
                self._note()
                found = state.file(path)
                if found is None:
                    missing = "EntryNotFound" if "/".join(path.split("/")[1:3]) in state.repos else "RepoNotFound"
                    self._answer(404, b"", {"X-Error-Code": missing, "X-Error-Message": "not found"})
                    return
                content, commit = found
                etag = hashlib.sha256(content).hexdigest()
                self._answer(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})

        do_GET = do_HEAD  # noqa: N815

        def do_POST(self) -> None:
            body = self._body()
            with state.lock:
                self._note()
                answer = state.post(urlsplit(self.path).path, body)
                if answer is None:
                    state.unknown.append(f"POST {self.path}")
                self._answer(
                    404 if answer is None else 200, json.dumps(answer).encode(), {"Content-Type": "application/json"}
                )

        def do_PUT(self) -> None:
            body = self._body()
            with state.lock:
                self._note()
                state.large[self.path.rpartition("/")[2]] = body
                self._answer(200, b"", {})

        def _note(self) -> None:
            state.asked.append(f"{self.command} {urlsplit(self.path).path}")
            state.tokens.add(self.headers.get("Authorization", ""))

        def _answer(self, code: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()
