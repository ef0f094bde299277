# SPDX-License-Identifier: Apache-2.0
"""Faults around the server: it is killed, gets bad files, or finds the disk full."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton import errors
from ct2_triton.client import RetryPolicy, Sentence, TranslationClient
from ct2_triton.serve import TritonServer
from reliability import observe
from server import configs
from server.helpers import Connection, Reference, sentences
from support import endless
from support.metrics import scrape
from support.prepared import prepare_tiny
from support.repository import write_model
from support.servers import EXPLICIT
from support.tiny import tiny_checkpoint
from support.waiting import wait_until
from tiny_corpus import sentences as texts

pytestmark = pytest.mark.server

MakeServer = Callable[..., TritonServer]
TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"]
SHORT: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 12, "beam_size": 1}
ENDLESS: dict[str, Any] = {"source": "eng_Latn", **endless.ENDLESS}
LIMIT = {"max_decoding_length": 8}


def kill(server: TritonServer) -> None:
    """Kills the server as the kernel does when memory is short, and waits for its end."""
    os.kill(server.process.pid, signal.SIGKILL)
    assert server.process.wait() == -signal.SIGKILL


async def test_a_killed_server_ends_every_call_and_the_client_finds_the_next_one(
    make_server: MakeServer, tmp_path: Path
) -> None:
    """No call hangs, none is sent twice, and those made meanwhile wait for the new server."""
    settings = {name: str(value) for name, value in endless.ALLOWS_ENDLESS.items()}
    prepare_tiny("nllb", tmp_path, "nllb", endless.ROOMY, settings=settings)
    first = make_server(tmp_path)
    policy = RetryPolicy(budget_s=120)
    async with TranslationClient(
        first.grpc_url, "nllb", repository=tmp_path, retry=policy
    ) as client:
        rows = list(texts(40, 3))
        expected = await client.translate(rows, targets=TARGETS, **SHORT)
        calls = [
            asyncio.ensure_future(client.translate(t, targets=TARGETS, **ENDLESS)) for t in rows
        ]

        def arrived() -> bool:
            found = scrape(first, "nllb")
            rows_there = found["ct2_decoding_rows"] + found["ct2_waiting_rows"]
            return rows_there == len(rows) * len(TARGETS)

        await asyncio.to_thread(wait_until, arrived, "all rows to arrive")
        kill(first)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {errors.ConnectionLostError}
        waiting = asyncio.ensure_future(client.translate(rows, targets=TARGETS, **SHORT))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        second = await asyncio.to_thread(make_server, tmp_path, ports=first.ports)
        answers = await waiting
        assert [[t.ids for t in row] for row in answers] == [
            [t.ids for t in row] for row in expected
        ]
        counts = await asyncio.to_thread(observe.settled, second, "nllb")
        assert counts.success == len(rows) * len(TARGETS)
        assert counts.failed == 0


async def test_a_stream_over_a_killed_server_gives_each_sentence_once(
    make_server: MakeServer, tmp_path: Path
) -> None:
    prepare_tiny("nllb", tmp_path, "nllb")
    server = make_server(tmp_path)
    rows = list(texts(60, 5))

    async def arriving() -> AsyncGenerator[Sentence, None]:
        for i, text in enumerate(rows):
            if i == 30:
                kill(server)
            yield Sentence(text, id=str(i))

    policy = RetryPolicy(budget_s=0.5)
    async with TranslationClient(
        server.grpc_url, "nllb", repository=tmp_path, retry=policy
    ) as client:
        await client.wait_until_ready(60)  # longer than a call may wait
        expected = await client.translate(rows[:30], targets=TARGETS, **SHORT)
        seen: Counter[tuple[int, str | None]] = Counter()
        failed: Counter[type] = Counter()
        async for item in client.stream(arriving(), targets=TARGETS, on_error="yield", **SHORT):
            seen[item.position, item.target] += 1
            if isinstance(item.outcome, errors.ClientError):
                failed[type(item.outcome)] += 1
            else:
                truth = expected[item.position][TARGETS.index(str(item.target))]
                assert item.translation.ids == truth.ids
    assert set(seen.values()) == {1}
    assert len(seen) == len(rows) * len(TARGETS)
    assert failed
    assert set(failed) <= {errors.ConnectionLostError, errors.ServerUnreachableError}


def is_no_file(path: Path) -> None:
    path.unlink()
    path.mkdir()


def leads_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def is_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


@pytest.mark.parametrize("damage", [is_no_file, leads_nowhere, is_cut])
@pytest.mark.parametrize("file", ["model.bin", "config.json", "shared_vocabulary.json"])
def test_a_bad_new_version_leaves_the_old_one_serving(
    server: TritonServer,
    server_repository: Path,
    nllb_engine_model: Path,
    file: str,
    damage: Callable[[Path], None],
) -> None:
    name = f"{file.split('.')[0]}_{damage.__name__}"
    folder = write_model(server_repository, name, nllb_engine_model, configs.plain())
    connection = Connection(server.grpc_url)
    connection.raw.load_model(name)
    shutil.copytree(nllb_engine_model, folder / "2" / "model")
    damage(folder / "2" / "model" / file)
    with pytest.raises(InferenceServerException) as raised:
        connection.raw.load_model(name)
    message = str(raised.value.message())
    assert "version 2" in message
    assert file in message or "/2/model" in message
    reference = Reference(nllb_engine_model)
    (row, prefix), *_ = sentences(reference, 1)
    expected = reference.translate(row, prefix, **LIMIT)
    assert connection.translate(name, row, prefix, **LIMIT) == expected
    shutil.rmtree(folder / "2")
    shutil.copytree(nllb_engine_model, folder / "2" / "model")
    connection.raw.load_model(name)
    answer = connection.infer(name, [row], [prefix], version="2", **LIMIT)
    assert answer["OUTPUT_IDS"].tolist() == [expected]
    connection.raw.unload_model(name)
    connection.close()


def test_a_bad_new_config_leaves_the_old_one_serving(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path
) -> None:
    folder = write_model(tmp_path, "nllb", nllb_engine_model, configs.plain())
    # Triton 2.51 never forgets a version that was to replace itself and failed to load, whatever
    # the backend: at its end it waits for that version, 30 seconds unless told otherwise.
    server = make_server(tmp_path, server_arguments=[*EXPLICIT, "--exit-timeout-secs=1"])
    connection = Connection(server.grpc_url)
    reference = Reference(nllb_engine_model)
    (row, prefix), *_ = sentences(reference, 1)
    expected = reference.translate(row, prefix, **LIMIT)
    for config, said in [
        (configs.plain(beam_sise=4), "beam_sise"),
        (configs.plain(beam_size=40), "max_beam_size"),
        (configs.plain("response_cache { enable: true }"), "response_cache"),
        ("what is this", "failed to load"),
    ]:
        (folder / "config.pbtxt").write_text(config)
        with pytest.raises(InferenceServerException, match=said):
            connection.raw.load_model("nllb")
        assert connection.translate("nllb", row, prefix, **LIMIT) == expected
    connection.close()


def test_a_log_that_cannot_be_written_does_not_stop_the_server(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path
) -> None:
    """/dev/full is a disk that is full. Verbose, so that a pipe nobody reads would fill up."""
    write_model(tmp_path, "nllb", nllb_engine_model, configs.plain())
    reference = Reference(nllb_engine_model)
    full = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 - it cannot be closed
    server = make_server(tmp_path, log=full, server_arguments=["--log-verbose=2"])
    connection = Connection(server.grpc_url)
    for row, prefix in sentences(reference, 200):
        expected = reference.translate(row, prefix, **LIMIT)
        assert connection.translate("nllb", row, prefix, **LIMIT) == expected
    connection.close()
    assert "StateRelease" in server.log_text()  # the newest lines are kept all the same
    assert server.stop() == 0
    with suppress(OSError):  # what could not be written may still be in its buffer
        full.close()


@pytest.mark.parametrize("source", ["tiny", "demo"])
def test_a_full_disk_fails_ct2_prepare_with_a_sentence(tmp_path: Path, source: str) -> None:
    """No file may grow beyond 100 kB, as on a disk that is nearly full; nothing is left behind."""
    repository = tmp_path / "repository"
    prepare = Path(sys.executable).with_name("ct2-prepare")
    checkpoint = tiny_checkpoint("nllb") if source == "tiny" else source
    arguments = [checkpoint, "--model-repository", repository, "--name", "nllb"]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 100 && exec "$@"', "bash", prepare, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith("ct2-prepare: no room for ")
    assert "Traceback" not in done.stderr
    assert not list(repository.glob("*"))
