# SPDX-License-Identifier: Apache-2.0
"""ct2-serve starts a server again that crashed, and clients that retry lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

import pytest

from ct2_triton.client import RetryPolicy, TranslationClient
from serve.serving import read_ready, server_of, serving
from support.repository import write_identity_model

pytestmark = pytest.mark.server

_SENTENCES = [
    f"The ticket office opens at {hour}:{minute:02}."
    for hour in range(1, 9)
    for minute in range(10, 60, 2)
]
_PATIENT = RetryPolicy(budget_s=120, outage_s=120)
_SLOW_START = "    def initialize(self, args):\n        import time; time.sleep(60)\n"


class Demo:
    """ct2-serve with the demo model, which tests attack."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log
        self.folder = log.parent / "models"
        ready = read_ready(process)
        self.grpc_url, self.http_url = ready["gRPC"], ready["HTTP"]

    def server_pid(self) -> int:
        return server_of(self.process.pid)

    def client(self) -> TranslationClient:
        """Makes a client that sends a sentence again until it is answered."""
        return TranslationClient(
            self.grpc_url, "demo", repository=self.folder, retry=_PATIENT, timeout_s=120
        )

    async def translate_all(self, *, under: asyncio.Event | None = None) -> list[str]:
        """Translates all sentences; sets the event once the first are answered."""
        answered = 0
        async with self.client() as client:
            places = asyncio.Semaphore(16)

            async def one(sentence: str) -> str:
                nonlocal answered
                async with places:
                    german = await client.translate(sentence, source="en", targets="de")
                answered += 1
                if under is not None and answered == 20:
                    under.set()
                return german.text

            return list(await asyncio.gather(*map(one, _SENTENCES)))


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    log = tmp_path / "errors"
    with log.open("w", encoding="utf-8") as errors, _demo(tmp_path, errors) as process:
        yield Demo(process, log)


def _demo(folder: Path, errors: TextIO) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    environment = {**os.environ, "CT2_MODEL_REPOSITORY": str(folder / "models")}
    return serving("demo", "--free-ports", env=environment, stderr=errors)


def _send_nested_body(http_url: str) -> None:
    """The request that ends tritonserver before 2.69: JSON that is nested a million deep."""
    address = urlsplit(http_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("POST", "/v2/models/demo-text/infer", "[" * 1_000_000)
        connection.getresponse()
    connection.close()


async def test_a_body_that_ends_the_server_costs_retrying_clients_nothing(demo: Demo) -> None:
    before, pid = await demo.translate_all(), demo.server_pid()
    under = asyncio.Event()
    work = asyncio.create_task(demo.translate_all(under=under))
    await under.wait()
    await asyncio.to_thread(_send_nested_body, demo.http_url)
    assert await work == before
    if demo.server_pid() == pid:
        pytest.skip("this tritonserver survives the body")
    assert await demo.translate_all() == before
    assert "it is started again (restart 1 of at most 5 a minute)" in demo.log.read_text()


async def test_calls_cancelled_as_they_end_cost_others_nothing(demo: Demo) -> None:
    """Such a cancel may end tritonserver before 2.57; whether it does differs from run to run."""
    before = await demo.translate_all()
    moments = random.Random(5)
    async with demo.client() as client:

        async def leave_early(sentence: str) -> None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(
                    client.translate(sentence, source="en", targets="fr"),
                    moments.uniform(0.0005, 0.02),
                )

        work = asyncio.create_task(demo.translate_all())
        for _ in range(5):
            await asyncio.gather(*map(leave_early, _SENTENCES[:100]))
        assert await work == before


def test_a_server_that_crashes_too_often_is_given_up(repository: Path) -> None:
    arguments = ["--model-repository", repository, "--free-ports", "--restarts-per-minute", "1"]
    with serving(*arguments) as process:
        read_ready(process)
        assert process.stderr is not None
        os.kill(server_of(process.pid), signal.SIGKILL)
        _read_until(process.stderr, "tritonserver is ready again")
        os.kill(server_of(process.pid), signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode == 1
        assert "tritonserver was ended by SIGKILL" in errors


def test_a_signal_while_it_starts_again_ends_it(repository: Path) -> None:
    arguments = ["--model-repository", repository, "--free-ports"]
    model = write_identity_model(repository, "identity") / "1" / "model.py"
    with serving(*arguments) as process:
        read_ready(process)
        model.write_text(model.read_text() + _SLOW_START)
        assert process.stderr is not None
        os.kill(server_of(process.pid), signal.SIGKILL)
        _read_until(process.stderr, "it is started again")
        _read_until(process.stderr, "loading: identity:1")
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == 128 + signal.SIGTERM


def _read_until(log: TextIO, text: str) -> None:
    assert any(text in line for line in log)
