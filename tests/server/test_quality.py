# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the wire: of ids, texts and streams, what the judge says of the same text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import InferResult, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from ct2_triton import _core
from ct2_triton.client.tokenization import find_tokenizer
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server.helpers import Connection, padded, tensor
from server.stream_client import request
from server.text_client import answer, refusal, send_text, strings, translated
from support.metrics import fresh
from support.servers import EXPLICIT, ServerStack

pytestmark = pytest.mark.server

STATISTICS = {
    "version": 1,
    "languages": {
        "deu_Latn": {
            "words": {"der": 0.03, "die": 0.03, "um": 0.02, "und": 0.03},
            "from": {"eng_Latn": {"length": [-0.7, 0.9], "least_score": -1.0}},
        },
        "fra_Latn": {
            "words": {"le": 0.03, "la": 0.03, "à": 0.02, "et": 0.03},
            "from": {"eng_Latn": {"length": [3, 4]}},
        },
        "spa_Latn": {"from": {"eng_Latn": {"uncovered": 1.2, "invented": 2.2}}},
    },
}
JUDGE = _core.Judge(json.dumps(STATISTICS))
GOOD = "The ticket office opens at 5:45."
TEXTS = [GOOD, f"{GOOD} Gate C19 closes in 6 minutes!", "9999 8888 7777", "", " \n "]
VERDICTS = ["quality", "quality_flags"]
NOT_COMPUTED = {"not_computed": ["uncovered", "invented"]}


def statistics_of(repository: Path, name: str) -> Path:
    """Where the statistics of a model lie: beside CTranslate2's files."""
    [binary] = (repository / name).glob("1/**/model.bin")
    return binary.parent / "quality.json"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model for ids and text, with statistics; and one that streams and always judges."""
    folder = tmp_path_factory.mktemp("repository")
    prepare(PrepareOptions("demo", folder, io="both", settings={"beam_size": "1"}))
    always = {"beam_size": "1", "quality": "true"}
    prepare(PrepareOptions("demo", folder, "always", io="stream", settings=always))
    for name in ("demo", "always"):
        statistics_of(folder, name).write_text(json.dumps(STATISTICS))
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository, server_arguments=EXPLICIT)


def ask(connection: Connection, texts: Any, **more: Any) -> dict[str, list[Any]]:
    more = {"quality": True, **more}
    return answer(send_text(connection, texts, ["de", "fr"], return_scores=True, **more))


def test_texts_are_judged_for_each_language(connection: Connection) -> None:
    got = ask(connection, [GOOD])
    for i, code in enumerate(("deu_Latn", "fra_Latn")):
        text, score = got["text_output"][0][i], got["score"][0][i]
        judged = JUDGE.judge(GOOD, text, code, score, "eng_Latn")
        assert got["quality"][0][i] == pytest.approx(judged["quality"])
        assert got["quality_flags"][0][i] == judged["json"]
    assert json.loads(got["quality_flags"][0][0]) == [NOT_COMPUTED]
    assert "length" in json.loads(got["quality_flags"][0][1])


def test_a_text_has_the_flags_of_its_sentences(connection: Connection) -> None:
    one, two, _, *empty = ask(connection, TEXTS)["quality"]
    assert two[0] <= one[0]
    assert two[1] < 0.5
    assert empty == [[1, 1], [1, 1]]
    flags = ask(connection, TEXTS)["quality_flags"]
    assert flags[3:] == [["[]", "[]"]] * 2


def test_sentences_that_repeat_each_other(connection: Connection) -> None:
    """Each sentence is cut short to the same words: only the whole text loops."""
    text = " ".join(f"The ticket office opens at {hour}." for hour in range(2, 12))
    got = ask(connection, text, max_decoding_length=4, outputs=["text_output", *VERDICTS])
    assert got["text_output"][0][0].count("Der") == 10
    assert "repeats" in json.loads(got["quality_flags"][0][0])


LONG = "The next train to Vienna leaves at 10:20 from platform 4."


def gaps(connection: Connection, **more: Any) -> tuple[set[str], set[str]]:
    """Which of the two flags are raised for a Spanish translation, and which are not computed."""
    outputs = ["text_output", "quality_flags"]
    sent = send_text(connection, LONG, ["es"], outputs=outputs, quality=True, **more)
    *flags, missing = json.loads(answer(sent)["quality_flags"][0][0])
    both = {"uncovered", "invented"}
    return both & set(flags), both & set(missing["not_computed"])


def test_omitted_and_added_text(repository: Path, connection: Connection) -> None:
    whole = translated(connection, LONG, ["es"])[0][0]
    assert gaps(connection) == (set(), set())
    assert gaps(connection, beam_size=3) == (set(), set())
    assert gaps(connection, max_decoding_length=3) == ({"uncovered"}, set())
    draft = tensor("draft", strings([[f"{whole} {whole} {whole}"]]))
    forced = {"draft_bias": 0.9999, "more": [draft], "split": "none"}
    assert gaps(connection, **forced) == ({"invented"}, set())
    sources, _ = rows_of(repository, [LONG])
    tokenizer = find_tokenizer("demo", repository=repository)
    prefix = tokenizer.rules.target_prefix(tokenizer.rules.target_language("es"))
    for limit, flag in ((256, False), (4, True)):
        got = connection.infer(
            "demo", sources, [prefix], outputs=["QUALITY_FLAGS"], quality=True,
            max_decoding_length=limit,
        )  # fmt: skip
        assert ("uncovered" in json.loads(got["QUALITY_FLAGS"].item())) == flag


def test_forced_text_and_calls_have_no_alignments(connection: Connection) -> None:
    both = {"uncovered", "invented"}
    whole = translated(connection, LONG, ["es"])[0][0]
    prefix = tensor("target_prefix", strings([[whole.split()[0]]]))
    assert gaps(connection, more=[prefix]) == (set(), both)
    assert gaps(connection, beam_size=2, coverage_penalty=0.2) == (set(), both)  # a call
    assert gaps(connection) == (set(), set())


def test_verdicts_show_no_alignments(connection: Connection) -> None:
    got = answer(send_text(connection, LONG, ["es"], quality=True))
    assert got["alignments"] == [[[]]]
    assert json.loads(got["quality_flags"][0][0])[-1] == {
        "not_computed": ["language", "length", "unsure"]
    }


def rows_of(repository: Path, texts: list[str]) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of texts, to be translated into German, and their prefixes."""
    tokenizer = find_tokenizer("demo", repository=repository)
    rules, source = tokenizer.rules, tokenizer.source("en")
    (target,) = tokenizer.targets("de")
    sources = [rules.input_ids(tokenizer.encode(text).ids, source, target) for text in texts]
    return sources, [list(rules.target_prefix(target))] * len(texts)


def test_a_draft_changes_no_verdict(repository: Path, connection: Connection) -> None:
    sources, prefixes = rows_of(repository, [GOOD])
    names = ["OUTPUT_IDS", "DRAFT_TOKENS_KEPT", "QUALITY", "QUALITY_FLAGS"]
    plain = connection.infer("demo", sources, prefixes, outputs=names, quality=True)
    draft = {"DRAFT_IDS": plain["OUTPUT_IDS"][:, 1:].tolist()}
    again = connection.infer("demo", sources, prefixes, outputs=names, quality=True, more=draft)
    assert again["DRAFT_TOKENS_KEPT"].item() > 0
    assert again["QUALITY_FLAGS"].item() == plain["QUALITY_FLAGS"].item()
    assert again["QUALITY"].item() == pytest.approx(plain["QUALITY"].item(), abs=0.05)


def test_ids_are_judged_by_the_text_of_their_tokens(
    repository: Path, connection: Connection
) -> None:
    texts = [GOOD, "Gate C19 closes in 6 minutes!"]
    sources, prefixes = rows_of(repository, texts)
    names = ["SCORES", "QUALITY", "QUALITY_FLAGS"]
    got = connection.infer("demo", padded(sources), prefixes, outputs=names, quality=True)
    by_text = ask(connection, texts)
    assert got["QUALITY"].shape == got["QUALITY_FLAGS"].shape == (2, 1)
    assert [f.decode() for [f] in got["QUALITY_FLAGS"]] == [f for f, _ in by_text["quality_flags"]]
    assert [q for [q] in got["QUALITY"].tolist()] == pytest.approx(
        [q for q, _ in by_text["quality"]], abs=0.05
    )
    end = connection.infer("demo", [[2]], [prefixes[0]], outputs=names, quality=True)
    assert end["QUALITY"].tolist() == [[1]]
    assert end["QUALITY_FLAGS"].tolist() == [[b"[]"]]
    off = connection.infer("demo", padded(sources), prefixes, outputs=names)
    assert off["QUALITY"].shape == off["QUALITY_FLAGS"].shape == (2, 0)
    everything = connection.infer("demo", padded(sources), prefixes, outputs=None)
    assert not {"QUALITY", "QUALITY_FLAGS"} & set(everything)


def test_nobody_asks(connection: Connection) -> None:
    plain = answer(send_text(connection, GOOD, ["de"]))
    assert not set(VERDICTS) & set(plain)
    named = answer(send_text(connection, GOOD, ["de"], outputs=["text_output", *VERDICTS]))
    assert named == {"text_output": plain["text_output"], "quality": [[]], "quality_flags": [[]]}
    wanted = ask(connection, GOOD, outputs=["text_output"])
    assert wanted.keys() == {"text_output"}


@pytest.mark.parametrize(
    "options",
    [
        {"length_penalty": 0.5},
        {"repetition_penalty": 1.2},
        {"beam_size": 2, "coverage_penalty": 0.2},  # runs as a call of CTranslate2
    ],
)
def test_the_score_is_no_mean_with_penalties(
    connection: Connection, options: dict[str, Any]
) -> None:
    got = ask(connection, GOOD, **options)
    [*_, missing] = json.loads(got["quality_flags"][0][0])
    assert missing == {"not_computed": ["uncovered", "invented", "unsure"]}


def test_the_last_part_of_a_stream_is_judged(server: TritonServer, connection: Connection) -> None:
    text = TEXTS[1]
    wanted = ask(connection, text)
    with grpc.insecure_channel(server.grpc_url) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        message = request(text, ["de", "fr"], model="always-stream")
        parts = [
            InferResult(part.infer_response) for part in stub.ModelStreamInfer(iter([message]))
        ]
    verdicts = {}
    for part in parts:
        target, finish = part.as_numpy("target_index").item(), part.as_numpy("finish_reason").item()
        if finish:
            flags = part.as_numpy("quality_flags").item().decode()
            verdicts[target] = part.as_numpy("quality").item(), flags
        else:
            assert part.as_numpy("quality").shape == part.as_numpy("quality_flags").shape == (1, 0)
    assert len(parts) > 2
    assert verdicts == {
        i: (wanted["quality"][0][i], wanted["quality_flags"][0][i]) for i in range(2)
    }


def test_a_value_that_is_no_boolean(connection: Connection) -> None:
    said = refusal(connection, GOOD, ["de"], quality="maybe")
    assert 'parameter "quality": the value "maybe" is not allowed; give true or false' in said
    assert ask(connection, GOOD)["quality"][0][0] > 0.5


def test_the_metrics_count_verdicts(server: TritonServer, connection: Connection) -> None:
    before = fresh(server, "demo-text")
    ask(connection, [GOOD, GOOD])
    after = fresh(server, "demo-text")
    name = "ct2_quality_rows_total"
    assert after[name] - before[name] == 4
    flags = [one.by("ct2_quality_flags_total").get("length", 0) for one in (before, after)]
    assert flags[1] - flags[0] == 2  # the French ones


def test_broken_statistics_fail_the_load(repository: Path, connection: Connection) -> None:
    shutil.copytree(repository / "demo", repository / "broken")
    config = repository / "broken" / "config.pbtxt"
    config.write_text(config.read_text().replace('name: "demo"', 'name: "broken"'))
    statistics_of(repository, "broken").write_text('{"version": 1, "least_number": "x"}')
    with pytest.raises(InferenceServerException) as raised:
        connection.raw.load_model("broken")
    assert 'quality.json: least_number: the value "\\"x\\"" is not allowed; give an integer' in str(
        raised.value.message()
    )
    statistics_of(repository, "broken").unlink()
    connection.raw.load_model("broken")
    assert ask(connection, GOOD)["quality"][0][0] > 0.5
