# SPDX-License-Identifier: Apache-2.0
"""Streams of text on a server that answers what a healthy tritonserver does not on command."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from tritonclient.grpc import service_pb2
from tritonclient.utils import serialize_byte_tensor

from ct2_triton import errors
from ct2_triton.client import RetryPolicy, TranslationClient
from ct2_triton.client.results import TextPart
from ct2_triton.client.servers import stream_model
from ct2_triton.translate.formats import print_parts
from ct2_triton.translate.inputs import Line
from support.fault_server import FaultServer, serving


def part(text: str) -> Any:
    """A response of one part."""
    response = service_pb2.ModelInferResponse()
    values = {"text_output": text, "target_language": "de", "finish_reason": ""}
    for name, value in values.items():
        response.outputs.add(name=name, datatype="BYTES", shape=[1])
        data = serialize_byte_tensor(np.array([value.encode()], dtype=np.object_)).item()
        response.raw_output_contents.append(data)
    response.outputs.add(name="target_index", datatype="UINT32", shape=[1])
    response.raw_output_contents.append(bytes(4))
    return service_pb2.ModelStreamInferResponse(infer_response=response)


def refusal(text: str) -> Any:
    return service_pb2.ModelStreamInferResponse(error_message=text)


class StreamServer(FaultServer):
    """Answers each stream with what a function gives for its request; keeps the requests."""

    def __init__(self, answer: Callable[[Any], Iterable[Any]]) -> None:
        super().__init__()
        self.answer = answer
        self.requests: list[Any] = []
        self.lasting = asyncio.Event()

    async def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        response = service_pb2.ModelMetadataResponse(name=request.name)
        for name in ("text_input", "source_language", "target_languages"):
            response.inputs.add(name=name, datatype="BYTES", shape=[-1, -1])
        for name in ("text_output", "target_index", "target_language", "finish_reason"):
            response.outputs.add(name=name, datatype="BYTES", shape=[-1, -1])
        return response

    async def ModelStreamInfer(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        async for request in requests:
            self.requests.append(request)
            for response in self.answer(request):
                yield response
        await self.lasting.wait()


async def _read(client: TranslationClient, text: str = "a river", **arguments: Any) -> list[str]:
    return [one.text async for one in client.stream_text(text, targets="de", **arguments)]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("superseded by a newer request", errors.SupersededError),
        ("Request for unknown model: 'm-stream' is not found", errors.ModelNotFoundError),
        ("Request for unknown model: 'm' version 1 is not at ready state", errors.ServerBusyError),
        ("Request for unknown model: 'm' has no available versions", errors.ServerBusyError),
        ("[request id: <id_unknown>] Exceeds maximum queue size", errors.ServerBusyError),
        ("Request timeout expired", errors.ServerBusyError),
        ("Server is stopping, scheduler for model has stopped", errors.ServerBusyError),
        ("Server not ready", errors.ServerBusyError),
        ("CTranslate2 failed: no", errors.ServerFailedError),
        ("a decode loop failed, and a call would differ", errors.ServerFailedError),
        ("a decode loop lacks memory for a while, and", errors.ServerBusyError),
        ("text 'superseded' is too long", errors.RequestRejectedError),
    ],
)
async def test_an_error_has_the_class_of_its_status(message: str, kind: type[Exception]) -> None:
    """Nothing is sent after it: a newer request of its key is not ended."""
    server = StreamServer(lambda _: [part("a"), refusal(message)])
    async with serving(server) as url, TranslationClient(url, "m") as client:
        with pytest.raises(errors.ClientError) as raised:
            await _read(client, supersede="key")
        assert type(raised.value) is kind
        await asyncio.sleep(0.05)
        server.lasting.set()
    assert len(server.requests) == 1


async def test_a_text_stays_with_one_version_and_the_next_is_asked() -> None:
    def answer(request: Any) -> list[Any]:
        lost = request.model_version == "1"
        return [refusal("Request for unknown model: 'm' version 1 is not at ready state")] * lost

    server = StreamServer(answer)
    server.lasting.set()
    halves = {"1": 0.5, "2": 0.5}
    async with serving(server) as url, TranslationClient(url, "m", versions=halves) as client:
        for number in range(8):
            text = f"text {number}"
            asked = []
            for _ in range(2):
                server.requests.clear()
                await _read(client, text)
                asked.append([request.model_version for request in server.requests])
            assert asked[0] == asked[1]
            assert asked[0] in (["2"], ["1", "2"])


class BusyServer(StreamServer):
    """Refuses the first request of no text; the next one ends all streams."""

    async def ModelStreamInfer(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        async for request in requests:
            self.requests.append(request)
            if request.raw_input_contents[0][4:]:
                yield part("a")
                await self.lasting.wait()
            elif len(self.requests) == 2:
                yield refusal("[request id: <id_unknown>] Exceeds maximum queue size")
            else:
                self.lasting.set()


async def test_a_stream_that_is_left_ends_though_the_server_refused_to_end_it() -> None:
    server = BusyServer(lambda _: [])
    async with serving(server) as url, TranslationClient(url, "m") as client:
        async with aclosing(client.stream_text("a river", targets="de", supersede="k")) as parts:
            assert (await anext(parts)).text == "a"
        await asyncio.wait_for(server.lasting.wait(), 600)
        assert await _read(client, "a good one", supersede="k") == ["a"]
    assert (
        len({request.parameters["supersede_key"].string_param for request in server.requests}) == 1
    )
    has_text = [bool(one.raw_input_contents[0][4:]) for one in server.requests]
    assert has_text == [True, *[False] * (len(has_text) - 2), True]
    assert len(has_text) >= 4


async def test_a_stream_that_is_left_after_the_end_of_its_client_leaves_no_failed_task() -> None:
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def answer(request: Any) -> list[Any]:
        if not request.raw_input_contents[0][4:]:
            server.lasting.set()
            return []
        return [part("a")]

    server = StreamServer(answer)
    async with serving(server) as url:
        client = TranslationClient(url, "m")
        parts = client.stream_text("a river", targets="de")
        assert (await anext(parts)).text == "a"
        await client.close()
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await anext(parts)
        await parts.aclose()
        keys = {request.parameters["supersede_key"].string_param for request in server.requests}
        assert (len(server.requests), len(keys)) == (2, 1)
        del parts
        gc.collect()
        await asyncio.sleep(0)
    assert reports == []


async def test_the_time_of_a_stream_is_over() -> None:
    server = StreamServer(lambda _: [part("a")])
    async with serving(server) as url, TranslationClient(url, "m") as client:
        server.lasting.set()
        assert await _read(client) == ["a"]  # it is connected
        server.lasting.clear()
        with pytest.raises(errors.DeadlineExceededError):
            await _read(client, timeout_s=0.3)
        server.lasting.set()


@pytest.mark.parametrize("reason", ["Exceeds maximum queue size", "Server is stopping"])
async def test_a_text_is_sent_again_after_an_outage_until_its_first_part(reason: str) -> None:
    def answer(request: Any) -> list[Any]:
        server.lasting.set()
        return [part("a")] if len(server.requests) > 2 else [refusal(reason)]

    server = StreamServer(answer)
    policy = RetryPolicy(outage_s=60, initial_backoff_s=0.01, max_backoff_s=0.02)
    async with serving(server) as url, TranslationClient(url, "m", retry=policy) as client:
        assert await _read(client) == ["a"]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("arguments", "parts"), [({"supersede": "key"}, []), ({}, [part("a")])], ids=["key", "part"]
)
async def test_a_text_with_a_key_or_a_part_is_not_sent_again(
    arguments: dict[str, str], parts: list[Any]
) -> None:
    """With a key it might end a newer one; what was yielded would come twice."""
    server = StreamServer(lambda _: [*parts, refusal("Exceeds maximum queue size")])
    server.lasting.set()
    policy = RetryPolicy(outage_s=60)
    async with serving(server) as url, TranslationClient(url, "m", retry=policy) as client:
        with pytest.raises(errors.ServerBusyError):
            await _read(client, **arguments)
    assert len(server.requests) == 1


def test_the_name_of_the_model_of_streams() -> None:
    for name in ("demo", "demo-text", "demo-stream"):
        assert stream_model(name) == "demo-stream"


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (errors.ConnectionLostError("lost"), True),
        (errors.RequestRejectedError("refused"), True),
        (errors.ServerBusyError("busy"), False),
    ],
)
async def test_lines_after_one_that_failed(error: errors.ClientError, goes_on: bool) -> None:
    async def translate(text: str) -> Any:
        if text == "bad":
            raise error
        yield TextPart(text.upper(), 0, None)

    printed: list[str] = []
    lines = iter([Line("bad", number=1), Line("good", number=2)])
    if goes_on:
        assert await print_parts(translate, lines, printed.append) == 1
        assert "".join(printed) == "\nGOOD\n"
    else:
        with pytest.raises(errors.ServerBusyError, match="not translated from line 1 on: busy"):
            await print_parts(translate, lines, printed.append)
