# SPDX-License-Identifier: Apache-2.0
"""Text models: the only language of a side, rows by language, and texts that were cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.client.tokenization import find_tokenizer
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel, TokenRules
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from server.test_text import COMMENTARY, GOOD
from server.text_client import answer, refusal, send_text, translated
from support.metrics import fresh
from support.prepared import prepare_tiny
from support.servers import ServerStack

pytestmark = pytest.mark.server

SHORT = 9  # ids of a source
NARROW = 6


def english_to_japanese(pair: PreparedModel) -> None:
    """Names the target of a Marian model of one pair, which is German, otherwise."""
    rules = TokenRules.read(pair.tokenizer_folder)
    english, german = rules.languages
    replace(rules, languages=(english, replace(german, code="ja", aliases=("jpn",)))).write(
        pair.tokenizer_folder
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model with short sources, a model of one pair of languages, and one of many."""
    folder = tmp_path_factory.mktemp("repository")
    for name, most in (("short", SHORT), ("narrow", NARROW)):
        settings = {"compute_type": "float32", "max_input_length": str(most)}
        prepare(PrepareOptions("demo", folder, name, settings=settings, io="both"))
    english_to_japanese(prepare_tiny("marian-pair", folder, "pair", io="both"))
    prepare_tiny("nllb", folder, "many", io="text")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


def test_the_only_language_of_a_side_is_the_default(
    connection: Connection, server: TritonServer
) -> None:
    """It says where sentences end, what stands between them, and what they are counted as."""
    parts = ["Sgt. Miller eats apples.", "The river is old."]
    options: dict[str, Any] = {"model": "pair-text", "max_decoding_length": 9}
    each = [translated(connection, part, None, None, **options)[0][0] for part in parts]
    named = answer(send_text(connection, " ".join(parts), ["ja"], "en", **options))
    assert named["text_output"] == [["".join(each)]]
    assert len(named["source_ranges"][0]) == 2
    unnamed = answer(send_text(connection, " ".join(parts), None, None, **options))
    assert unnamed == named
    assert fresh(server, "pair-text").by("ct2_target_rows_total") == {"ja": 6}
    assert "no target language" in refusal(connection, GOOD, ["de"], None, **options)
    assert answer(send_text(connection, " ".join(parts), [""], "", **options)) == named


@pytest.mark.parametrize("source", [None, ""])
def test_a_source_language_that_is_missing_says_so(
    connection: Connection, source: str | None
) -> None:
    options: dict[str, Any] = {"model": "many", "max_decoding_length": 4}
    said = refusal(connection, "a river", ["deu_Latn"], source, **options)
    assert said.startswith("this model needs a source language in source_language; it has ")
    assert translated(connection, "a river", ["deu_Latn"], "eng_Latn", **options)


def test_a_character_that_has_no_room_is_refused(connection: Connection) -> None:
    """It is eight ids, and the language and the end token leave four."""
    said = refusal(connection, "Go on! \ufdfa", ["de"], model="narrow-text")
    assert said.startswith("text_input, row 0, the sentence at byte 7 into deu_Latn: it has 10 ids")
    assert translated(connection, "Go on!", ["de"], model="narrow-text")


def test_rows_are_counted_by_language(connection: Connection, server: TritonServer) -> None:
    """The list of languages lies with the model of ids, whose files these are."""
    names = ("ct2_target_rows_total", "ct2_target_tokens_total")
    before = fresh(server, "short-text")
    two = "Go on! Go on!"
    got = answer(send_text(connection, two, ["de", "fr"], model="short-text"))
    rows, tokens = (fresh(server, "short-text").by(name) for name in names)
    assert {code: n - before.by(names[0]).get(code, 0) for code, n in rows.items()} == {
        "deu_Latn": 2,
        "fra_Latn": 2,
    }
    prefixes = 2  # of the two sentences, an id each
    assert [
        tokens[code] - before.by(names[1]).get(code, 0) for code in ("deu_Latn", "fra_Latn")
    ] == [count + prefixes for count in got["num_output_tokens"][0]]


def test_alignments_of_a_text_that_was_cut_point_into_what_was_left(
    connection: Connection, server: TritonServer, repository: Path
) -> None:
    """The end token, which is kept, has no part of the text, though many tokens look at it."""
    options = {"truncate_input": True, "return_alignments": True}
    tokenizer = find_tokenizer("short", repository=repository)
    at_the_end = 0
    with SyncTranslationClient(server.grpc_url, "short", repository=repository) as by_ids:
        for line in COMMENTARY[:20]:
            left = tokenizer.encode(line).ids[: SHORT - 2]  # language and end
            bytes_left = len(tokenizer.decode(left).encode())
            got = answer(send_text(connection, line, ["de"], model="short-text", **options))
            assert got["finish_reason"] == [["cut"]]
            one = by_ids.translate(line, source="en", targets="de", **options)
            at_the_end += (one.alignments or ()).count(SHORT - 1)
            places = [end for begin, end, *_ in got["alignments"][0][0] if begin >= 0]
            assert places
            assert max(places) <= bytes_left, line
            assert got["num_input_tokens"] == [[SHORT]]
    assert at_the_end > 8
