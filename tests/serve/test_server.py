# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client

from ct2_triton.serve import Ports, ServerOptions, TritonServer
from ct2_triton.serve.errors import PortInUseError, ServeError, ServerStartError
from ct2_triton.serve.machine import count_gpus
from support import servers as shared
from support.ports import free_ports
from support.repository import ONLY_THE_BACKEND, write_identity_model, write_model
from support.servers import MakeServer
from support.waiting import wait_until

pytestmark = pytest.mark.server


BAD_CONFIG = ONLY_THE_BACKEND.replace("ctranslate2", "nosuch")


@pytest.fixture
def python_repository(tmp_path: Path) -> Path:
    write_identity_model(tmp_path / "python", "identity")
    return tmp_path / "python"


def test_a_python_model_runs_in_this_environment(
    make_server: MakeServer, python_repository: Path
) -> None:
    """The assembled folder has a working Python backend: numpy comes from our environment."""
    server = make_server(python_repository)
    assert [(state.name, state.state) for state in server.model_states()] == [("identity", "READY")]
    tensor = grpc_client.InferInput("IN", [3], "INT32")
    tensor.set_data_from_numpy(np.array([7, 8, 9], np.int32))
    with grpc_client.InferenceServerClient(server.grpc_url) as client:
        assert client.infer("identity", [tensor]).as_numpy("OUT").tolist() == [7, 8, 9]
    with urllib.request.urlopen(server.metrics_url) as metrics:  # noqa: S310
        assert 'nv_inference_request_success{model="identity"' in metrics.read().decode()


def test_our_backend_is_the_one_loaded(server: TritonServer) -> None:
    assert server.is_ready()
    assert ("nllb", "READY") in [(state.name, state.state) for state in server.model_states()]
    assert re.fullmatch(r"2\.\d+\.\d+\w*", server.version())
    folder = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libtriton_ctranslate2.so" in folder


def test_a_stop_is_orderly_frees_the_ports_and_leaves_the_log(
    make_server: MakeServer, repository: Path
) -> None:
    log = io.StringIO()
    server = make_server(repository, log=log, server_arguments=["--log-verbose=1"])
    assert server.stop() == 0
    assert not server.is_alive()
    assert not server.is_ready()
    assert server.stop() == 0
    assert "successfully loaded 'nllb'" in server.log_text()
    assert log.getvalue() == server.log_text()
    again = make_server(repository, ports=server.ports)
    assert again.ports == server.ports


def test_a_model_that_does_not_load_is_named_with_its_reason(
    make_server: MakeServer, repository: Path, nllb_engine_model: Path
) -> None:
    write_model(repository, "bad", nllb_engine_model, BAD_CONFIG)
    with pytest.raises(ServerStartError) as caught:
        make_server(repository)
    first, *rest = str(caught.value).splitlines()
    assert first == "tritonserver ended with status 1"
    assert rest[0].startswith("  failed to load 'bad' version 1: Invalid argument: unable to find")
    assert rest[-1] == "  creating server: Internal - failed to load all models"


def test_without_exit_on_error_the_others_are_served(
    make_server: MakeServer, repository: Path, nllb_engine_model: Path
) -> None:
    write_model(repository, "bad", nllb_engine_model, BAD_CONFIG)
    server = make_server(repository, server_arguments=["--exit-on-error=false"])
    states = {state.name: state for state in server.model_states()}
    assert states["nllb"].state == "READY"
    assert states["bad"].state == "UNAVAILABLE"
    assert "nosuch" in states["bad"].reason
    assert not server.is_ready()


def test_explicit_control_starts_without_models(make_server: MakeServer, repository: Path) -> None:
    server = make_server(repository, server_arguments=["--model-control-mode=explicit"])
    assert server.is_ready()
    with grpc_client.InferenceServerClient(server.grpc_url) as client:
        assert not client.is_model_ready("nllb")
        client.load_model("nllb")
        assert client.is_model_ready("nllb")


def test_a_missing_engine_model_says_so(make_server: MakeServer, repository: Path) -> None:
    (repository / "nllb" / "1" / "model" / "model.bin").unlink()
    with pytest.raises(ServerStartError, match="failed to load 'nllb' version 1: .*model.bin"):
        make_server(repository)


def test_a_taken_port_is_told_before_the_start(server: TritonServer, repository: Path) -> None:
    _, grpc, metrics = free_ports()
    taken = Ports(server.ports.http, grpc, metrics)
    second = TritonServer(ServerOptions([repository], ports=taken))
    with pytest.raises(PortInUseError, match=str(server.ports.http)):
        second.start()
    assert second.stop() is None
    assert server.is_ready()


def test_a_server_that_takes_too_long_is_ended(repository: Path) -> None:
    server = TritonServer(ServerOptions([repository]))
    with pytest.raises(ServerStartError, match=r"did not answer within 0\.01 s"):
        server.start(timeout_s=0.01)
    assert not server.is_alive()


def test_a_server_with_an_emulated_gpu_starts_again(
    make_server: MakeServer, python_repository: Path
) -> None:
    """Its repositories are folders of links, which last as long as the server."""
    server = make_server(python_repository, environment={"CT2_TRITON_GPU": "emulated"})
    os.kill(server.process.pid, signal.SIGKILL)
    assert server.process.wait() == -signal.SIGKILL
    server.restart()
    assert server.is_ready()
    assert [(state.name, state.state) for state in server.model_states()] == [("identity", "READY")]


def test_a_killed_server_is_seen_with_its_signal_and_leaves_nothing(
    make_server: MakeServer, python_repository: Path
) -> None:
    server = make_server(python_repository)
    stubs = _children(server.process.pid)
    assert stubs
    os.kill(server.process.pid, signal.SIGKILL)
    assert server.process.wait() == -signal.SIGKILL
    assert not server.is_alive()
    server.stop()
    assert server.failure_text().startswith("tritonserver was ended by SIGKILL")
    wait_until(lambda: all(_gone(pid) for pid in stubs))


def test_a_server_that_crashes_is_started_again_for_the_next_test(
    make_server: MakeServer, python_repository: Path
) -> None:
    server = make_server(python_repository)
    assert shared.revive() == []
    server.process.send_signal(signal.SIGSEGV)
    server.process.wait()
    [said] = shared.revive()
    assert said.startswith("tritonserver was ended by SIGSEGV")
    assert server.is_ready()


def test_the_thread_that_starts_it_may_end_first(make_server: MakeServer, repository: Path) -> None:
    """The kernel ties a parent-death signal to the starting thread, not to the process."""
    servers: list[TritonServer] = []
    thread = threading.Thread(target=lambda: servers.append(make_server(repository)))
    thread.start()
    thread.join()
    assert servers[0].is_ready()


def test_it_dies_with_its_parent(repository: Path) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from ct2_triton.serve import ServerOptions, TritonServer\n"
        "with TritonServer(ServerOptions([Path(sys.argv[1])])) as server:\n"
        "    print(server.process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(repository)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent:
        pid = int(parent.stdout.readline())
        assert not _gone(pid)
        parent.kill()
    wait_until(lambda: _gone(pid))


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("--http-port=1", "use ct2-serve's --http-port"),
        ("--backend-directory=/tmp", "assembles the backends"),
        ("--id=mine", "recognizes"),
    ],
)
def test_arguments_that_contradict_the_options_are_refused(
    repository: Path, argument: str, reason: str
) -> None:
    with pytest.raises(ServeError, match=reason):
        TritonServer(ServerOptions([repository], server_arguments=[argument]))


def test_idle_threads_do_not_spin_unless_told_to(
    make_server: MakeServer, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert b"OMP_WAIT_POLICY=passive\0" in _environment(make_server(repository))
    loud = make_server(repository, environment={"OMP_WAIT_POLICY": "active"})
    assert b"OMP_WAIT_POLICY=active\0" in _environment(loud)


@pytest.mark.gpu
def test_the_gpus_of_a_machine_with_some_are_counted() -> None:
    if not list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("no GPU here")
    assert count_gpus() > 0


def _environment(server: TritonServer) -> bytes:
    return Path(f"/proc/{server.process.pid}/environ").read_bytes()


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
