"""A server on this machine that speaks as much of W&B's protocol as the SDK asks for, and remembers what it was sent.

The queries and their answers were read off the SDK, which checks their types. What the real server makes of them is not
imitated.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import RLock, Thread
from typing import Any

ENTITY, KEY = "me", "0123456789abcdef" * 2 + "fedcba98"
NEVER = "2026-01-01T00:00:00"
Answer = dict[str, Any]


@dataclass
class Run:
    """A run as the server has it; `facts` are what created and updated it."""

    name: str
    project: str
    facts: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    ended: int = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.history]

    def stored(self) -> Answer:
        """What a resumed run asks for; without "t" in its configuration it would not count as started."""
        facts = {name: self.facts.get(name) for name in ("displayName", "tags", "description")}
        return {
            "id": self.name,
            "name": self.name,
            "project": {"id": "p", "name": self.project, "entity": {"id": "e", "name": ENTITY}},
            "sweepName": None,
            "historyLineCount": len(self.history),
            "historyTail": json.dumps(self.history[-1:]),
            "eventsLineCount": 0,
            "eventsTail": "[]",
            "logLineCount": 0,
            "summaryMetrics": json.dumps(self.summary),
            "config": json.dumps(self.config),
            "wandbConfig": '{"t": {}}',
            **facts,
        }


@dataclass
class Artifact:
    """One version of an artifact; its files lie in the server's store, by their digest."""

    id: int
    name: str
    type: str
    version: int
    aliases: list[str]
    metadata: dict[str, Any]
    digest: str
    project: str
    manifest: dict[str, Any] = field(default_factory=dict)
    committed: bool = False

    def membership(self) -> Answer:
        project = {"id": "p", "internalId": "1", "name": self.project, "entity": {"name": ENTITY}}
        collection = {"__typename": "ArtifactSequence", "name": self.name, "project": project}
        artifact = {
            "__typename": "Artifact",
            "id": str(self.id),
            "versionIndex": self.version,
            "artifactType": {"name": self.type},
            "artifactSequence": collection,
            "metadata": json.dumps(self.metadata),
            "digest": self.digest,
            "state": "COMMITTED",
            "description": None,
            "tags": [],
            "historyStep": 0,
            "size": 1,
            "fileCount": 1,
            "commitHash": None,
            "createdAt": NEVER,
            "updatedAt": NEVER,
            "ttlDurationSeconds": -2,
            "ttlIsInherited": True,
        }
        return {
            "__typename": "ArtifactCollectionMembership",
            "id": "m",
            "versionIndex": self.version,
            "createdAt": NEVER,
            "aliases": [{"__typename": "ArtifactAlias", "id": alias, "alias": alias} for alias in self.aliases],
            "artifactCollection": collection,
            "artifact": artifact,
        }


class WandbServer:
    """State, and an answer to every query that the SDK was seen to ask."""

    def __init__(self) -> None:
        self.lock, self.address = RLock(), ""
        self.runs: dict[str, Run] = {}
        self.artifacts: list[Artifact] = []
        self.store: dict[str, bytes] = {}
        self.unknown: list[str] = []
        self.bodies: list[bytes] = []

    def answer(self, query: str, given: dict[str, Any]) -> Answer | None:
        name = re.search(r"(?:query|mutation)\s+(\w+)", query)
        handler = getattr(self, f"on_{name[1]}" if name else "", None)
        if handler is None:
            self.unknown.append(query)
            return None
        found: Answer = handler(given)
        return found

    def on_Viewer(self, given: Answer) -> Answer:  # noqa: N802  # the names of the queries
        viewer = {"id": "u", "entity": ENTITY, "username": ENTITY, "flags": "{}", "teams": {"edges": []}}
        return {"viewer": viewer}

    on_GetDefaultEntity = on_Viewer  # noqa: N815

    def on_ServerFeaturesQuery(self, given: Answer) -> Answer:  # noqa: N802
        return {"serverInfo": {"features": []}}

    def on_OrganizationCoreWeaveOrganizationID(self, given: Answer) -> Answer:  # noqa: N802
        return {"entity": {"organization": None}}

    def on_RunResumeStatus(self, given: Answer) -> Answer:  # noqa: N802
        run = self.runs.get(given["name"])
        project = {"id": "p", "name": given["project"], "entity": {"id": "e", "name": ENTITY}}
        return {"model": {**project, "bucket": run.stored() if run else None}}

    def on_UpsertBucket(self, given: Answer) -> Answer:  # noqa: N802
        inserted = given["name"] not in self.runs
        run = self.runs.setdefault(given["name"], Run(given["name"], given["project"]))
        run.facts |= {key: value for key, value in given.items() if value is not None}
        if given.get("config"):
            run.config = json.loads(given["config"])
        return {"upsertBucket": {"bucket": run.stored(), "inserted": inserted}}

    def on_CreateRunFiles(self, given: Answer) -> Answer:  # noqa: N802
        files = [{"name": name, "uploadUrl": f"{self.address}/upload/{given['run']}/{name}"} for name in given["files"]]
        return {"createRunFiles": {"runID": given["run"], "uploadHeaders": [], "files": files}}

    def on_ArtifactType(self, given: Answer) -> Answer:  # noqa: N802
        return {"project": {"artifact": None}}

    def on_CreateArtifact(self, given: Answer) -> Answer:  # noqa: N802
        sent = given["input"]
        name, aliases = sent["artifactCollectionName"], [entry["alias"] for entry in sent["aliases"]]
        before = [artifact for artifact in self.artifacts if artifact.name == name]
        for artifact in before:
            artifact.aliases = [alias for alias in artifact.aliases if alias not in aliases]
        facts = (name, sent["artifactTypeName"], len(before), aliases, json.loads(sent["metadata"] or "{}"))
        self.artifacts.append(Artifact(len(self.artifacts), *facts, sent["digest"], sent["projectName"]))
        made = {"id": str(len(self.artifacts) - 1), "state": "PENDING", "artifactSequence": {"latestArtifact": None}}
        return {"createArtifact": {"artifact": made}}

    def on_CreateArtifactManifest(self, given: Answer) -> Answer:  # noqa: N802
        file = self._file("wandb_manifest.json", f"manifest/{given['artifactID']}")
        return {"createArtifactManifest": {"artifactManifest": {"id": given["artifactID"], "file": file}}}

    def on_CreateArtifactFiles(self, given: Answer) -> Answer:  # noqa: N802
        files = [
            self._file(file["name"], f"store/{base64.b64decode(file['md5']).hex()}")
            | {"artifact": {"id": file["artifactID"]}, "storagePath": None, "uploadMultipartUrls": None}
            for file in given["input"]["artifactFiles"]
        ]
        return {"createArtifactFiles": {"files": {"edges": [{"node": file} for file in files]}}}

    def on_CommitArtifact(self, given: Answer) -> Answer:  # noqa: N802
        artifact = self.artifacts[int(given["artifactID"])]
        artifact.committed = True
        return {"commitArtifact": {"artifact": {"id": given["artifactID"], "digest": artifact.digest}}}

    def on_ArtifactMembershipByName(self, given: Answer) -> Answer:  # noqa: N802
        name, _, alias = given["name"].partition(":")
        found = [a for a in self.artifacts if a.name == name and alias in (*a.aliases, f"v{a.version}")]
        return {"project": {"artifactCollectionMembership": found[-1].membership() if found else None}}

    def on_FetchArtifactManifest(self, given: Answer) -> Answer:  # noqa: N802
        url = f"{self.address}/manifest/{given['id']}"
        return {"artifact": {"currentManifest": {"file": {"directUrl": url}}}}

    def _file(self, name: str, path: str) -> Answer:
        url = f"{self.address}/{path}"
        return {"id": name, "name": name, "displayName": name, "uploadUrl": url, "uploadHeaders": []}

    def serve(self, method: str, path: str, body: bytes) -> bytes | None:
        """Answer a request; None where there is no such place."""
        self.bodies.append(body)
        _, place, *rest = path.split("/")
        if place == "graphql":
            sent = json.loads(body)
            found = self.answer(sent["query"], sent.get("variables") or {})
            return json.dumps({"errors": [{"message": "unknown query"}]} if found is None else {"data": found}).encode()
        if place == "files":
            return self._stream(self.runs[rest[2]], json.loads(body))
        if place == "upload":
            self.runs[rest[0]].files["/".join(rest[1:])] = body
        elif place == "manifest" and method == "PUT":
            self.artifacts[int(rest[0])].manifest = json.loads(body)
        elif place == "manifest":
            return json.dumps(self.artifacts[int(rest[0])].manifest).encode()
        elif place == "store":
            self.store[rest[0]] = body
        elif place == "artifactsV2":
            return self.store.get(rest[-2])
        return b"{}"

    def _stream(self, run: Run, sent: Answer) -> bytes:
        for name, part in sent.get("files", {}).items():
            lines, start = part["content"], part["offset"]
            if name == "wandb-history.jsonl":
                run.history[start : start + len(lines)] = lines
            elif name == "wandb-summary.json":
                run.summary = json.loads(lines[-1])
        run.ended += bool(sent.get("complete"))
        return b"{}"


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: the SDK's processes leave connections open when they end."""


@contextmanager
def wandb_server() -> Iterator[WandbServer]:
    """A server that answers while the block runs, on any free port of 127.0.0.1."""
    state = WandbServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            with state.lock:
                answer = state.serve(self.command, self.path, self._body())
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Length", str(len(answer or b"")))
            self.end_headers()
            self.wfile.write(answer or b"")

        do_POST = do_PUT = do_GET  # noqa: N815

        def _body(self) -> bytes:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    with _Quiet(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()
