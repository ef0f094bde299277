# SPDX-License-Identifier: Apache-2.0
"""ct2-serve as a user runs it."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import urllib.request
from pathlib import Path

import pytest

from ct2_triton.serve.machine import count_gpus
from serve.serving import COMMAND, read_ready, server_of, serving
from support.commands import run
from support.repository import ONLY_THE_BACKEND, write_identity_model, write_model
from support.tiny import tiny_engine_model

pytestmark = pytest.mark.server

PREPARE = COMMAND.with_name("ct2-prepare")
TRANSLATE = COMMAND.with_name("ct2-translate")
ROOT = Path(__file__).resolve().parents[2]
BAD_CONFIG = ONLY_THE_BACKEND.replace("ctranslate2", "nosuch")


def _failed(*arguments: str | Path, code: int = 1) -> str:
    return run(COMMAND, *arguments, code=code).stderr


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_and_ends_well(repository: Path, signal_number: int) -> None:
    with serving("--model-repository", repository, "--free-ports") as process:
        ready = read_ready(process)
        assert ready["models"] == "nllb"
        assert re.fullmatch(r"127\.0\.0\.1:\d+", ready["gRPC"])
        with urllib.request.urlopen(f"{ready['HTTP']}/v2/models/nllb/ready") as answer:  # noqa: S310
            assert answer.status == 200
        with urllib.request.urlopen(ready["metrics"]) as answer:  # noqa: S310
            assert b"nv_inference_count" in answer.read()
        process.send_signal(signal_number)
        _, log = process.communicate()
        assert process.returncode == 0
        assert "successfully unloaded 'nllb'" in log


def test_folders_that_are_no_models_are_left_out(repository: Path) -> None:
    """A volume has lost+found, a prepare that was killed leaves its folder: no server started."""
    (repository / "lost+found").mkdir()
    killed = repository / ".models.m.f982ekb5.tmp"
    (killed / "1").mkdir(parents=True)
    (repository / "notes.txt").touch()
    with serving("--model-repository", repository, "--free-ports") as process:
        assert read_ready(process)["models"] == "nllb"
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate()
    assert f"{killed}, {repository / 'lost+found'}: left out, since they are no models" in log
    checked = run(COMMAND, "--check", "--model-repository", repository, "--free-ports").stdout
    assert f"{repository / 'lost+found'}: left out, since it is no model" in checked
    shutil.rmtree(repository / "nllb")
    assert "has no model" in _failed("--model-repository", repository)


def test_http_can_have_an_address_of_its_own(repository: Path) -> None:
    hosts = ("--host", "127.0.0.2", "--http-host", "127.0.0.1")
    with serving("--model-repository", repository, "--free-ports", *hosts) as process:
        ready = read_ready(process)
        assert re.fullmatch(r"127\.0\.0\.2:\d+", ready["gRPC"])
        assert ready["HTTP"].startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{ready['HTTP']}/v2/models/nllb/ready") as answer:  # noqa: S310
            assert answer.status == 200


def test_a_signal_while_it_starts_ends_it(repository: Path) -> None:
    slow = write_identity_model(repository, "identity") / "1" / "model.py"
    slow.write_text(
        slow.read_text() + "    def initialize(self, args):\n        import time; time.sleep(5)\n"
    )
    with serving("--model-repository", repository, "--free-ports") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "loading: identity" in line:
                break
        process.terminate()
        _, log = process.communicate()
        assert process.returncode == 128 + signal.SIGTERM
        assert "Traceback" not in log


def test_the_log_goes_to_a_file_if_asked(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("kept\n")
    arguments = ("--model-repository", repository, "--free-ports", "--log-file", log)
    with serving(*arguments, "--", "--log-verbose=1") as process:
        read_ready(process)
        process.terminate()
        _, errors = process.communicate()
    assert errors == ""
    assert log.read_text().startswith("kept\n")
    assert "successfully loaded 'nllb'" in log.read_text()


def test_on_a_terminal_the_servers_log_goes_to_a_file_that_is_named(
    repository: Path, tmp_path: Path
) -> None:
    terminal, end = pty.openpty()
    cache = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    arguments = ("--model-repository", repository, "--free-ports")
    with serving(*arguments, stderr=end, env=cache) as process:
        assert read_ready(process)["models"] == "nllb"
        said = os.read(terminal, 10_000).decode().split()
        process.terminate()
        process.wait()
    os.close(end)
    os.close(terminal)
    assert said[:3] == ["ct2-serve:", "tritonserver's", "log:"]
    assert len(said) == 4
    assert "successfully loaded 'nllb'" in Path(said[3]).read_text()
    with serving(*arguments, "--log-file", "-") as process:
        read_ready(process)
        process.terminate()
        assert "successfully loaded 'nllb'" in process.communicate()[1]


def test_a_quiet_command_writes_the_servers_log_to_a_file(repository: Path, tmp_path: Path) -> None:
    cache = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with serving("-q", "--model-repository", repository, "--free-ports", env=cache) as process:
        read_ready(process)
        process.terminate()
        assert process.communicate()[1] == ""
    [log] = (tmp_path / "ct2-triton" / "logs").iterdir()
    assert "successfully loaded 'nllb'" in log.read_text()


def test_a_log_file_that_cannot_be_written_is_named(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "nowhere" / "server.log"
    errors = _failed("--model-repository", repository, "--log-file", log)
    assert errors == f"ct2-serve: cannot write the log file {log}: No such file or directory\n"


def test_a_model_that_does_not_load_is_named_at_the_end(repository: Path, tmp_path: Path) -> None:
    write_model(repository, "bad", tiny_engine_model("nllb"), BAD_CONFIG)
    log = tmp_path / "server.log"
    errors = _failed("--model-repository", repository, "--free-ports", "--log-file", log)
    lines = errors.splitlines()
    assert lines[0] == "ct2-serve: tritonserver ended with status 1"
    assert lines[1].startswith("  failed to load 'bad' version 1:")


def test_models_that_are_not_available_are_warned_of(repository: Path) -> None:
    write_model(repository, "bad", tiny_engine_model("nllb"), BAD_CONFIG)
    arguments = ("--model-repository", repository, "--free-ports", "--", "--exit-on-error=false")
    with serving(*arguments) as process:
        assert read_ready(process)["models"] == "nllb"
        process.terminate()
        _, errors = process.communicate()
    assert "ct2-serve: warning: model 'bad' is not available: Invalid argument:" in errors


def test_a_server_that_ends_by_itself_is_a_failure(repository: Path) -> None:
    with serving(
        "--model-repository", repository, "--free-ports", "--restarts-per-minute", "0"
    ) as process:
        read_ready(process)
        os.kill(server_of(process.pid), signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode == 1
        assert "ct2-serve: tritonserver was ended by SIGKILL" in errors


@pytest.mark.skipif(count_gpus() > 0, reason="this machine has a GPU")
def test_a_gpu_model_on_a_machine_without_one_is_refused_before_the_start(
    repository: Path,
) -> None:
    config = ONLY_THE_BACKEND + "instance_group { kind: KIND_GPU }\n"
    write_model(repository, "gpu", tiny_engine_model("nllb"), config)
    errors = _failed("--model-repository", repository, "--free-ports")
    assert errors.startswith("ct2-serve: model 'gpu' asks for a GPU and this machine has none")
    assert errors.count("\n") == 1


def test_a_response_cache_is_warned_of(repository: Path) -> None:
    config = 'backend: "ctranslate2"\nresponse_cache { enable: true }\n'
    write_identity_model(repository, "cached", config)
    errors = _failed("--model-repository", repository, "--free-ports")
    assert errors.startswith("ct2-serve: warning: model 'cached' turns on the response cache")


def test_misuse_has_its_own_exit_code(repository: Path, tmp_path: Path) -> None:
    both = ("--model-repository", repository, "--install-backend", tmp_path)
    assert "not allowed with" in _failed(*both, code=2)
    for port in ("x", "0", "65536"):
        assert f"'{port}' is not a port" in _failed("--grpc-port", port, code=2)


def test_a_repository_without_its_flag_is_told_apart(repository: Path) -> None:
    assert f"{repository} is a model repository: name it with" in _failed(
        repository, "--free-ports"
    )


def test_an_option_that_the_server_does_not_know_is_in_the_last_lines(repository: Path) -> None:
    errors = _failed("--model-repository", repository, "--free-ports", "--", "--no-such")
    assert errors.endswith("ended with status 1\n  unrecognized option '--no-such'\n")


def test_options_of_a_preparation_without_a_model_to_prepare_are_told(tmp_path: Path) -> None:
    repository = ("--model-repository", tmp_path / "nowhere")
    errors = _failed(*repository, "--quantization", "float32", "--set", "beam_size=2")
    assert "--quantization, --set: nothing is prepared, since no MODEL is named" in errors
    assert "nothing is prepared" not in _failed(*repository)


def test_a_repository_that_is_not_there_is_named(tmp_path: Path) -> None:
    errors = _failed("--model-repository", tmp_path / "nowhere")
    assert errors.startswith(f"ct2-serve: {tmp_path}/nowhere is not a folder")


def test_a_model_in_place_of_its_repository_is_told_apart(repository: Path) -> None:
    errors = _failed("--model-repository", repository / "nllb")
    assert errors.startswith(f"ct2-serve: {repository}/nllb is a model: name the model repos")


@pytest.mark.parametrize(
    ("variables", "folder"),
    [({}, "model_repository"), ({"CT2_MODEL_REPOSITORY": "elsewhere"}, "elsewhere")],
)
def test_all_commands_have_one_default_repository(
    tmp_path: Path, variables: dict[str, str], folder: str
) -> None:
    place = {"folder": tmp_path, **variables}
    before = run(COMMAND, code=1, **place)
    assert before.stderr.startswith(f"ct2-serve: {folder} is not a folder")
    run(PREPARE, "demo", **place)
    shutil.copy(ROOT / "model_repository" / "README.md", tmp_path / folder)
    environment = {**os.environ, **variables}
    with serving("--free-ports", cwd=tmp_path, env=environment) as process:
        ready = read_ready(process)
        assert ready["models"] == "demo"
        translate = [TRANSLATE, "--model=demo", "--from=en", "--to=de", "--url", ready["gRPC"]]
        sentence = "The ticket office opens at 5:45.\n"
        answer = run(*translate, text=sentence, **place)
        assert "5:45" in answer.stdout


def test_the_backend_is_installed_once_without_force(tmp_path: Path) -> None:
    install = [COMMAND, "--install-backend", tmp_path]
    done = run(*install)
    assert done.stdout == f"installed the backend in {tmp_path}/ctranslate2\n"
    assert "--force" in _failed("--install-backend", tmp_path)
    run(*install, "--force")
    assert {path.name for path in tmp_path.iterdir()} == {"ctranslate2"}
