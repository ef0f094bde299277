# SPDX-License-Identifier: Apache-2.0
"""What /metrics says after a workload of which all is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import model_bin
from ct2_triton import _core
from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadModel
from server.helpers import END, LANGUAGES, Connection, Ids, Reference, padded, sentences
from server.moments import Occupied, in_backend, superseded
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.metrics import Metrics, fresh, scrape, still
from support.tiny import tiny_engine_model
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"beam_size": 1, "max_decoding_length": 8}
ONE_WORKER = {"inter_threads": 1, "intra_threads": 1}
UNKNOWN = 3  # <unk> of the tiny NLLB model
TABLE: list[dict[str, Any]] = _core.metrics()


def settled(server: TritonServer, model: str, requests: int) -> Metrics:
    """The metrics once they count all requests and change no more."""

    def counted() -> float:
        return sum(scrape(server, model).by("ct2_requests_total").values())

    wait_until(lambda: counted() >= requests)
    return still(lambda: fresh(server, model))


class Known:
    """Answers of CTranslate2 for rows, and what follows from them."""

    def __init__(self, reference: Reference, rows: list[tuple[Ids, Ids]], **options: Any) -> None:
        self.rows = rows
        self.answers = [reference.translate(row, prefix, **options) for row, prefix in rows]
        limit = options["max_decoding_length"]
        self.lengths = [len(answer) for answer in self.answers]
        self.at_limit = sum(length == limit for length in self.lengths)
        # A step for each id that is not forced, and one for the end token.
        ends = [length < limit for length in self.lengths]
        self.steps = sum(self.lengths) - len(rows) + sum(ends)

    def tokens(self, of: list[Ids], token: int) -> int:
        return sum(ids.count(token) for ids in of)


def test_every_metric_of_the_table_is_there_from_the_load_on(
    load: LoadModel, server: TritonServer
) -> None:
    shown = {name for name, *_ in scrape(server, load(configs.plain(), "fresh")).values}
    # Those of models that name their languages or have a map.
    own = {"ct2_vmap_rows_total", "ct2_target_rows_total", "ct2_target_tokens_total"}
    expected = set()
    for metric in TABLE:
        parts = ("_bucket", "_count", "_sum") if metric["kind"] == "histogram" else ("",)
        expected |= {metric["name"] + part for part in parts}
    assert shown == expected - own


def test_rows_one_by_one_in_the_decode_loop(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**LIMIT, **ONE_WORKER), "counted")
    rows = sentences(reference, 12)
    rows[3][0][1:3] = [UNKNOWN, UNKNOWN]
    known = Known(reference, rows, **LIMIT)
    assert [connection.translate(model, row, prefix) for row, prefix in rows] == known.answers
    found = settled(server, model, 12)
    sources = sum(len(row) for row, _ in rows)
    assert found.by("ct2_requests_total") == {"ok": 12}
    stopped = {"stop": 12 - known.at_limit, "length": known.at_limit}
    assert found.by("ct2_rows_total") == {name: n for name, n in stopped.items() if n}
    assert found.by("ct2_run_rows_total") == {"loop": 12}
    assert found["ct2_source_tokens_total"] == sources
    assert found["ct2_generated_tokens_total"] == sum(known.lengths)
    assert found["ct2_unknown_source_tokens_total"] == 2
    assert found["ct2_unknown_generated_tokens_total"] == known.tokens(known.answers, UNKNOWN)
    assert found["ct2_calls_total"] == 12
    assert found["ct2_call_steps_total"] == known.steps + 12  # forced tokens counted
    assert found["ct2_padding_tokens_total"] == 0
    assert found["ct2_loop_steps_total"] == found["ct2_loop_step_rows_total"] == known.steps
    assert found["ct2_loop_step_tokens_total"] == known.steps + 12
    assert found["ct2_loop_joined_rows_total"] == 0
    assert found["ct2_loop_helped_parts_total"] == 0  # the model is too small
    assert found["ct2_encodes_total"] == found["ct2_encoded_rows_total"] == 12
    assert found["ct2_encoded_tokens_total"] == sources
    assert found["ct2_shared_encodings_total"] == found["ct2_equal_rows_total"] == 0
    assert found["ct2_queue_seconds_count"] == 12
    grown = [length - 1 for length in known.lengths]  # beside the forced one
    assert found["ct2_first_token_seconds_count"] == sum(n > 0 for n in grown)
    several = sum(n > 1 for n in grown)
    assert found["ct2_token_seconds_count"] == several
    assert found["ct2_longest_token_gap_seconds_count"] == several
    assert found["ct2_longest_token_gap_seconds_sum"] > 0
    busy = found["ct2_busy_seconds_total"]
    assert busy >= found["ct2_loop_step_seconds_total"] + found["ct2_encode_seconds_total"] > 0
    assert found["ct2_decodes_in_loop"] == 1


def test_what_starts_the_decoder_is_not_counted_as_a_forced_token(
    load: LoadModel, connection: Connection, server: TritonServer
) -> None:
    """A model without a start token of its own: its first prefix id is not in the answer."""
    model = load(configs.plain(), "no_start", tiny_engine_model("mbart25"))
    for limit in (1, 2, 5):
        options = {"max_decoding_length": limit, "min_decoding_length": limit, "beam_size": 1}
        [ids] = connection.infer(model, [[50, 60, END]], [[9]], **options)["OUTPUT_IDS"].tolist()
        assert len(ids) == limit
    found = settled(server, model, 3)
    assert found["ct2_first_token_seconds_count"] == 3
    assert found["ct2_token_seconds_count"] == 2
    assert found["ct2_longest_token_gap_seconds_count"] == 2


def test_rows_of_one_request(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    """Padding, equal rows, shared encodings, and rows that join a running loop."""
    settings: dict[str, Any] = {**LIMIT, **ONE_WORKER, "pad_id": 1}
    calls = load(configs.plain(**settings, decoding="calls"), "together_in_calls")
    (short, prefix), (long, _) = sorted(sentences(reference, 6)[:2], key=lambda row: len(row[0]))
    assert len(short) < len(long)
    connection.infer(calls, padded([short, long]), [prefix, prefix])
    found = settled(server, calls, 1)
    assert found.by("ct2_run_rows_total") == {"call": 2}
    assert found["ct2_padding_tokens_total"] == len(long) - len(short)
    assert (found["ct2_calls_total"], found["ct2_loop_steps_total"]) == (1, 0)
    model = load(configs.plain(**settings), "together")
    connection.infer(model, [short] * 3, [prefix] * 3)
    found = settled(server, model, 1)
    assert found["ct2_equal_rows_total"] == 2
    assert found["ct2_encoded_rows_total"] == 1
    prefixes = [[reference.id(code)] for code in LANGUAGES]
    connection.infer(model, [short] * 4, prefixes)
    found = settled(server, model, 2)
    assert found["ct2_equal_rows_total"] == 2
    assert found["ct2_encoded_rows_total"] + found["ct2_shared_encodings_total"] == 1 + 4
    assert found["ct2_encoded_rows_total"] == 2
    assert found.by("ct2_run_rows_total") == {"loop": 7}


def test_ends_that_are_no_answer_of_the_search(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**LIMIT, max_input_length=4, truncate_input=True), "ends")
    row, prefix = next(row for row in sentences(reference, 8) if len(row[0]) > 4)
    connection.infer(model, [[END]], [prefix])
    connection.translate(model, row, prefix)
    connection.refusal(model, [[-1]], [prefix])
    connection.refusal(model, [row], [prefix], beam_size=0)
    found = settled(server, model, 4)
    assert found.by("ct2_requests_total") == {"ok": 2, "invalid": 2}
    assert found.by("ct2_rows_total") == {"empty": 1, "cut": 1}
    assert found["ct2_source_tokens_total"] == 4
    connection.translate(model, row[:2], prefix)
    assert settled(server, model, 5).by("ct2_requests_total") == {"ok": 3, "invalid": 2}


SHORT = {"beam_size": 1, "min_decoding_length": 1, "max_decoding_length": 2}


def test_superseded_and_cancelled_requests(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**ALLOWS_ENDLESS), "ended", endless_model())
    row, prefix = sentences(reference, 1)[0]
    older = in_backend(connection, model, row, prefix, "a", **ENDLESS)
    newer = connection.start(model, [row], [prefix], supersede_key="a", **SHORT)
    assert superseded(older)
    assert not superseded(newer)
    gone = connection.start(model, [row], [prefix], **ENDLESS)
    # What was published before may be of the older one.
    wait_until(lambda: fresh(server, model)["ct2_decoding_rows"] == 1)
    gone.cancel()
    found = settled(server, model, 4).by("ct2_requests_total")
    # One was superseded to see that the other had arrived.
    assert found == {"superseded": 2, "ok": 1, "cancelled": 1}


def test_gauges(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    options = {**ONE_WORKER, **ALLOWS_ENDLESS}
    config = configs.plain(**options, max_batch_rows=1, max_queued_rows=300, pad_id=1)
    model = load(config, "gauges", endless_model())
    variables = model_bin.read_model_bin(endless_model() / "model.bin").variables
    weights = sum(len(v.content) for v in variables.values())
    wait_until(lambda: 0.9 * weights < scrape(server, model)["ct2_weight_bytes"] < 2 * weights)
    rows = sentences(reference, 60)
    ids, prefixes = padded([row for row, _ in rows]), [prefix for _, prefix in rows]

    def gauges() -> tuple[float, float]:
        found = scrape(server, model)
        return found["ct2_waiting_rows"], found["ct2_decoding_rows"]

    with Occupied(connection, model, *rows[0]):
        wait_until(lambda: gauges() == (0, 1))
        pending = connection.start(model, ids, prefixes, beam_size=1, max_decoding_length=8)
        wait_until(lambda: gauges() == (60, 1))
        assert scrape(server, model)["ct2_cache_bytes"] > 0
    pending.get_result()
    found = settled(server, model, 4)
    assert gauges() == (0, 0)
    assert found["ct2_cache_bytes"] == 0
    assert found["ct2_most_waiting_rows"] == 300
    assert found["ct2_decoding_threads"] >= 1


def test_a_reload_counts_on_and_an_unload_takes_the_lines_away(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**LIMIT), "coming")
    row, prefix = sentences(reference, 1)[0]
    connection.translate(model, row, prefix)
    before = settled(server, model, 1)
    config = configs.plain(**LIMIT, inter_threads=1)
    connection.raw.load_model(model, config=_as_json(model, config))
    found = settled(server, model, 1)
    counters = {m["name"] for m in TABLE if m["kind"] == "counter"}
    assert {k: v for k, v in found.values.items() if k[0] in counters} == {
        k: v for k, v in before.values.items() if k[0] in counters
    }
    assert found["ct2_weight_bytes"] == before["ct2_weight_bytes"]
    connection.translate(model, row, prefix)
    assert settled(server, model, 2)["ct2_source_tokens_total"] == 2 * len(row)
    connection.raw.unload_model(model)
    wait_until(lambda: not scrape(server, model).values)
    connection.raw.load_model(model)
    assert settled(server, model, 0).by("ct2_requests_total") == {}


def _as_json(model: str, config: str) -> str:
    """A config as load_model takes it."""
    from google.protobuf import json_format, text_format
    from tritonclient.grpc import model_config_pb2

    message = text_format.Parse(config, model_config_pb2.ModelConfig(name=model))
    return json_format.MessageToJson(message, preserving_proto_field_name=True)


def test_target_languages_are_those_that_the_model_lists(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    server_repository: Path,
    reference: Reference,
) -> None:
    listed = LANGUAGES[:2]
    languages = [
        {
            "code": code,
            "target": True,
            "target_prefix_ids": [reference.id(code)],
            "target_source_ids": [],
        }
        for code in listed
    ]
    folder = server_repository / "speaking" / "tokenizer"
    folder.mkdir(parents=True)
    (folder / "languages.json").write_text(json.dumps({"languages": languages}))
    model = load(configs.plain(**LIMIT), "speaking")
    assert scrape(server, model).by("ct2_target_rows_total") == {}
    rows = sentences(reference, 8)  # two of each of four languages
    lengths: dict[str, float] = {}
    for row, prefix in rows:
        code = reference.vocabulary[prefix[0]]
        name = code if code in listed else "other"
        lengths[name] = lengths.get(name, 0) + len(connection.translate(model, row, prefix))
    found = settled(server, model, 8)
    assert found.by("ct2_target_rows_total") == {listed[0]: 2, listed[1]: 2, "other": 4}
    assert found.by("ct2_target_tokens_total") == lengths


def test_a_model_that_falls_back_to_calls_says_so(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**LIMIT, decoding="calls"), "calls")
    row, prefix = sentences(reference, 1)[0]
    connection.translate(model, row, prefix)
    found = settled(server, model, 1)
    assert found.by("ct2_run_rows_total") == {"call": 1}
    assert found["ct2_decodes_in_loop"] == 0
    assert found["ct2_first_token_seconds_count"] == 1


def test_a_damaged_language_list_costs_the_target_languages_alone(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    server_repository: Path,
    reference: Reference,
) -> None:
    folder = server_repository / "speechless" / "tokenizer"
    folder.mkdir(parents=True)
    (folder / "languages.json").write_text('{"languages": [{"code": 5}]}')
    model = load(configs.plain(**LIMIT), "speechless")
    row, prefix = sentences(reference, 1)[0]
    assert connection.translate(model, row, prefix) == reference.translate(row, prefix, **LIMIT)
    found = settled(server, model, 1)
    assert found.by("ct2_run_rows_total") == {"loop": 1}
    assert found.by("ct2_target_rows_total") == {}
    assert "languages.json cannot be read" in server.log_text()
