# SPDX-License-Identifier: Apache-2.0
"""Debian's HAProxy, where `make test` could unpack it, with the shipped configuration."""

from __future__ import annotations

import contextlib
import csv
import http.client
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
import tritonclient.grpc as grpc_client

if TYPE_CHECKING:
    from ct2_triton.serve import TritonServer

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
KEY = {"x-api-key": "secret-of-the-newsroom"}
READY = ("GET", "/v2/health/ready")
_UNPACKED = ROOT / ".venvs" / "haproxy"


def _binary() -> str | None:
    unpacked = _UNPACKED / "usr" / "sbin" / "haproxy"
    return str(unpacked) if unpacked.exists() else shutil.which("haproxy")


needs_haproxy = pytest.mark.skipif(
    _binary() is None, reason="Debian's package haproxy could not be fetched by `make test`"
)


@dataclass(frozen=True)
class Proxy:
    """A running one.

    Attributes:
        port: On localhost.
        certificate: The file of its certificate.
        control: Its socket for commands.
    """

    port: int
    certificate: Path
    control: Path

    def http(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, str]:
        """Sends a request over HTTPS; gives status and text."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        connection = http.client.HTTPSConnection("localhost", self.port, context=context)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def grpc(self) -> grpc_client.InferenceServerClient:
        """A gRPC client of it."""
        return grpc_client.InferenceServerClient(
            f"localhost:{self.port}", ssl=True, root_certificates=str(self.certificate)
        )

    def credentials(self) -> grpc.ChannelCredentials:
        """What a client of this project trusts it by."""
        return grpc.ssl_channel_credentials(self.certificate.read_bytes())

    def say(self, command: str) -> str:
        """Gives a command to the socket; returns the answer."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.control))
            control.sendall(f"{command}\n".encode())
            with control.makefile(encoding="utf-8") as answer:
                return answer.read().strip()

    def state(self, server: str) -> dict[str, str]:
        """The line of a server of the backend `grpc` in `show stat`."""
        lines = self.say("show stat").removeprefix("# ").splitlines()
        (row,) = (
            row
            for row in csv.DictReader(lines)
            if (row["pxname"], row["svname"]) == ("grpc", server)
        )
        return row


def make_folder(folder: Path, names: str = "DNS:localhost") -> Path:
    """Writes a certificate for these names with its key, and the list of keys."""
    subject = ["-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject,
         "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    texts = [(folder / name).read_text() for name in ("certificate.pem", "key.pem")]
    (folder / "both.pem").write_text("".join(texts))
    (folder / "keys.map").write_text(f"{KEY['x-api-key']} newsroom\n")
    return folder


def addresses(server: TritonServer) -> tuple[str, str]:
    """Where a server takes gRPC and HTTP."""
    return server.grpc_url, server.http_url.removeprefix("http://")


@contextlib.contextmanager
def running_proxy(
    folder: Path,
    servers: Sequence[tuple[str, str]],
    settings: Mapping[str, str],
    host: str = "127.0.0.1",
) -> Iterator[Proxy]:
    """Runs one.

    Args:
        folder: What `make_folder` made.
        servers: Where one server, or two, take gRPC and HTTP.
        settings: Variables of the configuration beside those of the servers.
        host: The address that it listens on.
    """
    with socket.socket() as listening:
        listening.bind((host, 0))
        listening.listen(64)  # who connects before HAProxy is up waits for it
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(_UNPACKED / "usr" / "lib" / "x86_64-linux-gnu"),
            "CT2_PROXY_ADDRESS": f"fd@{listening.fileno()}",
            "CT2_PROXY_CERTIFICATE": str(folder / "both.pem"),
            "CT2_PROXY_KEYS": str(folder / "keys.map"),
            "CT2_PROXY_CONTROL": str(folder / "control"),
            **settings,
        }
        for (grpc_address, http_address), end in zip(servers, ("", "_2"), strict=False):
            environment[f"CT2_PROXY_GRPC{end}"] = grpc_address
            environment[f"CT2_PROXY_HTTP{end}"] = http_address
            environment[f"CT2_PROXY_CHECK_PORT{end}"] = http_address.rpartition(":")[2]
        program = _binary()
        assert program is not None
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [program, "-f", CONFIG],
                env=environment,
                pass_fds=[listening.fileno()],
                stderr=log,
                stdout=log,
            )
        try:
            made = Proxy(listening.getsockname()[1], folder / "certificate.pem", folder / "control")
            assert made.http(*READY, KEY) == (200, ""), (folder / "log").read_text()
            yield made
        finally:
            process.kill()
            process.wait()
