# SPDX-License-Identifier: Apache-2.0
"""Decode loops on our own GPU kernels, served: a real tritonserver, with an emulated GPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from core.gpu_truth import GpuTruth, translate
from ct2_triton.serve import TritonServer
from server import configs
from server.helpers import Connection, Ids, padded
from server.stream_client import Streams, joined
from server.test_options import hypotheses_of
from support import emulated_gpu
from support.metrics import fresh
from support.repository import write_model, write_whole_lists
from support.servers import ServerStack
from support.tiny import tiny_checkpoint, tiny_engine_model
from support.tokenizers import write_tokenizer
from support.waiting import wait_until

pytestmark = pytest.mark.server

FAMILIES = ("marian", "nllb", "t5")
LIMIT = {"max_decoding_length": 7, "min_decoding_length": 1}
ALIGNMENTS = configs.entry("output", "ALIGNMENTS", "TYPE_INT32", "[-1]")
# Names of models: the compute_type, and the type of the weights in the file if it is not float32.
NARROW = {
    "float16": ("float16", None),
    "bfloat16": ("bfloat16", None),
    "int8-stored": ("int8_float16", "int8"),
    "int8-at-load": ("int8_float16", None),
}
STREAM = """
backend: "ctranslate2"
max_batch_size: 4
input { name: "text_input" data_type: TYPE_STRING dims: [1] }
input { name: "source_language" data_type: TYPE_STRING dims: [1] optional: true }
input { name: "target_languages" data_type: TYPE_STRING dims: [-1] optional: true }
model_transaction_policy { decoupled: true }
"""
# As CTranslate2 takes them.
OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 3, "num_hypotheses": 2},
    {"beam_size": 2, "repetition_penalty": 1.6, "length_penalty": 0.0},
    {"beam_size": 1, "repetition_penalty": 1.6, "no_repeat_ngram_size": 2},
    {"beam_size": 1, "num_hypotheses": 2, "return_alternatives": True},
]


@pytest.fixture(scope="module")
def truths() -> dict[str, GpuTruth]:
    return {family: GpuTruth(tiny_engine_model(family)) for family in FAMILIES}


@pytest.fixture(scope="module")
def server(
    truths: dict[str, GpuTruth], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TritonServer]:
    """Three families; `listed` has a list for German, and `pinned` asks for a GPU.

    `streamed` gives texts while they grow, and `host` the same texts by calls on the processor.
    """
    repository = tmp_path_factory.mktemp("emulated")
    config = configs.full(more=ALIGNMENTS, compute_type="float32", calls="refuse")
    for family, truth in truths.items():
        write_model(repository, family, truth.directory, config)
    listed = write_model(repository, "listed", truths["nllb"].directory, config)
    write_whole_lists(listed / "1" / "model", ["deu_Latn"])
    pinned = "instance_group { kind: KIND_GPU gpus: [ 0 ] }\n"
    pinned += configs.full(compute_type="float32", calls="refuse")
    write_model(repository, "pinned", truths["marian"].directory, pinned)
    for name, (kind, stored) in NARROW.items():  # CTranslate2 cannot try these on a CPU
        config = configs.full(compute_type=kind, calls="refuse", proof="off")
        write_model(repository, name, tiny_engine_model("marian", quantization=stored), config)
    text = {"compute_type": "float32", "beam_size": 1, "tokenizer_path": "tokenizer"}
    for name, own in (("streamed", {"calls": "refuse"}), ("host", {"decoding": "calls"})):
        config = STREAM + configs.parameters(**text, max_decoding_length=12, **own)
        folder = write_model(repository, name, truths["nllb"].directory, config)
        write_tokenizer(tiny_checkpoint("nllb"), folder / "tokenizer")
    with ServerStack() as stack:
        yield stack.start(repository, environment=emulated_gpu.server_environment())


@pytest.fixture
def connection(server: TritonServer) -> Iterator[Connection]:
    opened = Connection(server.grpc_url)
    yield opened
    opened.close()


def rows_of(truth: GpuTruth, family: str) -> list[tuple[Ids, Ids]]:
    """Sources of several lengths, each with what the family needs before its answer."""
    sources = truth.sources(5, 2, 11)
    languages = ["deu_Latn", "fra_Latn", "deu_Latn"]
    return [
        (source, [truth.ids[language]] if family == "nllb" else [])
        for source, language in zip(sources, languages, strict=True)
    ]


def work(server: TritonServer, model: str) -> dict[str, float]:
    """Passes of the GPU's decoder, and rows by what decoded them."""
    found = fresh(server, model)
    return {
        "passes": found.values.get(("ct2_gpu_passes_total",), 0),
        "cache": found.values.get(("ct2_gpu_cache_bytes",), 0),
        "refused": found.values.get(("ct2_loop_refused",), 0),
        **found.by("ct2_run_rows_total"),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_ctranslate2s_and_no_call_runs(
    family: str, server: TritonServer, connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    """All rows share the steps of the loop, whatever their options."""
    truth = truths[family]
    asked = [
        (row, prefix, options) for options in OPTIONS for row, prefix in rows_of(truth, family)
    ]

    pending = [
        connection.start(family, [row], [prefix], outputs=None, **LIMIT, **options)
        for row, prefix, options in asked
    ]

    for (row, prefix, options), sent in zip(asked, pending, strict=True):
        result = sent.get_result()
        answer = {name: result.as_numpy(name) for name in ("HYPOTHESES", "HYPOTHESIS_LENGTHS")}
        want = truth.result(row, prefix, **{"return_end_token": False, **LIMIT, **options})
        assert hypotheses_of(answer) == [[truth.ids[t] for t in h] for h in want.hypotheses]
        np.testing.assert_allclose(result.as_numpy("SCORES")[0], want.scores, rtol=1e-4)
    done = work(server, family)
    assert done["passes"] > 0
    assert done["cache"] == 0
    assert done["loop"] == len(asked)
    assert done.get("call", 0) == 0


def test_a_list_is_gathered_and_its_answers_are_those_of_its_tokens(
    server: TritonServer, connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    """Rows of the list and of the whole vocabulary share a pass."""
    rows = rows_of(truths["nllb"], "nllb")
    sources, prefixes = padded([row for row, _ in rows]), [prefix for _, prefix in rows]

    [listed, whole] = [
        connection.infer(
            name,
            sources,
            prefixes,
            more={"INPUT_LENGTHS": [[len(row)] for row, _ in rows]},
            beam_size=2,
            use_vmap=True,
            **LIMIT,
        )
        for name in ("listed", "nllb")
    ]

    assert listed["OUTPUT_IDS"].tolist() == whole["OUTPUT_IDS"].tolist()
    assert sum(fresh(server, "listed").by("ct2_vmap_rows_total").values()) >= 2


def test_drafts_change_no_answer_and_save_passes(
    server: TritonServer, connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    [row, prefix] = rows_of(truths["nllb"], "nllb")[0]
    options = {"beam_size": 1, "no_repeat_ngram_size": 3, **LIMIT}
    plain = connection.translate("nllb", row, prefix, **options)
    before = work(server, "nllb")["passes"]

    drafted = connection.infer("nllb", [row], [prefix], more={"DRAFT_IDS": [plain[1:4]]}, **options)

    assert drafted["OUTPUT_IDS"][0].tolist()[: len(plain)] == plain
    assert work(server, "nllb")["passes"] - before <= len(plain) - 2


def test_alignments_are_ctranslate2s(connection: Connection, truths: dict[str, GpuTruth]) -> None:
    truth = truths["marian"]
    for options in ({"beam_size": 1}, {"beam_size": 3}):
        [(row, prefix), *_] = rows_of(truth, "marian")
        outputs = ["OUTPUT_IDS", "ALIGNMENTS"]
        answer = connection.infer("marian", [row], [prefix], outputs=outputs, **LIMIT, **options)
        want = truth.result(
            row, prefix, return_attention=True, return_end_token=False, **LIMIT, **options
        )
        assert answer["ALIGNMENTS"][0].tolist() == [int(np.argmax(a)) for a in want.attention[0]]


@pytest.mark.parametrize(
    ("top", "by_host"),
    [({"sampling_topk": 8}, False), ({"sampling_topk": 0, "sampling_topp": 0.9}, True)],
)
def test_draws_of_a_seed_are_the_same_in_any_company(
    top: dict[str, Any],
    by_host: bool,
    server: TritonServer,
    connection: Connection,
    truths: dict[str, GpuTruth],
) -> None:
    """The kernels draw of 8 candidates; the host draws by top_p of all, and is counted."""
    rows = rows_of(truths["t5"], "t5")
    options = {"beam_size": 1, "sampling_seed": 11, **top, **LIMIT}
    metric = ("ct2_gpu_host_choices_total",)
    before = fresh(server, "t5").values.get(metric, 0)

    alone = [connection.translate("t5", row, prefix, **options) for row, prefix in rows]
    pending = [connection.start("t5", [row], [prefix], **options) for row, prefix in rows]
    together = [sent.get_result().as_numpy("OUTPUT_IDS")[0].tolist() for sent in pending]

    assert together == alone
    choices = fresh(server, "t5").values.get(metric, 0) - before
    assert choices >= 2 * sum(map(len, alone)) if by_host else choices == 0


@pytest.mark.parametrize("name", NARROW)
def test_narrow_types_are_served_with_the_answers_of_the_row_alone(
    name: str, server: TritonServer, connection: Connection, tmp_path: Path
) -> None:
    kind, stored = NARROW[name]
    truth = GpuTruth(tiny_engine_model("marian", quantization=stored))
    decoder = truth.decoder(*emulated_gpu.gpu_and_images(tmp_path), kind)
    options = {"beam_size": 1, "max_decoding_length": 7, "min_decoding_length": 0}
    sources = truth.sources(5, 2, 11, 17)

    pending = [connection.start(name, [row], None, **options) for row in sources]

    for row, sent in zip(sources, pending, strict=True):
        [(tokens, _)] = translate(decoder, truth, [row], 7)
        found = sent.get_result().as_numpy("OUTPUT_IDS")[0].tolist()
        assert found == [token for token in tokens if token != truth.end]
    done = work(server, name)
    assert done["passes"] > 0
    assert done["loop"] == len(sources)
    assert done.get("call", 0) == 0
    # Answers alone do not tell int8 from float16.
    assert fresh(server, name).values[("ct2_weight_bytes",)] == decoder.weight_bytes


def test_texts_grow_token_by_token_into_those_of_the_processor(server: TritonServer) -> None:
    """Two streams at once, whose steps run ahead of their parts."""
    texts = ("Good morning. Where is the station?", "The gate closes in six minutes!")
    streams = Streams(server.grpc_url)
    opened = [streams.open(text, ["deu_Latn"], "en", "streamed") for text in texts]
    parts = [list(one) for one in opened]

    for text, found in zip(texts, parts, strict=True):
        expected = streams.parts(text, ["deu_Latn"], "en", "host")
        assert joined(found, 1) == joined(expected, 1)
        assert len(found) > 3
    streams.close()
    done = work(server, "streamed")
    assert done["passes"] > 0
    assert done.get("call", 0) == 0


def test_beams_beyond_the_device_are_refused_beside_others_that_run(
    connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    """The rows that run beside them have the answers that they have alone."""
    truth = truths["t5"]
    rows = rows_of(truth, "t5")
    beams = {"beam_size": 4, "num_hypotheses": 4, **LIMIT}
    pending = [connection.start("t5", [row], [prefix], **beams) for row, prefix in rows]

    too_long = connection.refusal(
        "t5", [rows[0][0]], [rows[0][1]], beam_size=2, max_decoding_length=1100
    )
    too_many = connection.refusal("t5", [rows[0][0]], [rows[0][1]], beam_size=2000)

    assert "its answer may have 1100 tokens, and loops on a GPU give at most" in too_long
    assert "beam_size" in too_many
    for (row, prefix), sent in zip(rows, pending, strict=True):
        want = truth.result(row, prefix, return_end_token=False, **beams).hypotheses[0]
        found = sent.get_result().as_numpy("OUTPUT_IDS")[0].tolist()
        assert found == [truth.ids[token] for token in want]


def test_a_cancelled_row_leaves_and_the_next_is_served(
    server: TritonServer, connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    [row, prefix] = rows_of(truths["marian"], "marian")[0]
    good = connection.translate("marian", row, prefix, beam_size=1, **LIMIT)

    endless = {"min_decoding_length": 90, "max_decoding_length": 99}
    long = connection.start("marian", [row], [prefix], beam_size=4, **endless)
    long.call.cancel()

    assert connection.translate("marian", row, prefix, beam_size=1, **LIMIT) == good
    assert work(server, "marian")["cache"] == 0


def test_what_the_loop_lacks_is_refused_with_its_reason(
    connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    [row, prefix] = rows_of(truths["marian"], "marian")[0]
    good = connection.translate("marian", row, prefix, beam_size=1, **LIMIT)

    with pytest.raises(Exception, match="coverage_penalty is not 0"):
        connection.translate("marian", row, prefix, coverage_penalty=0.5, beam_size=2, **LIMIT)

    assert connection.translate("marian", row, prefix, beam_size=1, **LIMIT) == good


def test_a_model_that_asks_for_a_gpu_runs_on_the_emulated_one(
    server: TritonServer, connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    """ct2-serve writes KIND_CPU for KIND_GPU, since Triton sees no GPU."""
    [row, prefix] = rows_of(truths["marian"], "marian")[0]

    found = connection.translate("pinned", row, prefix, beam_size=1, **LIMIT)

    assert found == connection.translate("marian", row, prefix, beam_size=1, **LIMIT)
    assert work(server, "pinned")["passes"] > 0


def failure_of(request: Callable[[], object]) -> tuple[str, str]:
    """The status and the message of a request that fails."""
    with pytest.raises(InferenceServerException) as failure:
        request()
    return str(failure.value.status()), str(failure.value.message())


def _state(server: TritonServer, name: str) -> tuple[str, str]:
    """Of a model, and its reason."""
    [state] = [state for state in server.model_states() if state.name == name]
    return state.state, state.reason


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (700, "an illegal memory access was encountered"),
        (214, "uncorrectable ECC error encountered"),
        (999, "an error of the emulation"),
        (810, "an error of the emulation"),
    ],
)
def test_models_of_a_lost_device_fail_at_once_and_those_of_the_processor_go_on(
    code: int, text: str, truths: dict[str, GpuTruth], tmp_path: Path
) -> None:
    truth = truths["marian"]
    row = truth.sources(5)[0]
    config = configs.full(compute_type="float32")
    write_model(tmp_path, "marian", truth.directory, config)
    write_model(tmp_path, "t5", truths["t5"].directory, config)
    host = configs.full(compute_type="float32", decoding="calls")
    write_model(tmp_path, "host", truth.directory, host)
    environment = emulated_gpu.server_environment(lost_after=40, code=code)
    with ServerStack() as stack:
        server = stack.start(
            tmp_path,
            environment=environment,
            server_arguments=["--model-control-mode=explicit", "--load-model=*"],
        )
        opened = Connection(server.grpc_url)
        good = opened.translate("marian", row, beam_size=1, **LIMIT)

        long = {"beam_size": 4, "min_decoding_length": 90, "max_decoding_length": 99}
        running = [opened.start("marian", [row], sampling_seed=s, **long) for s in range(3)]

        failures = {failure_of(each.get_result) for each in running}
        for model in ("marian", "t5"):
            request = partial(opened.translate, model, row, beam_size=1, **LIMIT)
            failures.add(failure_of(request))
        # Whichever call of the driver was the first to report the loss, all are told the same.
        [(status, message)] = failures
        assert status == "StatusCode.UNAVAILABLE"
        lost = f": {text} ({code}); this process has lost the device: restart the server"
        assert message.endswith(lost)
        done = {model: fresh(server, model) for model in ("marian", "t5", "host")}
        assert [each["ct2_gpu_lost"] for each in done.values()] == [1, 1, 0]
        assert [each["ct2_loop_refused"] for each in done.values()] == [0, 0, 0]
        assert "call" not in done["marian"].by("ct2_run_rows_total")
        opened.raw.unload_model("t5")
        wait_until(lambda: _state(server, "t5") == ("UNAVAILABLE", "unloaded"))
        with pytest.raises(InferenceServerException, match=re.escape(lost)):
            opened.raw.load_model("t5")
        assert opened.translate("host", row, beam_size=1, **LIMIT) == good
        opened.close()


def test_a_device_that_fails_otherwise_leaves_its_rows_to_calls(
    truths: dict[str, GpuTruth], tmp_path: Path
) -> None:
    truth = truths["marian"]
    write_model(tmp_path, "marian", truth.directory, configs.full(compute_type="float32"))
    [row, prefix] = rows_of(truth, "marian")[0]
    environment = emulated_gpu.server_environment(lost_after=40, code=1)
    with ServerStack() as stack:
        server = stack.start(tmp_path, environment=environment)
        opened = Connection(server.grpc_url)
        answers = [opened.translate("marian", row, prefix, beam_size=1, **LIMIT) for _ in range(9)]
        done = work(server, "marian")
        opened.close()

    assert answers == [answers[0]] * len(answers)
    assert done["refused"] == 1  # later requests do not try the device
    assert done["passes"] > 0
    assert done["call"] > 0


def test_pages_of_running_rows_are_counted(
    server: TritonServer, connection: Connection, truths: dict[str, GpuTruth]
) -> None:
    long = {"beam_size": 4, "min_decoding_length": 90, "max_decoding_length": 99}
    pending = connection.start("marian", [truths["marian"].sources(5)[0]], **long)
    wait_until(lambda: work(server, "marian")["cache"] > 0)
    pending.get_result()
    wait_until(lambda: work(server, "marian")["cache"] == 0)


def test_a_driver_that_does_not_load_the_kernels_leaves_the_model_to_calls(
    truths: dict[str, GpuTruth], tmp_path: Path
) -> None:
    truth = truths["marian"]
    types = {"compute_type": "float32", "decoding": "loop"}
    write_model(tmp_path, "marian", truth.directory, configs.full(**types))
    strict = configs.full(**types, calls="refuse")
    write_model(tmp_path, "strict", truth.directory, strict)
    environment = emulated_gpu.server_environment(lost_after=0, code=222)
    options = {"beam_size": 1, **LIMIT}
    with ServerStack() as stack:
        server = stack.start(
            tmp_path, environment=environment, server_arguments=["--exit-on-error=false"]
        )
        opened = Connection(server.grpc_url)
        for row in truth.sources(5, 2):
            want = truth.result(row, return_end_token=False, **options).hypotheses[0]
            found = opened.translate("marian", row, **options)
            assert found == [truth.ids[token] for token in want]
        done = work(server, "marian")
        state, reason = _state(server, "strict")
        opened.close()

    sentence = "its driver, for CUDA 12.9, does not load our kernels (222); docs/gpu.md says which"
    refusal = "its rows run as calls of CTranslate2, since decode loops cannot run it"
    assert (done["refused"], done["passes"], done["call"]) == (1, 0, 2)
    assert f"{refusal}: GPU 0 (emulated): {sentence}" in server.log_text()
    assert state == "UNAVAILABLE"
    assert sentence in reason


def test_rows_that_calls_may_not_take_over_stay_in_a_loop_that_fails(
    truths: dict[str, GpuTruth], tmp_path: Path
) -> None:
    truth = truths["marian"]
    config = configs.full(compute_type="float32", calls="refuse")
    write_model(tmp_path, "marian", truth.directory, config)
    [row, prefix] = rows_of(truth, "marian")[0]
    environment = emulated_gpu.server_environment(lost_after=40, code=1)
    with ServerStack() as stack:
        server = stack.start(tmp_path, environment=environment)
        opened = Connection(server.grpc_url)
        request = partial(opened.translate, "marian", row, prefix, beam_size=1, **LIMIT)
        wait_until(lambda: _fails(request))
        for _ in range(4):
            failure_of(request)
        done = fresh(server, "marian")
        opened.close()

    assert done["ct2_loop_refused"] == 1
    assert done["ct2_decodes_in_loop"] == 1
    assert "call" not in done.by("ct2_run_rows_total")
    assert "its rows stay in the loop, because its parameter calls is" in server.log_text()


def _fails(request: Callable[[], Any]) -> bool:
    try:
        request()
    except InferenceServerException:
        return True
    return False
