# SPDX-License-Identifier: Apache-2.0
"""What the client does beside translating: errors, cancellation, timeouts, batching, streams.

Every failure is followed by a call that succeeds, on the same client.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from ct2_triton import errors
from ct2_triton.client import Sentence, TranslationClient
from ct2_triton.client.tasks import run_all
from server.client.conftest import ENDLESS_MODEL, endless_call
from support.endless import ENDLESS
from support.prepared import prepare_tiny
from tiny_corpus import sentences

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable
    from pathlib import Path

    from ct2_triton.serve import TritonServer
    from server.client.conftest import MakeClient, Prepared
    from support.servers import MakeServer

TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"]
SHORT: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 12, "beam_size": 1}
# Each cancelled call may end Triton 2.51, and with it the server that all tests share ("What is
# Triton's" in benchmarks/reliability.md): not 256 of them, the default.
FEW = 32
TEXT = "The teacher opened the green window."


async def arriving(texts: Iterable[str | Sentence]) -> AsyncGenerator[str | Sentence, None]:
    for text in texts:
        yield text


async def good(client: TranslationClient) -> None:
    """Sends a request that must succeed."""
    answer = await client.translate(TEXT, targets="deu_Latn", **SHORT)
    assert len(answer.ids) == SHORT["max_decoding_length"] - 1


async def eventually(condition: Callable[[], bool]) -> None:
    """Waits until something holds, for a minute at most."""
    for _ in range(1200):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_sice": 2}, "beam_size"),
        ({"beam_size": 0}, "beam_size"),
        ({"beam_size": "many"}, "beam_size"),
        ({"min_decoding_length": 20}, "min_decoding_length"),
        ({"sampling_topk": 5, "sampling_seed": -2}, "sampling_seed"),
    ],
)
async def test_a_refused_option_says_which(
    make_client: MakeClient, options: dict[str, Any], message: str
) -> None:
    async with make_client() as client:
        with pytest.raises(errors.RequestRejectedError, match=message):
            await client.translate(TEXT, targets="deu_Latn", **{**SHORT, **options})
        await good(client)


async def test_one_sentence_too_long_fails_the_call_and_the_next_succeeds(
    make_client: MakeClient,
) -> None:
    async with make_client() as client:
        with pytest.raises(errors.RequestRejectedError):
            await client.translate([TEXT, "word " * 3000, TEXT], targets=TARGETS, **SHORT)
        await good(client)


async def test_an_unknown_model_is_not_found(
    server: TritonServer, prepared: Prepared, make_client: MakeClient
) -> None:
    folder = prepared("nllb").tokenizer_folder
    async with TranslationClient(server.grpc_url, "nowhere", tokenizer=folder) as client:
        with pytest.raises(errors.ModelNotFoundError, match="'nowhere'.*; the server has ") as told:
            await good(client)
        assert isinstance(told.value.__cause__, grpc.RpcError)
    async with make_client() as client:
        for name, hint in (
            (f"{client.model}s", f"did you mean {client.model}"),
            (client.model, "it is served in version 1$"),
        ):
            async with TranslationClient(
                server.grpc_url, name, tokenizer=folder, version="7"
            ) as other:
                with pytest.raises(errors.ModelNotFoundError, match=hint):
                    await good(other)
        await good(client)


async def test_a_timeout_is_an_error_and_the_next_call_succeeds(make_client: MakeClient) -> None:
    async with make_client(made=ENDLESS_MODEL, max_in_flight=FEW) as client:
        await good(client)
        with pytest.raises(errors.DeadlineExceededError, match=r"0\.5 s"):
            await client.translate(
                sentences(20, seed=2), source="eng_Latn", targets=TARGETS, timeout_s=0.5, **ENDLESS
            )
        await good(client)


async def test_a_call_that_is_given_up_ends_at_its_time_limit(
    make_client: MakeClient, prepared: Prepared, statistics: Callable[[str], Any]
) -> None:
    """Triton 2.51 may not survive a cancellation; the row does not end by itself."""
    name = prepared("nllb", **ENDLESS_MODEL).name

    def failed() -> int:
        return int(statistics(name).inference_stats.fail.count)

    async with make_client(made=ENDLESS_MODEL, timeout_s=5) as client:
        await good(client)
        before = failed()
        call = await endless_call(client, TEXT, "deu_Latn", "a")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # One was superseded to make the moment.
        await eventually(lambda: failed() >= before + 2)
        await good(client)


async def test_a_server_survives_time_limits_that_pass_as_answers_are_sent(
    make_server: MakeServer, tmp_path: Path
) -> None:
    """As gRPC deadlines they end Triton 2.51 within the first few hundred."""
    model = prepare_tiny("nllb", tmp_path, "m")
    server = make_server(tmp_path)
    limits = itertools.cycle(10**-k for k in (4, 3.5, 3, 2.8, 2.6, 2.4, 2.2, 2))
    late = 0

    async def ask(client: TranslationClient) -> None:
        nonlocal late
        for _ in range(150):
            try:
                await client.translate(TEXT, targets="deu_Latn", timeout_s=next(limits), **SHORT)
            except errors.DeadlineExceededError:
                late += 1

    for _ in range(2):
        async with TranslationClient(
            server.grpc_url, "m", tokenizer=model.tokenizer_folder
        ) as client:
            await good(client)
            await run_all(ask(client) for _ in range(8))
            await good(client)
    assert server.process.exit_code is None
    assert late > 50


@pytest.mark.parametrize("supersede", [None, "talk"])
async def test_live_captions_give_the_last_version_of_each_sentence(
    make_client: MakeClient, supersede: str | None
) -> None:
    finals = sentences(20, seed=4)

    async def captions() -> AsyncGenerator[Sentence, None]:
        for i, text in enumerate(finals):
            words = text.split()
            for n in range(1, len(words)):
                yield Sentence(" ".join(words[:n]), id=i)
                await asyncio.sleep(0)
            yield Sentence(text, id=i)

    async with make_client() as client:
        shown: dict[tuple[Any, str | None], str] = {}
        count = 0
        call = client.stream(captions(), targets=TARGETS[:2], supersede=supersede, **SHORT)
        async for item in call:
            shown[item.sentence.id, item.target] = item.sentence.text
            count += 1
        await good(client)
    assert shown == {(i, t): text for i, text in enumerate(finals) for t in TARGETS[:2]}
    assert count < 2 * sum(len(text.split()) for text in finals)  # most versions were dropped


async def test_a_bad_sentence_need_not_end_a_stream(make_client: MakeClient) -> None:
    texts = ["One.", "word " * 3000, Sentence("Two.", source="xxx"), "\ud800", "Three."]
    async with make_client() as client:
        items = [
            item
            async for item in client.stream(
                arriving(texts), targets="deu_Latn", on_error="yield", **SHORT
            )
        ]
        with pytest.raises(errors.RequestRejectedError):
            async for _ in client.stream(arriving(texts), targets="deu_Latn", **SHORT):
                pass
        await good(client)
    assert [type(item.outcome).__name__ for item in items] == [
        "Translation",
        "RequestRejectedError",
        "UnknownLanguageError",
        "InvalidCallError",
        "Translation",
    ]


async def test_leaving_a_stream_early_leaves_nothing_behind(make_client: MakeClient) -> None:
    async with make_client() as client:
        await good(client)
        before = asyncio.all_tasks()
        items = client.stream(arriving(sentences(50, seed=6)), targets=TARGETS, **SHORT)
        async with aclosing(items):
            await anext(items)
        await eventually(lambda: asyncio.all_tasks() == before)
        await good(client)


async def test_a_model_that_only_gives_ids_says_what_it_lacks(
    server: TritonServer, server_repository: Path, prepared: Prepared, make_client: MakeClient
) -> None:
    from server.helpers import Connection
    from support.repository import write_model

    text = (
        'backend: "ctranslate2"\nmax_batch_size: 8\n'
        'input { name: "INPUT_IDS" data_type: TYPE_INT64 dims: -1 allow_ragged_batch: true }\n'
        'input { name: "TARGET_PREFIX" data_type: TYPE_INT64 dims: -1 allow_ragged_batch: true }\n'
        'output { name: "OUTPUT_IDS" data_type: TYPE_INT64 dims: [-1] }\n'
        "dynamic_batching { }\n"
    )
    model = prepared("nllb")
    connection = Connection(server.grpc_url)
    write_model(server_repository, "only-ids", model.model_folder, text)
    connection.raw.load_model("only-ids")
    folder = model.tokenizer_folder
    async with TranslationClient(server.grpc_url, "only-ids", tokenizer=folder) as client:
        answer = await client.translate(TEXT, targets="deu_Latn", **SHORT)
        with pytest.raises(errors.InvalidCallError, match="HYPOTHESES"):
            await client.translate(TEXT, targets="deu_Latn", num_hypotheses=2, **SHORT)
    async with make_client() as client:
        expected = await client.translate(TEXT, targets="deu_Latn", **SHORT)
    connection.raw.unload_model("only-ids")
    connection.close()
    assert (answer.ids, answer.finish_reason) == (expected.ids, None)
