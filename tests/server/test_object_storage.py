# SPDX-License-Identifier: Apache-2.0
"""Models from s3://, which a small stand-in for object storage has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve.errors import ServeError
from ct2_triton.serve.installation import find_server
from support.servers import ServerStack

pytestmark = pytest.mark.server

BUCKET = "/models"
SECRETS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "x"}


class Storage(BaseHTTPRequestHandler):
    """ListObjectsV2, HeadObject and GetObject of one bucket, a folder."""

    folder: ClassVar[Path]

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, *, has_body: bool) -> None:
        url = urlsplit(self.path)
        key = unquote(url.path).removeprefix(BUCKET).strip("/")
        if key:
            file = self.folder / key
            content = file.read_bytes() if file.is_file() else None
        else:
            content = self._listed(parse_qs(url.query).get("prefix", [""])[0])
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.send_header("ETag", '"1"')
        self.end_headers()
        if has_body and content is not None:
            self.wfile.write(content)

    def _listed(self, prefix: str) -> bytes:
        files = [file for file in sorted(self.folder.rglob("*")) if file.is_file()]
        keys = [str(file.relative_to(self.folder)) for file in files]
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key></Contents>"
            for key in keys
            if key.startswith(prefix)
        )
        return (
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        ).encode()


@contextmanager
def storage(folder: Path) -> Iterator[str]:
    """Serves a folder as a bucket; gives its address for Triton."""
    handler = type("Handler", (Storage,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"s3://http://127.0.0.1:{server.server_port}{BUCKET}"
        finally:
            server.shutdown()
            thread.join()


def options(folder: Path, url: str) -> dict[str, Any]:
    """Options of a server with such a repository, which ct2-serve itself does not take."""
    program = folder / "tritonserver"
    start = f'exec {find_server().executable} "$@" --model-repository={url}'
    program.write_text(f"#!/bin/sh\n{start}\n")
    program.chmod(0o755)
    return {"executable": program, "environment": SECRETS}


def test_a_text_model_with_all_files_in_its_folder_is_served(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    prepare(PrepareOptions("demo", tmp_path / "models", "demo", io="text"))
    with storage(tmp_path / "models") as url, ServerStack() as stack:
        server = stack.start(tmp_path / "empty", **options(tmp_path, url))
        with SyncTranslationClient(server.grpc_url, "demo") as client:
            [found] = client.translate("Gate C19 closes in 6 minutes!", source="en", targets=["de"])
        assert found.text == "Gate C19 schließt in 6 Minuten!"


def test_a_text_model_on_the_files_of_another_is_refused(tmp_path: Path) -> None:
    """Its folder of a version is empty, and a bucket has no empty folders."""
    (tmp_path / "empty").mkdir()
    prepare(PrepareOptions("demo", tmp_path / "models", "demo", io="both"))
    said = "at least one version must be available under the version policy of model 'demo-text'"
    with (
        storage(tmp_path / "models") as url,
        ServerStack() as stack,
        pytest.raises(ServeError, match=said),
    ):
        stack.start(tmp_path / "empty", **options(tmp_path, url))
