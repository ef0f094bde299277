# SPDX-License-Identifier: Apache-2.0
"""The Python client reads translations while they grow, and ends them without a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import SyncTranslationClient, TranslationClient, servers
from ct2_triton.errors import (
    DeadlineExceededError,
    InvalidCallError,
    ModelNotFoundError,
    RequestRejectedError,
    SupersededError,
    UnexpectedResponseError,
    UnknownLanguageError,
)
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from server.test_text_stream import ENDLESS_CONFIG
from support.commands import run
from support.endless import ENDLESS, ROOMY, endless_model
from support.metrics import fresh
from support.repository import write_model
from support.servers import ServerStack
from support.tiny import tiny_checkpoint
from support.tokenizers import write_tokenizer
from support.waiting import wait_until

pytestmark = pytest.mark.server

TEXT = "The ticket office opens at 5:45.\nGate C19 closes in 6 minutes!"
LANGUAGES: dict[str, Any] = {"source": "en", "targets": ["de", "fr"]}
ENDLESS_CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn", **ENDLESS}
LONG = ENDLESS_CALL | {"min_decoding_length": 1500, "max_decoding_length": 1500}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    settings = {"compute_type": "float32", "beam_size": "1"}
    prepare(PrepareOptions("demo", folder, settings=settings, io="stream"))
    config = ENDLESS_CONFIG.replace("DECODING", "loop").replace("max_batch_size: 4", "")
    endless = write_model(folder, "endless-stream", endless_model(), config)
    write_tokenizer(tiny_checkpoint("nllb", ROOMY), endless / "tokenizer")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture
async def client(server: TritonServer, repository: Path) -> AsyncIterator[TranslationClient]:
    async with TranslationClient(server.grpc_url, "demo", repository=repository) as opened:
        yield opened


@pytest.fixture
async def endless(server: TritonServer, repository: Path) -> AsyncIterator[TranslationClient]:
    """A client whose streams end only when they are ended."""
    tokenizer = repository / "endless-stream" / "tokenizer"
    async with TranslationClient(server.grpc_url, "endless", tokenizer=tokenizer) as opened:
        yield opened


def _ended(server: TritonServer) -> tuple[float, float]:
    """How many streams were superseded, and how many cancelled."""
    ends = fresh(server, "endless-stream").by("ct2_requests_total")
    return ends.get("superseded", 0), ends.get("cancelled", 0)


def _nothing_runs(server: TritonServer, model: str) -> bool:
    return fresh(server, model)["ct2_decoding_rows"] == 0


def _fails(server: TritonServer) -> int:
    """How many streams Triton counts as failed."""
    statistics = Connection(server.grpc_url)
    try:
        return int(statistics.statistics("endless-stream").inference_stats.fail.count)
    finally:
        statistics.close()


async def test_the_parts_joined_are_the_translation(client: TranslationClient) -> None:
    parts = [part async for part in client.stream_text(TEXT, **LANGUAGES)]
    lines = await client.translate(TEXT.split("\n"), **LANGUAGES)
    for index, target in enumerate(("deu_Latn", "fra_Latn")):
        own = [part for part in parts if part.index == index]
        assert "".join(part.text for part in own) == "\n".join(row[index].text for row in lines)
        assert {part.target for part in own} == {target}
        assert [part.finish_reason for part in own] == [None] * (len(own) - 1) + ["stop"]
        assert len(own) > 10


def test_without_await(server: TritonServer, repository: Path) -> None:
    with SyncTranslationClient(server.grpc_url, "demo", repository=repository) as client:
        whole = "".join(part.text for part in client.stream_text(TEXT, source="en", targets="de"))
        assert whole.startswith("Der Fahrkartenschalter")
        first = next(iter(client.stream_text(TEXT, source="en", targets="de")))
        assert whole.startswith(first.text)


async def test_a_stream_that_is_left_ends_on_the_server(
    endless: TranslationClient, server: TritonServer
) -> None:
    """Its row would run on for long: a newer request of no text takes its place."""
    before = await asyncio.to_thread(_fails, server)
    async with aclosing(endless.stream_text("a river", **ENDLESS_CALL)) as parts:
        assert (await anext(parts)).text
        assert (await anext(parts)).text
    # In a thread: it is the client, in this loop, that ends the stream.
    await asyncio.to_thread(wait_until, lambda: _nothing_runs(server, "endless-stream"))
    await asyncio.to_thread(wait_until, lambda: _fails(server) > before)


async def test_the_time_of_a_stream_is_limited(
    endless: TranslationClient, server: TritonServer
) -> None:
    short = ENDLESS_CALL | {"min_decoding_length": 1, "max_decoding_length": 4}
    assert [part async for part in endless.stream_text("a river", **short)]  # it is connected
    with pytest.raises(DeadlineExceededError):
        async for _ in endless.stream_text("a river", timeout_s=0.5, **ENDLESS_CALL):
            pass
    await asyncio.to_thread(wait_until, lambda: _nothing_runs(server, "endless-stream"))


async def test_a_newer_stream_ends_the_older_one(endless: TranslationClient) -> None:
    older = endless.stream_text("a river", supersede="a", **ENDLESS_CALL)
    assert (await anext(older)).text
    short = ENDLESS_CALL | {"min_decoding_length": 1, "max_decoding_length": 4}
    newer = [part async for part in endless.stream_text("a river", supersede="a", **short)]
    assert newer[-1].finish_reason == "length"
    with pytest.raises(SupersededError):
        async for _ in older:
            pass


async def test_an_older_stream_that_is_read_on_leaves_the_newer_alone(
    endless: TranslationClient,
) -> None:
    """The error of the older one is its end: nothing more is to be ended by their key."""
    begun = asyncio.Event()

    async def read_older() -> None:
        async for _ in endless.stream_text("a river", supersede="both", **ENDLESS_CALL):
            begun.set()

    older = asyncio.create_task(read_older())
    await begun.wait()
    newer = [part async for part in endless.stream_text("a river", supersede="both", **LONG)]
    assert newer[-1].finish_reason == "length"
    with pytest.raises(SupersededError):
        await older


async def test_leaving_an_older_stream_leaves_the_newer_alone(endless: TranslationClient) -> None:
    async with aclosing(endless.stream_text("a river", supersede="left", **ENDLESS_CALL)) as older:
        assert (await anext(older)).text
        newer = endless.stream_text("a river", supersede="left", **LONG)
        assert (await anext(newer)).text
    assert [part async for part in newer][-1].finish_reason == "length"


async def test_a_stream_follows_one_with_its_key_that_was_just_left(
    endless: TranslationClient,
) -> None:
    for _ in range(3):
        async with aclosing(endless.stream_text("a river", supersede="b", **ENDLESS_CALL)) as parts:
            assert (await anext(parts)).text
    newer = [part async for part in endless.stream_text("a river", supersede="b", **LONG)]
    assert newer[-1].finish_reason == "length"


async def test_closing_the_client_ends_streams_by_their_key(
    server: TritonServer, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the row as superseded; a cancellation could harm it."""
    monkeypatch.setattr(servers, "_PATIENCE_S", 120)  # the machine may be busy
    before = await asyncio.to_thread(_ended, server)
    tokenizer = repository / "endless-stream" / "tokenizer"
    client = TranslationClient(server.grpc_url, "endless", tokenizer=tokenizer)
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in client.stream_text("a river", **ENDLESS_CALL):
            begun.set()

    reader = asyncio.create_task(read())
    await begun.wait()
    await client.close()
    with pytest.raises(InvalidCallError, match="closed"):
        await reader
    superseded, cancelled = await asyncio.to_thread(_ended, server)
    assert (superseded, cancelled) == (before[0] + 1, before[1])


async def test_a_version_that_is_not_there_is_passed_over(
    server: TritonServer, repository: Path
) -> None:
    versions = {"7": 1.0, "1": 0.0}
    call = {"source": "en", "targets": "de", "model": "demo-stream"}
    async with TranslationClient(
        server.grpc_url, "demo", repository=repository, versions=versions
    ) as client:
        parts = [part async for part in client.stream_text("Good morning.", **call)]
        assert "".join(part.text for part in parts).startswith("Guten Morgen")
        with pytest.raises(ModelNotFoundError, match="unknown model"):
            await anext(client.stream_text("Good morning.", **call | {"model": "nowhere"}))


@pytest.mark.parametrize("model", ["demo-text", "demo-stream"])
async def test_the_model_of_streams_may_be_named_itself(server: TritonServer, model: str) -> None:
    async with TranslationClient(server.grpc_url, model) as client:
        parts = [part async for part in client.stream_text(TEXT, source="en", targets="de")]
    assert "".join(part.text for part in parts).startswith("Der Fahrkartenschalter")


async def test_a_call_of_a_model_of_streams_names_the_way(server: TritonServer) -> None:
    async with TranslationClient(server.grpc_url, "demo-stream") as client:
        with pytest.raises(UnexpectedResponseError, match="--stream --model demo$"):
            await client.translate("Good morning.", source="en", targets="de")


async def test_what_is_refused_and_a_good_one_after(client: TranslationClient) -> None:
    async def read(**arguments: Any) -> str:
        parts = client.stream_text("Good morning.", **{"source": "en", "targets": "de"} | arguments)
        return "".join([part.text async for part in parts])

    with pytest.raises(UnknownLanguageError):
        await read(targets="klingon")
    with pytest.raises(RequestRejectedError, match="a stream needs beam_size 1"):
        await read(beam_size=4)
    with pytest.raises(ModelNotFoundError, match="unknown model"):
        await read(model="nowhere")
    with pytest.raises(RequestRejectedError, match="max_decoding_length"):
        await read(max_decoding_length=10**9)
    with pytest.raises(InvalidCallError):
        await read(supersede="")
    with pytest.raises(InvalidCallError, match="not valid Unicode"):
        await anext(client.stream_text("a \ud800 river", source="en", targets="de"))
    expected = await client.translate("Good morning.", source="en", targets="de")
    assert await read() == expected.text


def _command(server: TritonServer, repository: Path, *arguments: str) -> list[str]:
    model = ["--model", "demo", "--url", server.grpc_url, "--model-repository", str(repository)]
    return ["ct2-translate", *model, "--from", "en", *arguments]


def test_the_command_prints_lines_while_they_grow(server: TritonServer, repository: Path) -> None:
    lines = "Good morning.\n\nGate C19 closes in 6 minutes!\n"
    printed = {}
    for stream in ([], ["--stream"]):
        command = _command(server, repository, "--to", "de", *stream)
        printed[bool(stream)] = run(*command, text=lines).stdout
    assert printed[True] == printed[False]
    assert printed[True].count("\n") == 3


def test_a_wrong_request_ends_the_run_once_and_a_wrong_line_does_not(
    server: TritonServer, repository: Path
) -> None:
    command = _command(server, repository, "--to", "de", "--stream")
    lines = "One.\nTwo.\nThree.\n"
    wrong = run(*command, "--option", "no_such_option=1", code=1, text=lines)
    [said] = wrong.stderr.splitlines()
    assert said.startswith("ct2-translate: not translated from line 1 on: ")
    assert "no_such_option" in said
    done = run(*command, code=1, text=f"{'word ' * 300_000}\nGood morning.\n")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout.startswith("\nGuten Morgen")


def test_half_of_a_surrogate_pair_fails_its_line_alone(
    server: TritonServer, repository: Path
) -> None:
    command = _command(server, repository, "--to", "de", "--stream", "--json-input")
    lines = '"half of \\ud83d"\n"Good morning."\n'
    done = run(*command, code=1, text=lines)
    assert "line 1: text_input is not valid Unicode" in done.stderr
    assert done.stdout.startswith("\nGuten Morgen")


@pytest.mark.parametrize("wait", [[], ["--retry-for", "5"]])
def test_the_command_may_name_the_model_of_streams(server: TritonServer, wait: list[str]) -> None:
    """It is the only model that is asked."""
    command = ["ct2-translate", "--url", server.grpc_url, "--model", "demo-stream", "--from", "en"]
    done = run(*command, "--to", "de", "--stream", *wait, text="Good morning.")
    assert done.stdout.startswith("Guten Morgen")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--to", "de,fr"], "--to names 2"), (["--to", "de", "--json"], "leave out --json")],
)
def test_the_command_refuses_what_does_not_grow(
    server: TritonServer, repository: Path, arguments: list[str], message: str
) -> None:
    command = _command(server, repository, *arguments, "--stream")
    assert message in run(*command, code=1, text="").stderr
