# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ct2_triton.serve import Ports, ServerOptions
from ct2_triton.serve.backend_files import BackendFolder
from ct2_triton.serve.command import (
    exposure_warnings,
    server_command,
    server_environment,
)
from ct2_triton.serve.installation import ServerInstallation
from ct2_triton.serve.machine import has_cublas

_FOLDER = BackendFolder(Path("/cache/backends"), Path("/nowhere/lib"))


def _installation(root: Path) -> ServerInstallation:
    return ServerInstallation(
        root / "bin" / "tritonserver", root / "backends", root / "stubs", root / "caches"
    )


def test_the_command_line(tmp_path: Path) -> None:
    own = ["--allow-gpu-metrics=true", "--grpc-keepalive-time=7", "--x"]
    options = ServerOptions([Path("/a"), Path("/b")], host="::1", server_arguments=own)
    assert server_command(options, _installation(tmp_path), _FOLDER, Ports(1, 2, 3), "me") == [
        str(tmp_path / "bin" / "tritonserver"),
        "--id=me",
        "--model-repository=/a",
        "--model-repository=/b",
        "--backend-directory=/cache/backends",
        "--http-address=::1",
        "--http-port=1",
        "--grpc-address=::1",
        "--grpc-port=2",
        "--metrics-address=::1",
        "--metrics-port=3",
        "--grpc-keepalive-timeout=10000",
        "--grpc-keepalive-permit-without-calls=1",
        "--grpc-http2-max-pings-without-data=0",
        "--grpc-http2-min-recv-ping-interval-without-data=4000",
        *own,
    ]


def test_cache_implementations_beside_the_server_are_offered(tmp_path: Path) -> None:
    (tmp_path / "caches").mkdir()
    command = server_command(ServerOptions([]), _installation(tmp_path), _FOLDER, Ports(), "me")
    assert f"--cache-directory={tmp_path / 'caches'}" in command


_RESTRICTED = ("--http-restricted-api", "--grpc-restricted-protocol")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_nothing_is_closed_where_only_this_machine_gets_in(tmp_path: Path, host: str) -> None:
    options = ServerOptions([], host=host)
    command = server_command(options, _installation(tmp_path), _FOLDER, Ports(), "me")
    assert not [argument for argument in command if argument.startswith(_RESTRICTED)]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example"])
def test_what_translating_does_not_need_is_closed_to_others(tmp_path: Path, host: str) -> None:
    options = ServerOptions([], host=host)
    command, again = (
        server_command(options, _installation(tmp_path), _FOLDER, Ports(), "me") for _ in range(2)
    )
    for flag in _RESTRICTED:
        (argument,) = [argument for argument in command if argument.startswith(f"{flag}=")]
        apis, key = argument.removeprefix(f"{flag}=").split(":")
        assert apis == "shared-memory,logging,trace"
        assert len(key.split("=")[1]) == 32
        assert argument not in again
    own = ["--http-restricted-api=logging:a=b", "--grpc-restricted-protocol=logging:a=b"]
    options = ServerOptions([], host=host, server_arguments=own)
    command = server_command(options, _installation(tmp_path), _FOLDER, Ports(), "me")
    assert [argument for argument in command if argument.startswith(_RESTRICTED)] == own


def test_model_control_for_everybody_is_warned_of() -> None:
    explicit = ["--model-control-mode=explicit"]
    half = [*explicit, "--http-restricted-api=model-repository:a=b"]
    restricted = [*half, "--grpc-restricted-protocol=model-repository:a=b"]
    for host, arguments, warned in [
        ("0.0.0.0", explicit, True),
        ("0.0.0.0", ["--model-control-mode", "explicit"], True),
        ("0.0.0.0", half, True),
        ("127.0.0.1", explicit, False),
        ("0.0.0.0", ["--model-control-mode=poll"], False),
        ("0.0.0.0", restricted, False),
    ]:
        options = ServerOptions([], host=host, server_arguments=arguments)
        assert bool(exposure_warnings(options)) == warned


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr("ct2_triton.serve.command.cublas_wheel_folder", lambda: None)
    options = ServerOptions([], environment={"EXTRA": "1"})
    environment = server_environment(options, _FOLDER)
    assert environment["PATH"] == f"{Path(sys.executable).parent}:/bin"
    assert environment["EXTRA"] == "1"
    assert "LD_LIBRARY_PATH" not in environment
    environment = server_environment(options, BackendFolder(tmp_path, tmp_path))
    assert environment["LD_LIBRARY_PATH"] == str(tmp_path)


def test_cublas_of_a_wheel_comes_last_on_the_path_of_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "site" / "nvidia" / "cublas" / "lib" / "libcublas.so.12"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert has_cublas()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    environment = server_environment(ServerOptions([]), _FOLDER)
    assert environment["LD_LIBRARY_PATH"] == f"/mine:{library.parent}"
    monkeypatch.delenv("LD_LIBRARY_PATH")
    environment = server_environment(ServerOptions([]), _FOLDER)
    assert environment["LD_LIBRARY_PATH"] == str(library.parent)
