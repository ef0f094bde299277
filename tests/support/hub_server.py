# SPDX-License-Identifier: Apache-2.0
"""A local model hub: the part of the protocol that `huggingface_hub` uses to download.

It serves folders over real HTTP, with the headers that the hub sends (commit, ETag, linked size)
and ranges, and can misbehave on purpose: a gated repository, a file that is listed but missing, a
transfer that is cut.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass
class HubRepository:
    """One repository.

    `revisions` maps branch, tag or commit to the commit it stands for. `missing` are names that
    are listed but cannot be had. `cuts` says after how many bytes the next transfers of a file end.
    """

    folder: Path
    revisions: dict[str, str]
    gated: bool = False
    missing: set[str] = field(default_factory=set)
    cuts: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class HubRequest:
    """One request that came."""

    method: str
    path: str
    range: str | None


class HubServer:
    """The repositories, and what was asked for."""

    def __init__(self) -> None:
        self.repositories: dict[str, HubRepository] = {}
        self.requests: list[HubRequest] = []
        self.url = ""

    def add(self, hub_id: str, folder: Path) -> HubRepository:
        """Serves a folder under an id, as one commit on the branch main."""
        commit = hashlib.sha1(hub_id.encode(), usedforsecurity=False).hexdigest()
        repository = HubRepository(folder, {"main": commit, commit: commit})
        self.repositories[hub_id] = repository
        return repository

    def downloads(self, name: str) -> list[HubRequest]:
        """The transfers of one file."""
        return [r for r in self.requests if r.method == "GET" and r.path.endswith(f"/{name}")]


@contextmanager
def running_hub() -> Iterator[HubServer]:
    """Serves on a free port of this machine until the block ends."""
    hub = HubServer()

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers `/api/models/<id>[/revision/<revision>]`, `.../tree/<revision>` (huggingface_hub 2
    asks for it) and `/<id>/resolve/<revision>/<file>`.
    """

    protocol_version = "HTTP/1.1"
    hub: HubServer

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing; requests are kept in `hub.requests`."""

    def _answer(self) -> None:
        path = unquote(self.path.split("?")[0])
        self.hub.requests.append(HubRequest(self.command, path, self.headers.get("Range")))
        if path.startswith("/api/models/") and "/tree/" in path:
            self._answer_tree(path.removeprefix("/api/models/"))
        elif path.startswith("/api/models/"):
            self._answer_info(path.removeprefix("/api/models/"))
        elif "/resolve/" in path:
            hub_id, _, rest = path.lstrip("/").partition("/resolve/")
            revision, _, name = rest.partition("/")
            self._answer_file(hub_id, revision, name)
        else:
            self._fail(HTTPStatus.NOT_FOUND, None, "no such page")

    def _answer_info(self, rest: str) -> None:
        hub_id, _, revision = rest.partition("/revision/")
        found = self._find(hub_id, revision or "main")
        if found is None:
            return
        repository, commit = found
        self._send_json(
            {
                "_id": "0",
                "id": hub_id,
                "modelId": hub_id,
                "sha": commit,
                "private": False,
                "disabled": False,
                "gated": "manual" if repository.gated else False,
                "tags": [],
                "downloads": 0,
                "likes": 0,
                "siblings": [{"rfilename": name} for name in _names(repository)],
            }
        )

    def _answer_tree(self, rest: str) -> None:
        hub_id, _, revision = rest.partition("/tree/")
        if found := self._find(hub_id, revision):
            entry = {"type": "file", "oid": found[1], "size": 1}
            self._send_json([{**entry, "path": name} for name in _names(found[0])])

    def _answer_file(self, hub_id: str, revision: str, name: str) -> None:
        found = self._find(hub_id, revision)
        if found is None:
            return
        repository, commit = found
        path = repository.folder / name
        if repository.gated:
            message = f"Access to model {hub_id} is restricted and you are not in the list."
            self._fail(HTTPStatus.FORBIDDEN, "GatedRepo", message)
        elif name in repository.missing or not path.is_file():
            self._fail(HTTPStatus.NOT_FOUND, "EntryNotFound", "Entry not found")
        else:
            self._send_file(path, commit, repository.cuts.get(name, []))

    def _find(self, hub_id: str, revision: str) -> tuple[HubRepository, str] | None:
        repository = self.hub.repositories.get(hub_id)
        if repository is None:
            self._fail(HTTPStatus.NOT_FOUND, "RepoNotFound", "Repository not found")
            return None
        commit = repository.revisions.get(revision)
        if commit is None:
            self._fail(HTTPStatus.NOT_FOUND, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository, commit

    def _send_file(self, path: Path, commit: str, cuts: list[int]) -> None:
        size, start = path.stat().st_size, 0
        if asked := self.headers.get("Range"):
            start = int(asked.removeprefix("bytes=").split("-")[0])
        self.send_response(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK)
        self.send_header("ETag", f'"{_digest(path, size, path.stat().st_mtime_ns)}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("X-Linked-Size", str(size))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(size - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        if self.command == "HEAD":
            return
        with path.open("rb") as file:
            file.seek(start)
            if cuts:
                self.wfile.write(file.read(cuts.pop(0)))
                self.wfile.flush()
                self.close_connection = True
                return
            shutil.copyfileobj(file, self.wfile)

    def _send_json(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _fail(self, status: HTTPStatus, code: str | None, message: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()


@functools.lru_cache
def _digest(path: Path, size: int, changed_ns: int) -> str:
    """The SHA-256 of a file, which is computed once: a checkpoint may have gigabytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _names(repository: HubRepository) -> list[str]:
    files = {path.name for path in repository.folder.iterdir() if path.is_file()}
    return sorted(files | repository.missing)
