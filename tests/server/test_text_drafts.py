# SPDX-License-Identifier: Apache-2.0
"""Text models: a translation that begins with given words, and one that is expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.client.pieces import read_pieces
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import TOKENIZER_NAME, TokenRules
from ct2_triton.serve import TritonServer
from server.helpers import Connection, post, tensor
from server.stream_client import Streams, joined
from server.test_text import COMMENTARY, GOOD, GOOD_GERMAN, SIX
from server.text_client import answer, refusal, send_text, strings, translated
from support.metrics import fresh
from support.prepared import prepare_tiny
from support.servers import ServerStack

pytestmark = pytest.mark.server

GREEDY = {"beam_size": 1}
LINES = COMMENTARY[:12]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model for ids, text and streams, and one whose sides are split by two models."""
    folder = tmp_path_factory.mktemp("repository")
    settings = {"compute_type": "float32", "beam_size": "3", "max_text_bytes": "1000"}
    settings |= {"decoding_length_limit": "100", "max_decoding_length": "100"}
    for name, io in (("demo", "both"), ("parts", "stream")):
        prepare(PrepareOptions("demo", folder, name, settings=settings, io=io))
    prepare_tiny("marian-pair", folder, "pair", io="both")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


def _given(
    connection: Connection,
    text: str | Sequence[str],
    targets: Sequence[str] | None,
    *,
    prefixes: Sequence[Any] | None = None,
    drafts: Sequence[Any] | None = None,
    model: str = "demo-text",
    **options: Any,
) -> list[list[str]]:
    """Translations; `prefixes` and `drafts` have a row for each text."""
    more = {"target_prefix": prefixes, "draft": drafts}
    inputs = [tensor(name, strings(rows)) for name, rows in more.items() if rows is not None]
    pending = send_text(
        connection, text, targets, model=model, outputs=["text_output"], more=inputs, **options
    )
    return list(answer(pending)["text_output"])


def _kept(server: TritonServer, model: str = "demo-text") -> float:
    return fresh(server, model)["ct2_loop_draft_tokens_kept_total"]


@pytest.fixture
def forced(server: TritonServer, repository: Path) -> Iterator[Callable[..., str]]:
    """Translates by ids, as an answer must begin: the tokenizer's own pieces, forced."""
    clients: dict[str, SyncTranslationClient] = {}

    def translate(model: str, text: str, target: str | None, prefix: str) -> str:
        if model not in clients:
            clients[model] = SyncTranslationClient(server.grpc_url, model, repository=repository)
        folder = repository / model / TOKENIZER_NAME
        pieces = read_pieces(folder, TokenRules.read(folder), of_targets=True, native=False)
        source = "en" if target else None
        return (
            clients[model]
            .translate(
                text,
                source=source,
                targets=target,
                prefix=pieces.encode(prefix),
                max_decoding_length=40,
                **GREEDY,
            )
            .text
        )

    yield translate
    for client in clients.values():
        client.close()


def test_a_draft_saves_steps_and_changes_no_answer(
    connection: Connection, server: TritonServer
) -> None:
    """Four rows: a step has room for all of their drafts."""
    lines, targets = LINES[:2], SIX[:2]
    truth = translated(connection, lines, targets, **GREEDY)
    wrong = truth[::-1]
    begun = [[text[: len(text) // 2] for text in row] for row in truth]
    kept = []
    for drafts in (truth, begun, wrong, [["", ""]] * 2):
        before = _kept(server)
        assert _given(connection, lines, targets, drafts=drafts, **GREEDY) == truth
        kept.append(_kept(server) - before)
    counted = answer(send_text(connection, lines, targets, outputs=["num_output_tokens"], **GREEDY))
    total = sum(map(sum, counted["num_output_tokens"]))
    assert kept[0] > 0.7 * total > kept[1] > 0.25 * total > kept[2]
    assert kept[3] == 0


@pytest.mark.parametrize(("model", "targets"), [("demo", ["de", "fr"]), ("pair", None)])
def test_a_translation_begins_as_it_must(
    connection: Connection,
    server: TritonServer,
    forced: Callable[..., str],
    model: str,
    targets: list[str] | None,
) -> None:
    """The rest is what CTranslate2 gives after these ids; a draft of the whole saves steps."""
    options = {"model": f"{model}-text", "max_decoding_length": 40, **GREEDY}
    source = "en" if targets else None
    others = _given(connection, LINES[1:5], targets and ["de"], source=source, **options)
    for line, [other] in zip(LINES[:4], others, strict=True):
        words = " ".join(other.split()[:2])
        wanted = [forced(model, line, target, words) for target in targets or [None]]
        rows = [[words] * len(wanted)]
        got = _given(connection, line, targets, prefixes=rows, source=source, **options)
        assert got == [wanted]
        assert all(text.startswith(words) for text in wanted)
        before = _kept(server, options["model"])
        drafts = [wanted]
        again = _given(
            connection, line, targets, prefixes=rows, drafts=drafts, source=source, **options
        )
        assert again == [wanted]
        assert _kept(server, options["model"]) > before


def test_each_sentence_has_its_own_draft_and_the_first_its_beginning(
    connection: Connection, server: TritonServer
) -> None:
    text = " ".join(LINES[:3])
    [[german]] = translated(connection, text, ["de"], **GREEDY)
    before = _kept(server)
    assert _given(connection, text, ["de"], drafts=[[german]], **GREEDY) == [[german]]
    assert _kept(server) - before > 15
    each = [translated(connection, line, ["de"], **GREEDY)[0][0] for line in LINES[:3]]
    [[first]] = _given(connection, LINES[0], ["de"], prefixes=[["Gestern"]], **GREEDY)
    wanted = [[" ".join([first, *each[1:]])]]
    assert first.startswith("Gestern")
    assert _given(connection, text, ["de"], prefixes=[["Gestern"]], **GREEDY) == wanted


def test_texts_and_languages_have_their_own(connection: Connection) -> None:
    plain = translated(connection, LINES[:2], ["de", "fr"], **GREEDY)
    prefixes = [["", "Demain"], ["Heute", ""]]
    got = _given(connection, LINES[:2], ["de", "fr"], prefixes=prefixes, **GREEDY)
    assert (got[0][0], got[1][1]) == (plain[0][0], plain[1][1])
    assert got[0][1].startswith("Demain")
    assert got[1][0].startswith("Heute")


@pytest.mark.parametrize("options", [GREEDY, {}], ids=["greedy", "beams"])
def test_a_bias_lets_the_answer_lean_towards_its_draft(
    connection: Connection, options: dict[str, Any]
) -> None:
    draft = "Das Tor ist heute geschlossen."
    got = _given(connection, GOOD, ["de"], drafts=[[draft]], draft_bias="0.99", **options)
    assert got[0][0].startswith(draft[:-1])
    assert translated(connection, GOOD, ["de"], **options) == [[GOOD_GERMAN]]


def test_a_stream_takes_both(connection: Connection, server: TritonServer) -> None:
    streams = Streams(server.grpc_url)
    more = {"target_prefix": ["Heute", ""], "draft": ["Heute um", "La porte"]}
    try:
        parts = streams.parts(LINES[0], ["de", "fr"], model="parts-stream", more=more)
    finally:
        streams.close()
    assert [joined(parts, 2)] == _given(
        connection, LINES[0], ["de", "fr"], prefixes=[["Heute", ""]], **GREEDY
    )


def test_json_has_them_as_strings(connection: Connection, server: TritonServer) -> None:
    content = {"text_input": LINES[0], "source_language": "en", "target_languages": ["de", "fr"]}
    body = {**content, "target_prefix": ["Heute", ""], "draft": ["", ""], **GREEDY}
    got = json.loads(post(server, "demo-text/generate", body)[1])["text_output"]
    prefixes = [["Heute", ""]]
    assert [got] == _given(connection, LINES[0], ["de", "fr"], prefixes=prefixes, **GREEDY)


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        (
            {"target_prefix": [["Ja"]]},
            GREEDY,
            "target_prefix has shape [1,1], it must be [1,2]: one value for each target language, "
            "empty for none",
        ),
        ({"draft": [["a", "b", "c"]]}, GREEDY, "draft has shape [1,3], it must be [1,2]"),
        (
            {"draft": [["a", b"\xff"]]},
            GREEDY,
            "draft, row 0: it is not UTF-8: the byte at offset 0 belongs to no character",
        ),
        (
            {"target_prefix": [["", "a" * 1001]]},
            GREEDY,
            "target_prefix, row 0: its 1001 bytes are more than the model's max_text_bytes 1000",
        ),
        (
            {"target_prefix": [["", "a" * 900]]},
            GREEDY,
            "target_prefix, row 0: its 900 bytes are more than 8 for each token of the model's "
            "decoding_length_limit 100",
        ),
        ({"draft": [["", "La porte"]]}, {}, "draft, row 0, value 1: a draft is for a greedy"),
        (
            {"draft": [["", ""]]},
            {**GREEDY, "draft_bias": "0.5"},
            "draft_bias 0.5 needs a draft",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(
    connection: Connection, more: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    inputs = [tensor(name, strings(rows)) for name, rows in more.items()]
    said = refusal(connection, GOOD, ["de", "fr"], more=inputs, **options)
    assert message in said
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]
