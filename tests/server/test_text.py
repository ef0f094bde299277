# SPDX-License-Identifier: Apache-2.0
"""Text in, text out: the same translations as by ids, whatever the length of the text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton import _core
from ct2_triton.client import SyncTranslationClient
from ct2_triton.client.tokenization import find_tokenizer
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from server.text_client import answer, refusal, send_text, translated
from support.endless import ALLOWS_ENDLESS, ENDLESS, ROOMY
from support.metrics import fresh, scrape
from support.odd_texts import ODD_TEXTS
from support.prepared import prepare_tiny
from support.servers import ServerStack
from support.waiting import wait_until

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
COMMENTARY = [  # one sentence each
    line
    for line in (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8").splitlines()
    if len(_core.segment(line.encode(), "en")) == 1
]
SIX = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn"]
GOOD = "Gate C19 closes in 6 minutes!"
GOOD_GERMAN = "Gate C19 schließt in 6 Minuten!"
LIMITS = {
    "max_text_bytes": "1000",
    "max_text_sentences": "3",
    "max_targets": "3",
    "max_request_rows": "6",
    "source_language": "en",
}
# One call at a time: what comes while it runs, waits.
ONE_CALL = {"compute_type": "float32", "decoding": "calls", "inter_threads": "1"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model for ids and text: as it is, with tight limits, with one call at a time.

    And a model of text that takes rows of `support.endless`.
    """
    folder = tmp_path_factory.mktemp("repository")
    for name, settings in (
        ("demo", {"compute_type": "float32"}),
        ("tight", {"compute_type": "float32", **LIMITS}),
    ):
        prepare(PrepareOptions("demo", folder, name, settings=settings, io="both"))
    endless = {name: str(value) for name, value in ALLOWS_ENDLESS.items()}
    prepare_tiny("nllb", folder, "endless", ROOMY, settings=endless, io="text")
    one_call = {**endless, **ONE_CALL, "source_language": "eng_Latn"}
    prepare_tiny("nllb", folder, "calls", ROOMY, settings=one_call, io="text")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture(scope="module")
def by_ids(server: TritonServer, repository: Path) -> Iterator[SyncTranslationClient]:
    """The Python client: tokenizes itself, sends ids to the model `demo`."""
    with SyncTranslationClient(server.grpc_url, "demo", repository=repository) as client:
        yield client


def _texts(client: SyncTranslationClient, lines: list[str], target: str) -> list[str]:
    return [one.text for one in client.translate(lines, source="en", targets=target)]


def _decoding(server: TritonServer, model: str) -> float:
    """What was published before may be of an earlier row."""
    return fresh(server, model)["ct2_decoding_rows"]


def _rows_run(connection: Connection) -> int:
    batches = connection.statistics("demo-text").batch_stats
    return sum(batch.batch_size * batch.compute_infer.count for batch in batches)


def test_one_sentence_into_six_languages_in_one_call(
    connection: Connection, by_ids: SyncTranslationClient
) -> None:
    (texts,) = translated(connection, COMMENTARY[0], SIX)
    rows = by_ids.translate(COMMENTARY[0], source="en", targets=SIX)
    assert texts == [row.text for row in rows]
    assert len(set(texts)) == 6


def test_several_texts_each_with_its_own_row(
    connection: Connection, by_ids: SyncTranslationClient
) -> None:
    lines = COMMENTARY[:40]
    rows = translated(connection, lines, ["de", "fr-FR"])
    assert [row[0] for row in rows] == _texts(by_ids, lines, "deu_Latn")
    assert [row[1] for row in rows] == _texts(by_ids, lines, "fra_Latn")


def test_what_stands_between_sentences_comes_back(
    connection: Connection, by_ids: SyncTranslationClient
) -> None:
    lines = COMMENTARY[:6]
    gaps = [" ", "\n", "  \r\n\r\n\t", "\u2003", "\n\n"]
    text = "\n " + "".join(line + gap for line, gap in zip(lines, [*gaps, " \n"], strict=True))
    german = _texts(by_ids, lines, "deu_Latn")
    wanted = "\n " + "".join(line + gap for line, gap in zip(german, [*gaps, " \n"], strict=True))
    assert translated(connection, text, ["de"]) == [[wanted]]


def test_split_chooses_what_is_one_piece(
    connection: Connection, by_ids: SyncTranslationClient
) -> None:
    text = f"{COMMENTARY[0]} {COMMENTARY[1]}\n{COMMENTARY[2]}"
    by_line = "\n".join(_texts(by_ids, text.split("\n"), "deu_Latn"))
    assert translated(connection, text, ["de"], split="lines") == [[by_line]]
    whole = _texts(by_ids, [text], "deu_Latn")
    assert translated(connection, text, ["de"], split="none") == [whole]


def test_tokens_scores_and_reasons(connection: Connection) -> None:
    assert answer(send_text(connection, GOOD, ["de"]))["score"] == [[]]  # nobody wants them
    one, two = (
        answer(send_text(connection, text, ["de", "fr"], return_scores=True))
        for text in (GOOD, f"{GOOD} {GOOD}")
    )
    assert one["finish_reason"] == [["stop", "stop"]]
    for name in ("num_input_tokens", "num_output_tokens"):
        assert two[name] == [[2 * count for count in one[name][0]]]
    assert two["score"][0] == pytest.approx(one["score"][0])
    assert all(score < 0 for score in one["score"][0])
    short = answer(send_text(connection, f"{GOOD} {GOOD}", ["de"], max_decoding_length=3))
    assert short["finish_reason"] == [["length"]]


def _slices(text: str, ranges: list[list[int]]) -> list[str]:
    """What stands in the ranges, which -1 fills; behind them is nothing."""
    there = [pair for pair in ranges if pair != [-1, -1]]
    assert ranges == there + [[-1, -1]] * (len(ranges) - len(there))
    data = text.encode()
    return [data[begin:end].decode() for begin, end in there]


RANGED = [
    *ODD_TEXTS,
    f" {GOOD}  {COMMENTARY[0]}\n\n{COMMENTARY[1]}\t{COMMENTARY[2]} ",
    "Ein Wort. 日本語です。もう一つ。 Ünïcode! \u200b \n한국어 문장.",
    f"\u200b\n{GOOD}\n\u200b\n{GOOD}",
]


def test_ranges_are_those_of_the_sentences_and_their_translations(connection: Connection) -> None:
    """For any text: the slices of both texts belong together, and between them is only space."""
    options = {"max_decoding_length": 12}
    outputs = ["text_output", "source_ranges", "target_ranges"]
    got = answer(send_text(connection, RANGED, ["de", "fr"], outputs=outputs, **options))
    pairs: dict[tuple[str, int], str] = {}
    for text, answers, source, target in zip(RANGED, *(got[name] for name in outputs), strict=True):
        parts = _slices(text, source)
        assert "".join("".join(parts).split()) == "".join(text.split())
        for language, translation in enumerate(answers):
            slices = _slices(translation, target[language])
            assert "".join("".join(slices).split()) == "".join(translation.split())
            pairs.update(((part, language), one) for part, one in zip(parts, slices, strict=True))
    alone = sorted({part for part, _ in pairs})
    assert len(alone) > 40
    rows = translated(connection, alone, ["de", "fr"], split="none", **options)
    for part, row in zip(alone, rows, strict=True):
        assert [pairs[part, 0], pairs[part, 1]] == row


def test_ranges_of_no_sentences(connection: Connection) -> None:
    got = answer(send_text(connection, " \n", ["de"], outputs=["source_ranges", "target_ranges"]))
    assert got == {"source_ranges": [[]], "target_ranges": [[[]]]}
    got = answer(send_text(connection, [GOOD, ""], ["de"], outputs=["source_ranges"]))
    assert got == {"source_ranges": [[[0, len(GOOD)]], [[-1, -1]]]}


def test_alignments_are_those_of_the_token_ids(
    connection: Connection, by_ids: SyncTranslationClient, repository: Path
) -> None:
    """Sentence for sentence, in every language: what a token looks at, and the token itself."""
    lines = COMMENTARY[:3]
    text = "\n ".join(lines)
    outputs = ["text_output", "alignments"]
    got = answer(send_text(connection, text, SIX, outputs=outputs, return_alignments=True))
    tokenizer = find_tokenizer("demo", repository=repository)
    source = tokenizer.source("en")
    for number, language in enumerate(SIX):
        (target,) = tokenizer.targets(language)
        wanted = []
        for line in lines:
            row = tokenizer.rules.input_ids(tokenizer.encode(line).ids, source, target)
            one = by_ids.translate(line, source="en", targets=language, return_alignments=True)
            for token, position in zip(one.ids, one.alignments or (), strict=True):
                pair = tokenizer.decode([row[position]]), tokenizer.decode([token])
                wanted += [pair] if position >= 0 and all(pair) else []
        translation = got["text_output"][0][number].encode()
        found = [four for four in got["alignments"][0][number] if four[0] >= 0]
        assert wanted == [
            (text.encode()[left:right].decode(), translation[begin:end].decode())
            for left, right, begin, end in found
        ]
        assert len(found) > 30


def test_alignments_of_any_text_lie_in_its_sentences(connection: Connection) -> None:
    options = {"max_decoding_length": 12, "return_alignments": True}
    outputs = ["text_output", "source_ranges", "target_ranges", "alignments"]
    got = answer(send_text(connection, RANGED, ["de", "fr"], outputs=outputs, **options))
    count = 0
    for i, text in enumerate(RANGED):
        sources = got["source_ranges"][i]
        for language, translation in enumerate(got["text_output"][i]):
            targets = got["target_ranges"][i][language]
            for left, right, begin, end in got["alignments"][i][language]:
                if left < 0:
                    continue
                assert text.encode()[left:right].decode().strip()  # whole characters
                assert translation.encode()[begin:end].decode().strip()
                assert any(
                    source[0] <= left < right <= source[1] and target[0] <= begin < end <= target[1]
                    for source, target in zip(sources, targets, strict=True)
                )
                count += 1
    assert count > 300


def test_alignments_are_sent_to_those_who_ask(
    connection: Connection, server: TritonServer, repository: Path
) -> None:
    assert answer(send_text(connection, GOOD, ["de"]))["alignments"] == [[[]]]
    named = answer(send_text(connection, GOOD, ["de"], outputs=["alignments"]))
    got = answer(send_text(connection, GOOD, ["de"], return_alignments=True))
    assert got["text_output"] == [[GOOD_GERMAN]]
    assert len(got["alignments"][0][0]) > 3
    assert named == {"alignments": got["alignments"]}
    refused = refusal(connection, GOOD, ["de"], return_alignments="perhaps")
    assert "return_alignments" in refused
    called = answer(
        send_text(connection, GOOD, ["deu_Latn"], None, model="calls", return_alignments=True)
    )
    assert "alignments" in called  # also where CTranslate2 itself runs the row
    with SyncTranslationClient(server.grpc_url, "demo-text", repository=repository) as client:
        plain = client.translate(GOOD, source="en", targets="de")
        found = client.translate(GOOD, source="en", targets="de", return_alignments=True)
        assert plain.alignment_ranges is None
        assert found.alignment_ranges == tuple(map(tuple, got["alignments"][0][0]))
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_hypotheses_are_joined_by_rank(
    connection: Connection, by_ids: SyncTranslationClient
) -> None:
    options = {"beam_size": 4, "num_hypotheses": 3}
    outputs = ["text_output", "hypotheses", "hypothesis_scores", "score"]
    lines = COMMENTARY[:2]
    got = answer(send_text(connection, " ".join(lines), ["de"], outputs=outputs, **options))
    first, second = (
        by_ids.translate(line, source="en", targets="de", **options).hypotheses for line in lines
    )
    wanted = [f"{a.text} {b.text}" for a, b in zip(first, second, strict=True)]
    assert got["hypotheses"] == [[wanted]]
    assert got["text_output"] == [[wanted[0]]]
    assert got["hypothesis_scores"][0][0][0] == got["score"][0][0]
    alone = answer(send_text(connection, GOOD, ["de"], outputs=["hypothesis_scores"], **options))
    assert max(alone["hypothesis_scores"][0][0]) < 0
    one = answer(send_text(connection, GOOD, ["de"], outputs=["hypotheses", "hypothesis_scores"]))
    assert one["hypotheses"] == [[[GOOD_GERMAN]]]
    assert one["hypothesis_scores"][0][0][0] < 0
    unnamed = answer(send_text(connection, GOOD, ["de"]))
    assert [unnamed[name] for name in ("hypotheses", "hypothesis_scores")] == [[[[]]], [[[]]]]


@pytest.mark.parametrize("text", ["", " \n ", "\u200b", "\t"])
def test_a_text_without_words_comes_back_as_it_was(connection: Connection, text: str) -> None:
    got = answer(send_text(connection, text, ["de"]))
    assert got["text_output"] == [[text]]
    assert got["finish_reason"] == [["empty"]]
    assert got["num_output_tokens"] == [[0]]


def test_no_targets_are_refused(connection: Connection) -> None:
    assert "target_languages is empty; name at least" in refusal(connection, GOOD, [])
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_options_are_those_of_ids(connection: Connection, by_ids: SyncTranslationClient) -> None:
    beam = by_ids.translate(COMMENTARY[3], source="en", targets="de", beam_size=4).text
    assert translated(connection, COMMENTARY[3], ["de"], beam_size=4) == [[beam]]
    assert "unknown parameter" in refusal(connection, GOOD, ["de"], beam_sise=4)
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_a_sentence_that_is_too_long_is_cut_and_said(connection: Connection) -> None:
    """Every word of it is sent, in several rows."""
    clause = "the ticket office opens at 5:45, "
    options = {"max_decoding_length": 250}
    half = answer(send_text(connection, clause * 10, ["de"], **options))
    whole = answer(send_text(connection, clause * 160, ["de"], **options))
    assert whole["finish_reason"] in ([["split"]], [["length"]])
    of_row = 2  # language and end
    clause_ids = (half["num_input_tokens"][0][0] - of_row) / 10
    parts, left = divmod(whole["num_input_tokens"][0][0] - clause_ids * 160, of_row)
    assert left == 0
    assert parts >= 3
    assert half["finish_reason"] != [["split"]]
    cut = answer(send_text(connection, clause * 160, ["de"], truncate_input=True, **options))
    assert cut["finish_reason"] == [["cut"]]
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_characters_that_become_many_are_cut_too(connection: Connection) -> None:
    """One character of three bytes becomes 18 letters before it is made pieces of."""
    got = answer(send_text(connection, "\ufdfa" * 300, ["de"], max_decoding_length=8))
    assert got["finish_reason"] == [["length"]]
    assert got["num_input_tokens"][0][0] > 0


def test_options_that_a_sentence_cannot_have_name_it(connection: Connection) -> None:
    texts = ["", f" {GOOD}\n{GOOD}"]
    options = {"min_decoding_length": 9, "max_decoding_length_multiple": 0.1}
    message = refusal(connection, texts, ["de", "fr"], **options)
    assert message == (
        "text_input, row 1, the sentence at byte 1 into deu_Latn: min_decoding_length 9 is above "
        "this row's limit of 1 tokens"
    )
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


BAD_TEXTS = [
    (b"ab\xffcd", "offset 2"),
    (b"caf\xc3", "offset 3"),
    (b"\xed\xa0\x80", "offset 0"),
    (b"\xc0\x80", "offset 0"),
]


@pytest.mark.parametrize(("text", "where"), BAD_TEXTS)
def test_a_text_that_is_no_utf8_is_refused(connection: Connection, text: bytes, where: str) -> None:
    said = refusal(connection, [GOOD, text], ["de"])
    assert said.startswith("text_input, row 1: it is not UTF-8")
    assert where in said
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


@pytest.mark.parametrize(
    ("text", "targets", "said"),
    [
        ("x" * 1001, ["de"], "its 1001 bytes are more than the model's max_text_bytes 1000"),
        ("A one. A two. A three. A four.", ["de"], "more sentences than the model's max_text_sen"),
        ("A one. A two. A three.", ["de", "fr", "es"], "more sentences times target languages"),
        ("\u200b\n\u200b\n\u200b", ["de", "fr", "es"], "more sentences times target languages"),
        (GOOD, SIX, "6 languages are more than the model's max_targets 3"),
    ],
)
def test_bounds_of_a_request(
    connection: Connection, text: str, targets: list[str], said: str
) -> None:
    assert said in refusal(connection, text, targets, model="tight-text")
    assert translated(connection, GOOD, ["de"], model="tight-text") == [[GOOD_GERMAN]]


def test_an_answer_has_bounds_too(connection: Connection) -> None:
    """What is not translated would be copied into each hypothesis."""
    options = {"beam_size": 32, "num_hypotheses": 32, "outputs": ["hypotheses"]}
    said = refusal(connection, GOOD + "\n" * 1_000_000, SIX * 2, **options)
    assert f"{len(GOOD) + 1_000_000} bytes of text into 12 languages with 32 hypotheses" in said
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


@pytest.mark.parametrize(
    ("targets", "source", "said"),
    [
        (["deu_Latin"], "en", "deu_Latn"),
        (["de", "xx"], "en", '"xx"'),
        (["de"], "klingon", '"klingon"; it has eng_Latn'),
        (["germn"], "en", "nearest: deu_Latn"),
        (["klingon"], "en", "deu_Latn, fra_Latn, spa_Latn, ita_Latn, por_Latn, nld_Latn"),
        (None, "en", "target language"),
        ([b"\xff"], "en", "target language"),
    ],
)
def test_languages_that_are_unknown_or_missing(
    connection: Connection, targets: Any, source: str | None, said: str
) -> None:
    assert said in refusal(connection, GOOD, targets, source)
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_names_of_languages_in_english_and_in_the_library_code(connection: Connection) -> None:
    assert translated(connection, GOOD, ["German", "ger"], "english") == [[GOOD_GERMAN] * 2]


def test_a_default_source_language(connection: Connection) -> None:
    assert translated(connection, GOOD, ["de"], None, model="tight-text") == [[GOOD_GERMAN]]
    assert translated(connection, GOOD, ["de"], "", model="tight-text") == [[GOOD_GERMAN]]


def test_where_to_split_is_for_texts_alone(connection: Connection) -> None:
    said = refusal(connection, GOOD, ["de"], split="words")
    assert 'parameter "split": the value "words" is not allowed; give one of sentences' in said
    by_ids = connection.refusal("demo", [[5, 2]], [[4003]], split="lines")
    assert by_ids == 'parameter "split" is for texts, and this model takes ids; leave it out'
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_requests_with_and_without_optional_inputs_share_calls(
    connection: Connection, server: TritonServer
) -> None:
    """They wait behind a call that ends when it is superseded, and then run in one or two."""
    call: dict[str, Any] = {"model": "calls", "max_decoding_length": 8, "beam_size": 1}
    gate_call = {"model": "calls", "supersede_key": "gate"}
    before = connection.statistics("calls")
    gate = send_text(connection, GOOD, ["deu_Latn"], "eng_Latn", **gate_call, **ENDLESS)
    wait_until(lambda: _decoding(server, "calls") == 1)
    waiting = [
        send_text(connection, line, ["deu_Latn"], "eng_Latn" if i % 2 else None, **call)
        for i, line in enumerate(COMMENTARY[:8])
    ]
    for source in ("eng_Latn", None):  # behind them: they are in
        refusal(connection, GOOD, ["xx"], source, model="calls")
    assert len(translated(connection, GOOD, ["deu_Latn"], "eng_Latn", **call | gate_call)) == 1
    with pytest.raises(InferenceServerException, match="newer request"):
        answer(gate)
    for pending in waiting:
        assert len(answer(pending)["text_output"]) == 1
    after = connection.statistics("calls")
    rows = after.inference_count - before.inference_count
    calls = after.execution_count - before.execution_count
    assert rows >= len(waiting)
    assert calls <= 4, f"{rows} rows in {calls} calls"


def test_a_book_goes_through(connection: Connection, by_ids: SyncTranslationClient) -> None:
    """10,000 sentences: each comes back, and each line break."""
    lines = COMMENTARY[:50]
    german = dict(zip(lines, _texts(by_ids, lines, "deu_Latn"), strict=True))
    sentences = [lines[i % 50] for i in range(10_000)]
    gaps = ["\n\n" if i % 7 == 0 else "\n" if i % 3 == 0 else " " for i in range(10_000)]
    book = "".join(one + gap for one, gap in zip(sentences, gaps, strict=True))
    assert len(_core.segment(book.encode(), "en")) == 10_000
    wanted = "".join(german[one] + gap for one, gap in zip(sentences, gaps, strict=True))
    assert translated(connection, book, ["de"]) == [[wanted]]


def test_at_most_256_rows_of_a_book_are_in_the_queue(
    connection: Connection, server: TritonServer
) -> None:
    """Rows that cannot end: what is handed over stays, and is counted by the server."""

    def rows() -> float:
        found = scrape(server, "endless")
        return found["ct2_waiting_rows"] + found["ct2_decoding_rows"]

    book = " ".join(f"Gate {i} closes in 6 minutes!" for i in range(1_000))
    call: dict[str, Any] = {"model": "endless", "supersede_key": "book"}
    short = {"max_decoding_length": 8}
    reading = send_text(connection, book, ["deu_Latn"], "eng_Latn", **call, **ENDLESS)
    wait_until(lambda: rows() == 256)
    fresh(server, "endless")
    wait_until(lambda: rows() == 256)  # and no more; a row that starts may be counted twice
    newer = translated(connection, GOOD, ["deu_Latn"], "eng_Latn", **call, **short)
    with pytest.raises(InferenceServerException, match="newer request"):
        answer(reading)
    assert translated(connection, GOOD, ["deu_Latn"], "eng_Latn", **call, **short) == newer
    wait_until(lambda: rows() == 0)


def test_a_sentence_passes_a_book(connection: Connection) -> None:
    """It waits for few rows of the book, not for those that filled the queue before it."""
    book = " ".join(f"Gate {i} closes in 6 minutes!" for i in range(16_000))
    reading = send_text(
        connection, book, ["de"], supersede_key="book", min_decoding_length=200,
        max_decoding_length=200,
    )  # fmt: skip
    before = _rows_run(connection)
    wait_until(lambda: _rows_run(connection) > before)
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]
    assert _rows_run(connection) - before < 8_000
    assert translated(connection, GOOD, ["de"], supersede_key="book") == [[GOOD_GERMAN]]
    with pytest.raises(InferenceServerException, match="newer request"):
        answer(reading)
    assert translated(connection, GOOD, ["de"]) == [[GOOD_GERMAN]]
