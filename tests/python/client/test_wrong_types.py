# SPDX-License-Identifier: Apache-2.0
"""Arguments of another type are refused with what they are, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ct2_triton.client import Sentence, SyncTranslationClient, Tokenizer
from ct2_triton.errors import InvalidCallError
from python.client.conftest import client_of
from support.fault_server import FaultServer, serving_in_a_thread

TARGETS = {"source": "eng_Latn", "targets": "deu_Latn"}


@pytest.fixture
def client(tokenizer: Tokenizer) -> Iterator[SyncTranslationClient]:
    with (
        serving_in_a_thread(FaultServer) as (_, url),
        SyncTranslationClient(url, "m", tokenizer=tokenizer) as client,
    ):
        yield client
        assert client.translate("One.", **TARGETS).text


@pytest.mark.parametrize("text", [None, b"One.", 1, {"a": "b"}, {"a"}, (one for one in "ab")])
def test_a_text_is_a_string_or_a_sequence(client: SyncTranslationClient, text: Any) -> None:
    wanted = f"text is {text!r:.80}; it must be a string or a sequence of strings"
    with pytest.raises(InvalidCallError, match=re.escape(wanted)):
        client.translate(text, **TARGETS)


def test_each_sentence_is_a_string(client: SyncTranslationClient) -> None:
    texts: Any = ["One.", None]
    with pytest.raises(InvalidCallError, match=re.escape("text[1] is None; a sentence is a str")):
        client.translate(texts, **TARGETS)


@pytest.mark.parametrize("sentences", ["One. Two.", b"One.", None, 1])
def test_a_stream_reads_an_iterable_of_sentences(
    client: SyncTranslationClient, sentences: Any
) -> None:
    """A text was read letter by letter, each of which was translated."""
    wanted = f"sentences is {sentences!r}; it must be an iterable of sentences"
    with pytest.raises(InvalidCallError, match=re.escape(wanted)):
        client.stream(sentences, **TARGETS)


@pytest.mark.parametrize("sentence", [None, b"One.", Sentence(text=1)])  # type: ignore[arg-type]
def test_a_sentence_of_a_stream_is_a_string(client: SyncTranslationClient, sentence: Any) -> None:
    wanted = f"sentence 1 is {sentence!r}; it must be a string or a Sentence"
    with pytest.raises(InvalidCallError, match=re.escape(wanted)):
        list(client.stream(["One.", sentence], **TARGETS))


async def test_an_asynchronous_stream_says_which_client_reads_lists(tokenizer: Tokenizer) -> None:
    sentences: Any = ["One."]
    async with client_of(FaultServer(), tokenizer) as client:
        with pytest.raises(InvalidCallError, match=r"SyncTranslationClient\.stream takes others"):
            async for _ in client.stream(sentences, **TARGETS):
                pass
        with pytest.raises(InvalidCallError, match="text is None; it must be a string"):
            async for _ in client.stream_text(None, targets="de"):  # type: ignore[arg-type]
                pass


@pytest.mark.parametrize("timeout_s", ["5", [1], 0, -1.0, float("nan")])
def test_a_time_limit_is_a_number_above_0(client: SyncTranslationClient, timeout_s: Any) -> None:
    wanted = f"timeout_s is {timeout_s!r}; it must be a number above 0, or None"
    with pytest.raises(InvalidCallError, match=re.escape(wanted)):
        client.translate("One.", timeout_s=timeout_s, **TARGETS)


@pytest.mark.parametrize("most", ["4", 2.5, 0, None])
def test_requests_in_flight_are_an_integer(client: SyncTranslationClient, most: Any) -> None:
    wanted = re.escape(f"max_in_flight is {most!r}; it must be an integer, 1 or more")
    with pytest.raises(InvalidCallError, match=wanted):
        SyncTranslationClient("localhost:1", "model", max_in_flight=most)
    with pytest.raises(InvalidCallError, match=wanted):
        list(client.stream(["One."], max_in_flight=most, **TARGETS))
