# SPDX-License-Identifier: Apache-2.0
"""A client that closes at any moment of its calls: each is answered, or says that it closed."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.client import SyncTranslationClient, TranslationClient
from ct2_triton.errors import InvalidCallError
from support.fault_server import FaultServer, serving, serving_in_a_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ct2_triton.client import Tokenizer

TEXT = "The old sailor noticed the harbour."
CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn"}


@pytest.mark.parametrize("turns", range(0, 80, 4))
async def test_a_call_that_a_closing_client_ends_says_so(turns: int, tokenizer: Tokenizer) -> None:
    async with serving(FaultServer()) as url:
        client = TranslationClient(url, "m", tokenizer=tokenizer)
        calls = [asyncio.create_task(client.translate(TEXT, **CALL)) for _ in range(8)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.close()
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, InvalidCallError), repr(outcome)
            else:
                assert outcome.text == TEXT


@pytest.mark.parametrize("pause_ms", range(10))
def test_a_stream_may_be_left_as_another_thread_closes_the_client(
    pause_ms: int, tokenizer: Tokenizer
) -> None:
    with serving_in_a_thread(FaultServer) as (_, url):
        client = SyncTranslationClient(url, "m", tokenizer=tokenizer)
        items = [client.stream(["One.", "Two."] * 20, **CALL) for _ in range(8)]
        for each in items:
            next(each)
        closing = threading.Thread(target=client.close)
        closing.start()
        time.sleep(pause_ms / 1000)
        for each in items:
            each.close()
        closing.join()
        with pytest.raises(InvalidCallError, match="this client is closed"):
            client.translate(TEXT, **CALL)


def test_a_client_that_closes_during_a_stream_reads_its_input_no_further(
    tokenizer: Tokenizer,
) -> None:
    readers: list[threading.Thread] = []

    def endless() -> Iterator[str]:
        readers.append(threading.current_thread())
        while True:
            yield "One."

    with serving_in_a_thread(FaultServer) as (_, url):
        with SyncTranslationClient(url, "m", tokenizer=tokenizer) as client:
            items = client.stream(endless(), **CALL)
            next(items)
        readers[0].join(30)
        assert not readers[0].is_alive()
        items.close()
