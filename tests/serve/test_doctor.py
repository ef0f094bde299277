# SPDX-License-Identifier: Apache-2.0
"""ct2-serve --check: a sentence for each thing that is wrong, and the exit status."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import pytest

from ct2_triton.serve.machine import count_gpus
from support import emulated_gpu
from support.commands import run
from support.ports import free_ports
from support.prepared import prepare_tiny
from support.repository import write_model
from support.tiny import tiny_engine_model

pytestmark = pytest.mark.server

COMMAND = Path(sys.executable).with_name("ct2-serve")


def _check(
    folder: Path, *arguments: str, code: int, ports: str = "--free-ports", **variables: str
) -> list[tuple[str, str, str]]:
    """Runs the command in a folder; gives mark, subject and sentence of each line."""
    command = [COMMAND, "--check", *ports.split(), *arguments]
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    result = run(*command, code=code, folder=folder, **cache | variables)
    found = re.findall(
        r"^(ok|wrong) +(\w+) +(.*(?:\n(?!ok|wrong).*)*)", result.stdout, re.MULTILINE
    )
    assert (code == 1) == any(mark == "wrong" for mark, _, _ in found)
    return found


def _wrong(found: list[tuple[str, str, str]]) -> dict[str, str]:
    return {what: text for mark, what, text in found if mark == "wrong"}


def test_a_machine_where_all_is_well_translates_a_sentence(tmp_path: Path) -> None:
    found = _check(tmp_path, code=0)
    assert [what for _, what, _ in found] == [
        "server", "engine", "processor", "GPU", "models", "models", "translation",
    ]  # fmt: skip
    assert "'Der Fahrkartenschalter öffnet um 5:45 Uhr.' (deu_Latn)" in found[-1][2]
    assert not (tmp_path / "model_repository").exists()


def test_models_of_the_repository_are_tried_each(tmp_path: Path) -> None:
    prepare_tiny("marian", tmp_path / "model_repository", "opus")
    write_model(tmp_path / "model_repository", "bare", tiny_engine_model("nllb"))
    texts = [text for _, what, text in _check(tmp_path, code=0) if what == "translation"]
    assert texts[0].startswith("bare was loaded; only models with a tokenizer")
    assert texts[1].startswith("opus: 'The ticket office opens at 5:45.' -> '")
    (only,) = [t for _, what, t in _check(tmp_path, "opus", code=0) if what == "translation"]
    assert only.startswith("opus: ")


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
def test_a_model_for_a_gpu_is_right_where_one_is_emulated(tmp_path: Path) -> None:
    repository = tmp_path / "model_repository"
    few = {"max_decoding_length": "4"}  # tokens, which an emulated GPU makes slowly
    model = prepare_tiny("marian", repository, "opus", settings=few).directory
    config = model / "config.pbtxt"
    config.write_text(re.sub(r"KIND_\w+", "KIND_GPU", config.read_text()))
    assert "KIND_GPU" in _wrong(_check(tmp_path, code=1))["models"]
    found = _check(tmp_path, code=0, **emulated_gpu.server_environment())
    assert found[-1][2].startswith("opus: ")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    wrong = _wrong(_check(tmp_path, code=1, TRITONSERVER="/nowhere/tritonserver"))
    assert wrong["server"] == "/nowhere/tritonserver is not an executable tritonserver"
    assert set(wrong) == {"server", "translation"}


def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    wrong = _wrong(_check(tmp_path, code=1, CT2_TRITON_PLUGIN="/nowhere/lib.so"))
    assert "/nowhere/lib.so, which is not there" in wrong["engine"]


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        free = free_ports()
        others = f"--http-port {free.http} --metrics-port {free.metrics}"
        wrong = _wrong(_check(tmp_path, code=1, ports=f"--grpc-port {port} {others}"))
    assert f"cannot use port {port} of 127.0.0.1 for grpc" in wrong["ports"]


def test_a_model_that_is_missing_or_damaged(tmp_path: Path) -> None:
    model = prepare_tiny("nllb", tmp_path / "model_repository", "tiny")
    assert "no model 'other' (there: tiny): ct2-serve other prepares it" in _wrong(
        _check(tmp_path, "other", code=1)
    )["models"]  # fmt: skip
    weights = model.directory / "1" / "model" / "model.bin"
    weights.write_bytes(weights.read_bytes()[:1000])
    wrong = _wrong(_check(tmp_path, code=1))
    assert "model.bin" in wrong["models"]
    assert "tritonserver ended with status 1" in wrong["translation"]
