# SPDX-License-Identifier: Apache-2.0
"""Translations that are sent while they grow: joined, they are the unary answers."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from reliability.observe import counts
from reliability.supersede_storm import SUPERSEDED
from server.helpers import Connection, post
from server.stream_client import StreamError, Streams, joined, request
from server.test_text import COMMENTARY, GOOD, GOOD_GERMAN, SIX
from server.test_text_languages import english_to_japanese
from server.text_client import answer, send_text
from support.endless import ENDLESS, ROOMY, endless_model
from support.odd_texts import ODD_TEXTS
from support.prepared import prepare_tiny
from support.repository import write_model
from support.servers import ServerStack
from support.tiny import tiny_checkpoint
from support.tokenizers import write_tokenizer
from support.waiting import wait_until

pytestmark = pytest.mark.server

GAPS = (" ", "\n", "\n\n", "  \r\n\t", "\u2003", "\n---\n")
LIMITS = {"max_text_bytes": "1000", "max_targets": "2", "max_stream_parts": "7"}
# Rows that end only when they are superseded: the tiny NLLB model has room for them.
ENDLESS_CONFIG = """
backend: "ctranslate2"
max_batch_size: 4
input { name: "text_input" data_type: TYPE_STRING dims: [1] }
input { name: "source_language" data_type: TYPE_STRING dims: [1] optional: true }
input { name: "target_languages" data_type: TYPE_STRING dims: [-1] optional: true }
model_transaction_policy { decoupled: true }
parameters { key: "beam_size" value { string_value: "1" } }
parameters { key: "decoding_length_limit" value { string_value: "65536" } }
parameters { key: "tokenizer_path" value { string_value: "tokenizer" } }
parameters { key: "decoding" value { string_value: "DECODING" } }
"""
ENDLESS_MODELS = {decoding: f"endless-{decoding}" for decoding in ("loop", "calls")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """The demo model, whose own search is of beams; tight limits; endless rows."""
    repository = tmp_path_factory.mktemp("repository")
    settings = {"compute_type": "float32", "beam_size": "3"}
    prepare(PrepareOptions("demo", repository, settings=settings, io="stream"))
    prepare(PrepareOptions("demo", repository, "tight", settings=settings | LIMITS, io="stream"))
    for decoding, name in ENDLESS_MODELS.items():
        config = ENDLESS_CONFIG.replace("DECODING", decoding)
        folder = write_model(repository, name, endless_model(), config)
        write_tokenizer(tiny_checkpoint("nllb", ROOMY), folder / "tokenizer")
    english_to_japanese(prepare_tiny("marian-pair", repository, "pair", io="stream"))
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture
def streams(server: TritonServer) -> Iterator[Streams]:
    opened = Streams(server.grpc_url)
    yield opened
    opened.close()


def _texts() -> list[str]:
    """Texts of one to seven sentences with all kinds of gaps, and odd ones."""
    rng = random.Random(18)
    texts = []
    for _ in range(24):
        pieces = [(rng.choice(COMMENTARY), rng.choice(GAPS)) for _ in range(rng.randint(1, 7))]
        texts.append(rng.choice(("", "\n")) + "".join(map("".join, pieces)))
    return [*texts, "", " \n ", "\u200b", *(text for text in ODD_TEXTS if len(text) < 400)]


def test_the_parts_joined_are_the_unary_answer(connection: Connection, streams: Streams) -> None:
    texts = _texts()
    unary = [send_text(connection, text, SIX, beam_size=1) for text in texts]
    for text, pending in zip(texts, unary, strict=True):
        parts = streams.parts(text, SIX)
        wanted = answer(pending)
        assert [joined(parts, 6)] == wanted["text_output"], text
        ends = {part.index: part for part in parts if part.finish}
        got = [(ends[i].finish, ends[i].input_tokens, ends[i].output_tokens) for i in range(6)]
        names = ("finish_reason", "num_input_tokens", "num_output_tokens")
        assert got == list(zip(*(wanted[name][0] for name in names), strict=True))
        assert {ends[i].language: i for i in range(6)} == {code: i for i, code in enumerate(SIX)}


def test_options_and_long_texts_are_those_of_the_unary_model(
    connection: Connection, streams: Streams
) -> None:
    """More rows than may be out at a time; sentences end by length; cut by lines."""
    text = " ".join(COMMENTARY[i % 50] for i in range(150))
    options = {"max_decoding_length": 6, "split": "sentences"}
    wanted = answer(send_text(connection, text, ["de", "fr"], beam_size=1, **options))
    parts = streams.parts(text, ["de", "fr"], **options)
    assert [joined(parts, 2)] == wanted["text_output"]
    assert wanted["finish_reason"] == [["length", "length"]]
    text = f"{COMMENTARY[0]} {COMMENTARY[1]}\n{COMMENTARY[2]}"
    wanted = answer(send_text(connection, text, ["de"], beam_size=1, split="lines"))
    assert [joined(streams.parts(text, ["de"], split="lines"), 1)] == wanted["text_output"]


def test_parts_are_bounded_though_nobody_reads_them(streams: Streams) -> None:
    """Triton keeps what a client has not read: behind some parts, each is a sentence at least."""
    sentences = COMMENTARY[:12]
    text = " ".join(sentences)
    plenty = streams.parts(text, ["de", "fr"])
    few = streams.parts(text, ["de", "fr"], model="tight-stream")
    assert joined(few, 2) == joined(plenty, 2)
    most = int(LIMITS["max_stream_parts"]) + 2 * len(sentences) + 2
    assert len(few) <= most < len(plenty)
    assert joined(streams.parts(GOOD, ["de"], model="tight-stream"), 1) == [GOOD_GERMAN]


def test_the_only_language_is_named_where_nobody_names_it(streams: Streams) -> None:
    text = f"{GOOD} {GOOD}"
    named, unnamed = (
        streams.parts(text, targets, source, model="pair-stream", max_decoding_length=9)
        for targets, source in ((["ja"], "en"), (None, None))
    )
    assert {part.language for part in unnamed if not part.is_final or part.finish} == {"ja"}
    assert joined(unnamed, 1) == joined(named, 1)


def test_one_language_twice(streams: Streams) -> None:
    assert joined(streams.parts(GOOD, ["de", "de"]), 2) == [GOOD_GERMAN] * 2


def _post(server: TritonServer, path: str, **more: Any) -> tuple[int, str]:
    """Sends two languages of a text over HTTP."""
    body = {"text_input": GOOD, "source_language": "en", "target_languages": ["de", "fr"], **more}
    return post(server, path, body)


@pytest.mark.parametrize("route", ["generate", "generate_stream"])
@pytest.mark.parametrize("more", [{}, {"stream": False}, {"beam_size": 2}])
def test_without_stream_a_stream_model_sends_one_response(
    server: TritonServer, route: str, more: dict[str, Any]
) -> None:
    """As the text model does, with the same shapes, and any search."""
    status, sent = _post(server, f"demo-stream/{route}", **more)
    got = json.loads(sent.removeprefix("data: "))
    _, text = _post(server, "demo-text/generate", **{"beam_size": 1, **more})
    assert status == 200
    for name, value in json.loads(text).items():
        if name not in {"model_name"} and name in got:
            assert got[name] == value
    assert got["text_output"][0] == GOOD_GERMAN
    assert (got["target_index"], got["target_language"]) == ([0, 1], ["deu_Latn", "fra_Latn"])


def test_stream_is_a_parameter_or_a_tensor(server: TritonServer, streams: Streams) -> None:
    """As the backends for language models take it; over HTTP a member is either."""
    message = request(GOOD, ["de"], stream=None)
    flag = message.inputs.add(name="stream", datatype="BOOL", shape=[1, 1])
    flag.contents.bool_contents.append(True)
    assert joined(list(streams.send(message)), 1) == [GOOD_GERMAN]
    flag.contents.bool_contents[0] = False
    (whole,) = streams.send(message)
    assert (whole.text, whole.finish, whole.is_final) == (GOOD_GERMAN, "stop", True)
    for body in ({"stream": True}, {"parameters": {"stream": True}}):
        status, sent = _post(server, "demo-stream/generate_stream", **body)
        assert status == 200
        assert sent.count("data: ") > 6
    refused = streams.refusal(GOOD, ["de"], stream="perhaps")
    assert 'parameter "stream": the value "perhaps" is not allowed; give true or false' in refused


def test_a_model_of_one_response_refuses_to_stream(
    server: TritonServer, connection: Connection, streams: Streams
) -> None:
    status, sent = _post(server, "demo-text/generate", stream=True)
    assert (status, json.loads(sent)["error"]) == (
        400,
        'this model sends one response, so it cannot stream; send "stream": true to "demo-stream", '
        "or leave it out",
    )
    assert "takes ids" in connection.refusal("demo", [[5, 2]], [[4003]], stream=True)
    assert json.loads(_post(server, "demo-text/generate", stream=False)[1])["text_output"]
    assert connection.infer("demo", [[5, 2]], [[4003]], stream=False)
    assert joined(streams.parts(GOOD, ["de"]), 1) == [GOOD_GERMAN]


def test_a_stream_is_of_one_text(streams: Streams) -> None:
    message = request(GOOD, ["de"])
    for tensor in message.inputs:
        tensor.shape[0] = 2
        tensor.contents.bytes_contents.append(tensor.contents.bytes_contents[0])
    (response,) = streams.send_raw(message)
    assert response.error_message == "a stream is of one text; text_input has 2"
    assert joined(streams.parts(GOOD, ["de"]), 1) == [GOOD_GERMAN]


def test_outputs_may_be_chosen(streams: Streams) -> None:
    message = request(GOOD, ["de"])
    message.outputs.add(name="text_output")
    parts = streams.send(message)
    assert "".join(part.text for part in parts) == GOOD_GERMAN
    assert not any(part.finish or part.language for part in parts)


def test_streams_do_not_disturb_each_other(connection: Connection, streams: Streams) -> None:
    """Many at once, good and bad, beside unary requests on the same workers."""
    texts = COMMENTARY[:40]
    unary = [send_text(connection, text, ["de"], beam_size=1) for text in texts]
    opened = [streams.open(text, ["de", "it"]) for text in texts]
    bad = [streams.open(text, ["klingon"]) for text in texts[:5]]
    for pending, stream in zip(unary, opened, strict=True):
        (wanted,) = answer(pending)["text_output"]
        assert joined(list(stream), 2)[0] == wanted[0]
    for stream in bad:
        with pytest.raises(StreamError, match="klingon"):
            next(stream)


@pytest.mark.parametrize("decoding", ENDLESS_MODELS)
def test_parts_come_while_rows_run_and_a_newer_request_ends_them(
    streams: Streams, decoding: str
) -> None:
    """The row cannot end by itself: what comes, comes before its end."""
    model = ENDLESS_MODELS[decoding]
    older = streams.open("a river", ["deu_Latn"], "eng_Latn", model, supersede_key="a", **ENDLESS)
    assert all(next(older).text for _ in range(20))
    limit = {"max_decoding_length": 8}
    newer = streams.parts("a river", ["deu_Latn"], "eng_Latn", model, supersede_key="a", **limit)
    with pytest.raises(StreamError, match=SUPERSEDED):
        list(older)
    assert joined(newer, 1) == joined(
        streams.parts("a river", ["deu_Latn"], "eng_Latn", model, **limit), 1
    )


def test_an_http_client_that_leaves_a_stream_ends_it(server: TritonServer) -> None:
    """Triton notices it after the first part; without an end the row would run for minutes."""
    model = ENDLESS_MODELS["loop"]
    body = {
        "text_input": "a river",
        "source_language": "eng_Latn",
        "target_languages": "deu_Latn",
        "stream": True,
    }
    path = f"{server.http_url}/v2/models/{model}/generate_stream"
    before = counts(server, model).failed
    with urllib.request.urlopen(path, json.dumps(body | ENDLESS).encode()) as stream:  # noqa: S310
        assert stream.readline().startswith(b"data: ")
    wait_until(lambda: counts(server, model).failed > before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("beam_size", 2),
        ("sampling_topk", 5),
        ("prefix_bias_beta", 0.5),
        ("return_alternatives", True),
        ("num_hypotheses", 2),
    ],
)
def test_other_searches_are_refused(streams: Streams, name: str, value: float) -> None:
    drawn = {"sampling_topk": 5, "sampling_temperature": 0.0} if name == "num_hypotheses" else {}
    message = streams.refusal(GOOD, ["de"], **{**drawn, name: value})
    assert f"a stream needs {name} " in message
    assert joined(streams.parts(GOOD, ["de"]), 1) == [GOOD_GERMAN]


@pytest.mark.parametrize(
    ("text", "targets", "message"),
    [
        (b"caf\xe9", ["de"], "the byte at offset 3 belongs to no character"),
        ("x" * 1001, ["de"], "1001 bytes are more than the model's max_text_bytes 1000"),
        (GOOD, ["de", "fr", "es"], "3 languages are more than the model's max_targets 2"),
        (GOOD, ["klingon"], 'no target language "klingon"'),
        (GOOD, [], "target_languages is empty; name at least one language"),
        (GOOD, None, "this model needs a target language"),
    ],
)
def test_a_wrong_request_is_one_error_and_the_next_one_runs(
    streams: Streams, text: str | bytes, targets: list[str] | None, message: str
) -> None:
    assert message in streams.refusal(text, targets, model="tight-stream")
    assert "unknown" in streams.refusal(GOOD, ["de"], model="tight-stream", beam_sise=1)
    assert joined(streams.parts(GOOD, ["de"], model="tight-stream"), 1) == [GOOD_GERMAN]


def test_a_call_that_is_no_stream_is_refused_by_triton(
    connection: Connection, streams: Streams
) -> None:
    with pytest.raises(InferenceServerException) as raised:
        connection.send("demo-stream", []).get_result()
    assert raised.value.status() == "StatusCode.UNIMPLEMENTED"
    assert joined(streams.parts(GOOD, ["de"]), 1) == [GOOD_GERMAN]


def _responses(connection: Connection) -> tuple[int, int]:
    """Responses of the stream model that were sent, and those of them that were errors."""
    known = connection.statistics("demo-stream").response_stats.values()
    return sum(one.success.count for one in known), sum(one.fail.count for one in known)


def _requests(connection: Connection) -> tuple[int, int]:
    """Requests of the stream model that were answered, and those that failed."""
    known = connection.statistics("demo-stream").inference_stats
    return known.success.count, known.fail.count


def _counted(
    read: Callable[[Connection], tuple[int, int]], connection: Connection
) -> tuple[int, int]:
    """What was counted before: it is written after the answers are sent."""
    last = read(connection)

    def rests() -> bool:
        nonlocal last
        time.sleep(0.5)
        before, last = last, read(connection)
        return before == last

    wait_until(rests)
    return last


def test_each_part_is_one_response_in_the_statistics(
    connection: Connection, streams: Streams
) -> None:
    before = _counted(_responses, connection)
    parts = streams.parts(GOOD, ["de", "fr"])
    wanted = (before[0] + len(parts), before[1])
    wait_until(lambda: _responses(connection) == wanted, f"{wanted} responses")
    streams.refusal(GOOD, ["klingon"])  # is one response, and no stream yet
    assert len(streams.parts(GOOD, ["de"])) > 6


def test_each_stream_is_one_request_in_the_statistics(
    connection: Connection, streams: Streams
) -> None:
    successes, failures = _counted(_requests, connection)
    streams.parts(GOOD, ["de", "fr"])
    streams.refusal(GOOD, ["klingon"])
    wanted = (successes + 1, failures + 1)
    wait_until(lambda: _requests(connection) == wanted, "one success and one failure")
