# SPDX-License-Identifier: Apache-2.0
"""What the client puts on the wire and makes of answers; the server echoes, refuses or hangs."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest

from ct2_triton import errors
from ct2_triton.client import SyncTranslationClient, Tokenizer, TranslationClient
from python.client.conftest import client_of
from support.fault_server import (
    FaultServer,
    abort,
    echo,
    hang,
    serving,
    serving_in_a_thread,
)
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ct2_triton.client.tokenization import EncodedText
    from python.client.conftest import TokenizerFolder

TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"]
TEXT = "The old sailor noticed the harbour."


class CountingTokenizer(Tokenizer):
    """Counts the sentences it splits."""

    split = 0

    def encode(self, text: str) -> EncodedText:
        self.split += 1
        return super().encode(text)


class Recorder(FaultServer):
    """Keeps requests, and the most that were under way at once; waits for so many first."""

    def __init__(self, first: int = 1) -> None:
        super().__init__(self.keep)
        self.requests: list[Any] = []
        self.first = first
        self.now = self.most = self.metadata_calls = 0

    async def keep(self, server: FaultServer, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        while self.most < self.first:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        self.now -= 1
        return await echo(server, request, context)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.metadata_calls += 1
        return await super().ModelMetadata(request, context)


@pytest.fixture
def tokenizer(tokenizer_folder: TokenizerFolder) -> CountingTokenizer:
    return CountingTokenizer(tokenizer_folder("nllb"))


def row(request: Any, name: str) -> list[int]:
    names = [tensor.name for tensor in request.inputs]
    content = request.raw_input_contents[names.index(name)]
    return list(map(int, np.frombuffer(content, dtype="<i4")))


async def test_a_sentence_is_split_once_for_all_its_languages(
    tokenizer: CountingTokenizer,
) -> None:
    server = Recorder()
    async with client_of(server, tokenizer) as client:
        answer = await client.translate(TEXT, source="eng_Latn", targets=TARGETS)
    assert tokenizer.split == 1
    assert len(server.requests) == 4
    assert [one.target for one in answer] == TARGETS
    # The server echoes the source ids, so that their text comes back, without the prefix.
    assert [one.text for one in answer] == [TEXT] * 4
    sent = row(server.requests[0], "INPUT_IDS")
    assert [list(one.ids) for one in answer] == [sent] * 4


async def test_every_request_sends_the_same_inputs_and_one_row(
    tokenizer: CountingTokenizer,
) -> None:
    server = Recorder()
    async with client_of(server, tokenizer) as client:
        await client.translate([TEXT, "No!"], source="eng_Latn", targets=TARGETS)
    for request in server.requests:
        assert [tensor.name for tensor in request.inputs] == ["INPUT_IDS", "TARGET_PREFIX"]
        assert [next(iter(tensor.shape)) for tensor in request.inputs] == [1, 1]
        assert [output.name for output in request.outputs] == ["OUTPUT_IDS"]
    prefixes = {tuple(row(request, "TARGET_PREFIX")) for request in server.requests}
    assert len(prefixes) == 4
    assert server.metadata_calls == 1


async def test_options_travel_typed_and_the_deadline_with_them(
    tokenizer: CountingTokenizer,
) -> None:
    server = Recorder()
    options: dict[str, Any] = {
        "beam_size": 4,
        "length_penalty": 0.8,
        "disable_unk": True,
        "end_token": "</s>",
        "suppress_sequences": [["a", "b"]],
    }
    async with client_of(server, tokenizer) as client:
        await client.translate(TEXT, source="eng_Latn", targets="de", timeout_s=20, **options)
        await client.translate(TEXT, source="eng_Latn", targets="de", timeout_s=None)
    first, second = (request.parameters for request in server.requests)
    assert first["beam_size"].int64_param == 4
    assert first["length_penalty"].double_param == 0.8
    assert first["disable_unk"].bool_param is True
    assert first["end_token"].string_param == "</s>"
    assert first["suppress_sequences"].string_param == '[["a", "b"]]'
    assert 0 < first["timeout"].int64_param <= 20_000_000
    assert len(first) == 6
    assert len(second) == 0


async def test_a_long_list_is_sent_within_the_bound(tokenizer: CountingTokenizer) -> None:
    server = Recorder(first=8)
    async with client_of(server, tokenizer, max_in_flight=8) as client:
        answers = await client.translate([TEXT] * 40, source="eng_Latn", targets=TARGETS[:2])
    assert len(answers) == 40
    assert server.most == 8


async def test_one_text_or_one_language_adds_no_list(tokenizer: CountingTokenizer) -> None:
    async with client_of(Recorder(), tokenizer) as client:
        ask = partial(client.translate, source="eng_Latn")
        one = await ask(TEXT, targets=TARGETS[0])
        assert (one.source_text, one.target) == (TEXT, TARGETS[0])
        assert await ask(TEXT, targets=TARGETS[:1]) == [one]
        assert await ask([TEXT, TEXT], targets=TARGETS[0]) == [one, one]
        assert await ask([TEXT], targets=TARGETS[:1]) == [[one]]


async def test_nothing_is_sent_for_nothing(tokenizer: CountingTokenizer) -> None:
    server = Recorder()
    async with client_of(server, tokenizer) as client:
        assert await client.translate([], source="eng_Latn", targets=TARGETS) == []
        answer = await client.translate(" \n", source="eng_Latn", targets="de")
    assert (answer.text, answer.finish_reason, answer.source_text) == ("", "empty", " \n")
    assert server.requests == []


async def test_nothing_is_sent_for_an_unknown_language(tokenizer: CountingTokenizer) -> None:
    server = Recorder()
    async with client_of(server, tokenizer) as client:
        with pytest.raises(errors.UnknownLanguageError, match="deu_Latn"):
            await client.translate(TEXT, source="eng_Latn", targets=["fra_Latn", "deu_Lat"])
        with pytest.raises(errors.UnknownLanguageError, match="source language"):
            await client.translate(TEXT, targets="deu_Latn")
        with pytest.raises(errors.UnknownLanguageError, match="target language"):
            await client.translate(TEXT, source="eng_Latn")
    assert server.requests == []


async def test_the_first_failure_cancels_the_rest(tokenizer: CountingTokenizer) -> None:
    async def refuse_the_second(server: FaultServer, request: Any, context: Any) -> Any:
        if server.calls == 2:
            await server.started.wait()
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not this one")
        return await hang(server, request, context)

    server = FaultServer(refuse_the_second)
    async with client_of(server, tokenizer) as client:
        with pytest.raises(errors.RequestRejectedError, match="not this one"):
            await client.translate(TEXT, source="eng_Latn", targets=TARGETS)
        await asyncio.wait_for(server.cancelled.wait(), 600)


async def test_the_timeout_covers_the_whole_call(tokenizer: CountingTokenizer) -> None:
    server = FaultServer()
    async with client_of(server, tokenizer, timeout_s=1, max_in_flight=1) as client:
        # No part of the second goes into connecting.
        await client.translate(TEXT, source="eng_Latn", targets="de", timeout_s=60)
        server.behaviour = hang
        with pytest.raises(errors.DeadlineExceededError, match="1 s"):
            await client.translate([TEXT] * 10, source="eng_Latn", targets="de")
    assert server.calls == 2


@pytest.mark.parametrize("name", ["prefix", "draft"])
@pytest.mark.parametrize("token", [2**32 + 7, -1, 7.9, "7"])
async def test_ids_that_are_none_are_refused(
    name: str, token: Any, tokenizer: CountingTokenizer
) -> None:
    async with client_of(FaultServer(), tokenizer) as client:
        call = {"source": "eng_Latn", "targets": "deu_Latn"}
        with pytest.raises(
            errors.InvalidCallError, match=re.escape(f"{name} has the ID {token!r};")
        ):
            await client.translate("A river.", **call, **{name: [5, token]})
        assert await client.translate("A river.", **call, **{name: [np.int64(5)]})


async def test_an_answer_shorter_than_the_prefix_is_no_text(tokenizer: CountingTokenizer) -> None:
    async def cut(server: FaultServer, request: Any, context: Any) -> Any:
        response = await echo(server, request, context)
        response.outputs[0].shape[:] = [1, 0]
        response.raw_output_contents[0] = b""
        return response

    async with client_of(FaultServer(cut), tokenizer) as client:
        answer = await client.translate(TEXT, source="eng_Latn", targets="de")
    assert (answer.text, answer.ids) == ("", ())


async def test_a_model_of_other_tensors_is_named(tokenizer: CountingTokenizer) -> None:
    class OtherModel(FaultServer):
        async def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
            response = await super().ModelMetadata(request, context)
            response.inputs[0].name = "IMAGE"
            return response

    async with client_of(OtherModel(), tokenizer) as client:
        with pytest.raises(errors.UnexpectedResponseError, match="IMAGE"):
            await client.translate(TEXT, source="eng_Latn", targets="de")


async def test_an_answer_without_its_output_is_named(tokenizer: CountingTokenizer) -> None:
    async def nothing(server: FaultServer, request: Any, context: Any) -> Any:
        response = await echo(server, request, context)
        response.outputs[0].name = "OTHER"
        return response

    async with client_of(FaultServer(nothing), tokenizer) as client:
        with pytest.raises(errors.UnexpectedResponseError, match="OUTPUT_IDS"):
            await client.translate(TEXT, source="eng_Latn", targets="de")


def test_a_client_may_be_made_before_the_loop_and_the_server(
    tokenizer: CountingTokenizer,
) -> None:
    port = free_port()
    client = TranslationClient(f"127.0.0.1:{port}", "m", tokenizer=tokenizer)

    async def translated() -> str:
        async with serving(FaultServer(), port), client:
            return (await client.translate(TEXT, source="eng_Latn", targets="de")).text

    assert asyncio.run(translated()) == TEXT


def test_a_model_must_be_named(tokenizer: CountingTokenizer) -> None:
    with pytest.raises(errors.InvalidCallError, match="model is ''; give the name"):
        TranslationClient("localhost:8001", "", tokenizer=tokenizer)
    with pytest.raises(errors.InvalidCallError, match=r"model is '\\udcff'; give the name"):
        TranslationClient("localhost:8001", "\udcff", tokenizer=tokenizer)


def test_threads_share_the_synchronous_twin(tokenizer: CountingTokenizer) -> None:
    texts = [f"Number {i}." for i in range(8)]
    found: dict[str, str] = {}
    with (
        serving_in_a_thread(FaultServer) as (_, url),
        SyncTranslationClient(url, "m", tokenizer=tokenizer) as client,
    ):

        def work(text: str) -> None:
            found[text] = client.translate(text, source="eng_Latn", targets="de").text

        threads = [threading.Thread(target=work, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert found == {text: tokenizer.decode(tokenizer.encode(text).ids) for text in texts}
    client.close()
    with pytest.raises(errors.InvalidCallError, match="closed"):
        client.translate(TEXT, source="eng_Latn", targets="de")


def test_an_interrupt_cancels_the_synchronous_call(tokenizer: CountingTokenizer) -> None:
    with (
        serving_in_a_thread(FaultServer, hang) as (server, url),
        SyncTranslationClient(url, "m", tokenizer=tokenizer) as client,
    ):

        def interrupt() -> None:
            while not server.started.is_set():
                threading.Event().wait(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            client.translate(TEXT, source="eng_Latn", targets="de")
        for _ in range(3000):
            if server.cancelled.is_set():
                break
            threading.Event().wait(0.01)
        assert server.cancelled.is_set()


def test_the_synchronous_stream_reads_a_blocking_iterator(tokenizer: CountingTokenizer) -> None:
    with (
        serving_in_a_thread(FaultServer) as (_, url),
        SyncTranslationClient(url, "m", tokenizer=tokenizer) as client,
    ):
        asked = threading.Event()

        def captions() -> Iterator[str]:
            yield "One."
            asked.wait(30)  # the next one comes when the first has been shown
            yield "Two."

        items = client.stream(captions(), source="eng_Latn", targets="de")
        first = next(items)
        asked.set()
        rest = list(items)
    assert [item.sentence.text for item in (first, *rest)] == ["One.", "Two."]


async def test_numbers_of_numpy_are_numbers(tokenizer: CountingTokenizer) -> None:
    server = Recorder()
    options: dict[str, Any] = {
        "beam_size": np.int64(4),
        "num_hypotheses": np.uint8(1),
        "length_penalty": np.float32(0.5),
        "disable_unk": np.True_,
        "end_token": [np.int32(2), 3],
        "vmap_ids": np.array([[1, 2]]),
    }
    async with client_of(server, tokenizer) as client:
        call = client.translate(
            TEXT, source="eng_Latn", targets="de", timeout_s=float("inf"), **options
        )
        await call
    sent = server.requests[0].parameters
    assert (sent["beam_size"].int64_param, sent["num_hypotheses"].int64_param) == (4, 1)
    assert sent["length_penalty"].double_param == 0.5
    assert sent["disable_unk"].bool_param is True
    assert sent["end_token"].string_param == "[2, 3]"
    assert sent["vmap_ids"].string_param == "[[1, 2]]"
    assert "timeout" not in sent


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("beam_size", value) for value in (2**63, -(2**63) - 1, [{1}], {4}, "\ud800", None, 1j)),
        ("priority", 1),
        ("triton_x", 1),
    ],
)
async def test_an_option_that_cannot_travel_is_refused_by_name(
    tokenizer: CountingTokenizer, name: str, value: Any
) -> None:
    server = Recorder()
    async with client_of(server, tokenizer) as client:
        with pytest.raises(errors.InvalidCallError, match=f"'{name}' is"):
            await client.translate(TEXT, source="eng_Latn", targets="de", **{name: value})
        await client.translate(TEXT, source="eng_Latn", targets="de", beam_size=4)
    assert len(server.requests) == 1


async def test_refusals_reach_the_caller_of_translate(tokenizer: CountingTokenizer) -> None:
    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size"))
    async with client_of(server, tokenizer) as client:
        with pytest.raises(errors.ServerBusyError):
            await client.translate(TEXT, source="eng_Latn", targets="de")
    assert server.calls == 1


async def test_an_empty_text_needs_no_server(tokenizer: CountingTokenizer) -> None:
    async with TranslationClient("127.0.0.1:1", "m", tokenizer=tokenizer) as client:
        answers = await client.translate(["", " \t"], source="en", targets=["de", "fr"])
    assert [[one.finish_reason for one in answer] for answer in answers] == [["empty"] * 2] * 2


async def test_closing_ends_a_call_with_an_error(tokenizer: CountingTokenizer) -> None:
    server = FaultServer(hang)
    async with client_of(server, tokenizer) as client:
        call = asyncio.create_task(client.translate(TEXT, source="en", targets=TARGETS))
        await asyncio.wait_for(server.started.wait(), 600)
        await client.close()
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await call
        await asyncio.wait_for(server.cancelled.wait(), 600)
        await client.close()
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await client.translate(TEXT, source="en", targets=TARGETS)


def test_closing_ends_the_call_of_another_thread(tokenizer: CountingTokenizer) -> None:
    found: list[BaseException] = []
    with serving_in_a_thread(FaultServer, hang) as (server, url):
        client = SyncTranslationClient(url, "m", tokenizer=tokenizer)

        def work() -> None:
            try:
                client.translate(TEXT, source="en", targets="de")
            except errors.InvalidCallError as error:
                found.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while not server.started.is_set():
            threading.Event().wait(0.01)
        client.close()
        thread.join(60)
    assert len(found) == 1


@pytest.mark.parametrize("settings", [{"max_in_flight": 0}, {"timeout_s": -1}])
async def test_settings_are_checked(tokenizer: CountingTokenizer, settings: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidCallError, match=next(iter(settings))):
        async with TranslationClient("127.0.0.1:1", "m", tokenizer=tokenizer, **settings) as client:
            await client.translate(TEXT, source="en", targets="de")
