# SPDX-License-Identifier: Apache-2.0
"""What the pods of the chart and of KServe run, run here: ct2-prepare, server, probes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from support.commands import run
from support.helm import KSERVE, needs_helm, of_kind, rendered

pytestmark = [pytest.mark.server, needs_helm]

Container = dict[str, Any]


def _pod() -> dict[str, Any]:
    pod: dict[str, Any] = of_kind(rendered(), "Deployment")["spec"]["template"]["spec"]
    return pod


def _kserve_container() -> Container:
    runtime = yaml.safe_load((KSERVE / "runtime.yaml").read_text(encoding="utf-8"))
    (container,) = runtime["spec"]["containers"]
    found: Container = container
    return found


def _here(text: str, folder: Path) -> str:
    """A path of the container, here."""
    for mount, place in (("/mnt/models", "models"), ("/models", "models"), ("/tmp", "tmp")):  # noqa: S108
        if text == mount or text.endswith(f"={mount}"):
            return text.replace(mount, str(folder / place))
    return text


def _environment(container: Container, folder: Path, **further: str) -> dict[str, str]:
    own = {variable["name"]: _here(variable["value"], folder) for variable in container["env"]}
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": programs, **own, **further}


def _prepare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the init container does; with other arguments than the chart's where some are given."""
    entry = {"name": "demo", "source": "demo", "arguments": arguments}
    values = {"modelRepository": {"prepare": [entry]}} if arguments else None
    deployment = of_kind(rendered(values), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["initContainers"]
    return subprocess.run(
        [*container["command"], *container["args"]],
        env=_environment(container, folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model that the init container of the chart prepares."""
    made = tmp_path_factory.mktemp("pod")
    (made / "models").mkdir()
    (made / "tmp").mkdir()
    result = _prepare(made)
    assert result.returncode == 0, result.stderr
    return made


@contextmanager
def _serving(
    container: Container, folder: Path
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The server of a container on free ports, and its addresses."""
    arguments = [
        _here(text, folder)
        for text in container["args"]
        if not text.startswith(("--http-port", "--grpc-port"))
    ]
    process = subprocess.Popen(
        ["ct2-serve", *arguments],  # the image's entry point
        env=_environment(container, folder, CT2_SERVE_FREE_PORTS="1"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("w"),
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(4)]
        assert lines[0] == ["ready;", "models:", "demo,", "demo-text"], (folder / "log").read_text()
        yield process, dict(lines[1:])
    finally:
        process.kill()
        process.communicate()


def test_a_model_that_is_there_is_not_prepared_again(folder: Path) -> None:
    config = folder / "models" / "demo" / "config.pbtxt"
    before = config.stat()
    result = _prepare(folder)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert config.stat() == before
    assert (folder / "models" / "demo-text" / "config.pbtxt").is_file()


def _configs(folder: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_ino for path in folder.glob("models/*/config.pbtxt")}


def test_a_preparation_that_was_killed_half_way_or_had_other_arguments_is_done_again(
    tmp_path: Path,
) -> None:
    for name in ("models", "tmp"):
        (tmp_path / name).mkdir()
    assert _prepare(tmp_path, "--io", "ids").returncode == 0
    assert set(_configs(tmp_path)) == {"demo"}
    # As a kill between the two models of --io both leaves it: no stamp of these arguments.
    result = _prepare(tmp_path, "--io", "both")
    assert result.returncode == 0, result.stderr
    both = _configs(tmp_path)
    assert set(both) == {"demo", "demo-text"}
    assert _prepare(tmp_path, "--io", "both").returncode == 0
    assert _configs(tmp_path) == both
    (tmp_path / "models" / ".demo.prepared").unlink()
    shutil.rmtree(tmp_path / "models" / "demo-text")
    assert _prepare(tmp_path, "--io", "both").returncode == 0
    assert set(_configs(tmp_path)) == {"demo", "demo-text"}
    assert _prepare(tmp_path, "--io", "both", "--set", "nothing=1").returncode != 0
    assert not (tmp_path / "models" / ".demo.prepared").exists()
    assert _prepare(tmp_path, "--io", "both", "--set", "beam_size=2").returncode == 0
    assert '"2"' in (tmp_path / "models" / "demo" / "config.pbtxt").read_text()


@pytest.mark.parametrize("of", ["chart", "kserve"])
def test_the_server_starts_answers_its_probes_and_ends_with_status_0(of: str, folder: Path) -> None:
    container = _pod()["containers"][0] if of == "chart" else _kserve_container()
    with _serving(container, folder) as (process, ready):
        for probe in ("startupProbe", "readinessProbe"):
            assert list(container[probe]["grpc"]) == ["port"]
        assert _grpc_health(ready["gRPC"]) == _SERVING
        assert ready["HTTP"].startswith("http://127.0.0.1:")
        *python, program = container["livenessProbe"]["exec"]["command"]
        command = [*python, program.replace("http://127.0.0.1:8000", ready["HTTP"])]
        assert _status(command) == 0
        if of == "chart":
            _check_helm_test(ready["gRPC"])
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert _status(command) == 1


# grpc.health.v1.HealthCheckResponse: field 1, SERVING.
_SERVING = b"\x08\x01"


def _grpc_health(address: str) -> bytes:
    """What a gRPC probe of Kubernetes asks."""
    with grpc.insecure_channel(address) as channel:
        answer: bytes = channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10)
        return answer


def _status(command: list[str], **variables: str) -> int:
    """How a program of the chart ends, which is Python's and may show a traceback."""
    return run(sys.executable, *command[1:], code=None, **variables).returncode


def _check_helm_test(address: str) -> None:
    """The pod of `helm test` reaches the server; with no server it fails."""
    (container,) = of_kind(rendered(), "Pod")["spec"]["containers"]
    command = [*container["command"], *container["args"]]
    host, _, port = address.rpartition(":")
    assert _status(command, SERVER=host, PORT=port) == 0
    assert _status(command, SERVER=host, PORT="1") == 1
