# SPDX-License-Identifier: Apache-2.0
"""Servers as docs/security.md recommends them, with TLS and a secret header; and late ones."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from ct2_triton import errors
from ct2_triton.client import SyncTranslationClient, TranslationClient
from ct2_triton.serve import TritonServer
from support import commands
from support.ports import free_ports
from support.prepared import prepare_tiny
from support.servers import MakeServer, ServerStack
from support.waiting import wait_until

HEADER = "ct2-secret"
SECRET = "correct-horse"  # noqa: S105
CALL: dict[str, Any] = {"source": "en", "targets": "de", "max_decoding_length": 8}
Access = tuple[TritonServer, Path, Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


def _openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("repository")
    prepare_tiny("nllb", repository, "nllb")
    return repository


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, and a server and a client that it vouches for."""
    folder = tmp_path_factory.mktemp("certificates")
    _openssl(folder, "req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -keyout ca.key -out ca.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    for name in ("server", "client"):
        request = f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        _openssl(folder, request)
        signed = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
        _openssl(folder, f"{signed} -extfile names -out {name}.pem")
    return folder


@pytest.fixture(scope="module")
def closed(repository: Path, certificates: Path) -> Iterator[Access]:
    """A server that asks for a client's certificate and for a secret header."""
    tls = [
        "--grpc-use-ssl=true",
        "--grpc-use-ssl-mutual=true",
        f"--grpc-server-cert={certificates / 'server.pem'}",
        f"--grpc-server-key={certificates / 'server.key'}",
        f"--grpc-root-cert={certificates / 'ca.pem'}",
    ]
    groups = "inference,metadata,model-repository,shared-memory,logging,trace"
    restricted = f"--grpc-restricted-protocol={groups}:{HEADER}={SECRET}"
    with ServerStack() as stack:
        server = stack.start(repository, server_arguments=[*tls, restricted])
        yield server, repository, certificates


@pytest.fixture
def settings(closed: Access) -> dict[str, Any]:
    """What a client needs to be let in."""
    _, repository, folder = closed
    files = [(folder / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem")]
    return {
        "repository": repository,
        "credentials": grpc.ssl_channel_credentials(*files),
        "metadata": {f"triton-grpc-protocol-{HEADER}": SECRET},
    }


@pytest.fixture
def run(closed: Access) -> Run:
    """Runs ct2-translate against the closed server, with the flags given and a sentence."""
    server, repository, _ = closed

    def run(*flags: str, host: str = "grpcs://localhost", **variables: str) -> Any:
        place = ["--model-repository", repository, "--url", f"{host}:{server.ports.grpc}"]
        what = ["--model=nllb", "--from=en", "--to=de", "--option=max_decoding_length=8"]
        return commands.run(
            "ct2-translate", *what, *place, *flags, code=None, text="One.\n", **variables
        )

    return run


@pytest.mark.parametrize("scheme", ["grpcs://", ""])
def test_a_client_with_certificate_and_header_is_let_in(
    closed: Access, settings: dict[str, Any], scheme: str
) -> None:
    url = f"{scheme}localhost:{closed[0].ports.grpc}"
    with SyncTranslationClient(url, "nllb", **settings) as client:
        client.wait_until_ready(100)
        german = client.translate("One.", **CALL)
    assert german.text


def test_without_the_header_access_is_denied_at_once(
    closed: Access, settings: dict[str, Any]
) -> None:
    url = f"grpcs://localhost:{closed[0].ports.grpc}"
    with SyncTranslationClient(url, "nllb", **{**settings, "metadata": None}) as client:
        for call in (client.wait_until_ready, lambda: client.translate("One.", **CALL)):
            with pytest.raises(errors.AccessDeniedError, match=HEADER):
                call()
    with SyncTranslationClient(url, "nllb", **settings) as client:
        client.wait_until_ready(100)
        assert client.translate("One.", **CALL)


async def test_an_unknown_model_where_the_index_is_restricted(
    repository: Path, make_server: MakeServer
) -> None:
    restricted = f"--grpc-restricted-protocol=model-repository:{HEADER}={SECRET}"
    url = make_server(repository, server_arguments=[restricted]).grpc_url
    async with TranslationClient(url, "nllbs") as client:
        with pytest.raises(errors.ModelNotFoundError, match="'nllbs' is not found$"):
            await client.translate("One.", **CALL)
    async with TranslationClient(url, "nllb", repository=repository) as client:
        assert (await client.translate("One.", **CALL)).text


def test_the_command_is_let_in_by_its_flags(closed: Access, run: Run) -> None:
    folder = closed[2]
    ca = f"--tls-ca={folder / 'ca.pem'}"
    own = [f"--tls-cert={folder / 'client.pem'}", f"--tls-key={folder / 'client.key'}"]
    header = f"triton-grpc-protocol-{HEADER}: {SECRET}"
    done = run(ca, *own, "--header", header)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert run(ca, *own, CT2_TRANSLATE_HEADER=f"'{header}'").stdout == done.stdout
    denied = run(ca, *own)
    assert denied.returncode == 1
    assert HEADER in denied.stderr
    for flags in ([ca, "--header", header], [*own, "--header", header], []):
        refused = run(*flags, "--timeout=5")
        assert refused.returncode == 1
        assert "check the URL" in refused.stderr
    assert run(ca, *own, "--header", header).stdout == done.stdout


@pytest.mark.parametrize(
    ("flags", "host", "code", "message"),
    [
        (["--tls-cert=a"], "grpcs://localhost", 1, "--tls-cert and --tls-key belong together"),
        (
            ["--tls-ca=no-such-file"],
            "grpcs://localhost",
            1,
            "cannot read no-such-file: No such file",
        ),
        (["--header=nothing"], "localhost", 2, "a header is 'NAME: VALUE'"),
        (["--header=grpc-x: 1"], "localhost", 2, "neither begins with 'grpc-'"),
        ([], "http://localhost", 1, "the client speaks gRPC, not HTTP"),
        (
            [f"--tls-ca={__file__}"],
            "grpc://localhost",
            1,
            "in the clear, and certificates are given",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(
    run: Run, flags: list[str], host: str, code: int, message: str
) -> None:
    result = run(*flags, host=host)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


async def test_a_client_waits_for_a_server_that_starts_later(
    repository: Path, make_server: MakeServer
) -> None:
    ports = free_ports()
    url = f"grpc://127.0.0.1:{ports.grpc}"
    async with TranslationClient(url, "nllb", repository=repository) as client:
        with pytest.raises(errors.ServerUnreachableError, match="not ready within 1 s: no connect"):
            await client.wait_until_ready(1)
        waiting = asyncio.create_task(client.wait_until_ready(100))
        server = await asyncio.to_thread(make_server, repository, ports=ports)
        await waiting
        german = await client.translate("One.", **CALL)
        assert german.text
        await asyncio.to_thread(server.stop)
        with pytest.raises(errors.ServerUnreachableError):
            await client.wait_until_ready(1)


def test_the_command_waits_for_a_model_that_is_loaded_later(
    repository: Path, make_server: MakeServer
) -> None:
    from tritonclient.grpc import InferenceServerClient

    verbose = ["--model-control-mode=explicit", "--log-verbose=1"]
    server = make_server(repository, server_arguments=verbose)
    command = [Path(sys.executable).with_name("ct2-translate"), "--model=nllb", "--from=en"]
    place = ["--to=de", f"--url={server.grpc_url}", f"--model-repository={repository}"]
    missing = commands.run(*command, *place, "--retry-for=1", code=1, text="One.\n")
    assert "not ready within 1 s: " in missing.stderr
    asked = server.log_text().count("Process for ModelMetadata")
    with commands.piped(*command, *place, "--retry-for=100") as process:
        wait_until(lambda: server.log_text().count("Process for ModelMetadata") > asked)
        assert process.poll() is None
        with InferenceServerClient(server.grpc_url) as connection:
            connection.load_model("nllb")
        output, complaints = process.communicate("One.\n", timeout=600)
    assert (process.returncode, complaints) == (0, "")
    assert output.strip()
