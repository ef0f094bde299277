# SPDX-License-Identifier: Apache-2.0
"""Configurations: what is filled in, what is taken as it is, what is refused and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from server import configs
from server.conftest import LoadFailure, LoadModel
from server.helpers import Connection, Reference, sentences
from server.text_client import translated
from support.tiny import tiny_checkpoint
from support.tokenizers import write_tokenizer

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}


def assert_translates(connection: Connection, model: str, reference: Reference) -> None:
    for row, prefix in sentences(reference, 3):
        expected = reference.translate(row, prefix, **LIMIT)
        assert connection.translate(model, row, prefix, **LIMIT) == expected


def served_config(connection: Connection, model: str) -> Any:
    return connection.raw.get_model_config(model).config


def assert_completed(config: Any) -> None:
    inputs = {tensor.name: tensor for tensor in config.input}
    outputs = {tensor.name: list(tensor.dims) for tensor in config.output}
    assert outputs == {
        "OUTPUT_IDS": [-1],
        "OUTPUT_LENGTHS": [1],
        "HYPOTHESES": [-1, -1],
        "HYPOTHESIS_LENGTHS": [-1],
        "SCORES": [-1],
        "FINISH_REASON": [-1],
        "DRAFT_TOKENS_KEPT": [1],
        "ALIGNMENTS": [-1],
        "QUALITY": [-1],
        "QUALITY_FLAGS": [-1],
    }
    assert {name for name, tensor in inputs.items() if tensor.allow_ragged_batch} == {
        "INPUT_IDS",
        "TARGET_PREFIX",
        "DRAFT_IDS",
    }
    assert {name for name, tensor in inputs.items() if not tensor.optional} == {"INPUT_IDS"}
    assert config.max_batch_size == 256
    assert config.HasField("dynamic_batching")
    assert config.dynamic_batching.max_queue_delay_microseconds == 0
    assert [group.count for group in config.instance_group] == [1]


WARM_TEXT = """
backend: "ctranslate2"
max_batch_size: 8
input { name: "text_input" data_type: TYPE_STRING dims: [1] }
input { name: "source_language" data_type: TYPE_STRING dims: [1] optional: true }
input { name: "target_languages" data_type: TYPE_STRING dims: [-1] optional: true }
parameters { key: "tokenizer_path" value { string_value: "../tokenizers/warm" } }
parameters { key: "max_decoding_length" value { string_value: "8" } }
model_warmup { name: "w" batch_size: 1 INPUTS }
"""


def warm_text(values: dict[str, str]) -> str:
    """A model of text whose warm-up has these inputs; empty ones have zero_data."""
    inputs = ""
    for name, file in values.items():
        data = f'input_data_file: "{file}"' if file else "zero_data: true"
        value = f"value {{ data_type: TYPE_STRING dims: [1] {data} }}"
        inputs += f'inputs {{ key: "{name}" {value} }} '
    return WARM_TEXT.replace("INPUTS", inputs)


def test_a_warm_up_that_names_no_language_is_refused_before_it_runs(
    load: LoadModel, load_failure: LoadFailure, connection: Connection, server_repository: Path
) -> None:
    """Triton can die of a warm-up request that is refused."""
    write_tokenizer(tiny_checkpoint("nllb"), server_repository / "tokenizers" / "warm")
    values = {"text_input": "Good.", "source_language": "en", "target_languages": "de"}
    named = {name: name for name in values}

    def files(model: str) -> str:
        folder = server_repository / model / "warmup"
        folder.mkdir(parents=True)
        for name, value in values.items():
            (folder / name).write_bytes(len(value).to_bytes(4, "little") + value.encode())
        return model

    missing = ("source_language", "target_languages")
    for number, name in enumerate(missing * 2):
        inputs = {**named, name: ""} if number < 2 else {n: n for n in values if n != name}
        message = load_failure(warm_text(inputs), files(f"cold{number}"))
        assert f'model_warmup "w": its {name} names no language' in message
        assert "this model needs a" in message
        assert "input_data_file for text_input, source_language and target" in message
    load(warm_text({**named, "text_input": ""}), files("lukewarm"))
    load(warm_text(named), files("warm"))
    [[text]] = translated(connection, "Good.", ["de"], model="warm")
    assert text


def test_only_the_backend_named(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.BACKEND)
    assert_completed(served_config(connection, model))
    assert_translates(connection, model, reference)


def test_no_config_at_all(load: LoadModel, connection: Connection, reference: Reference) -> None:
    """Triton takes the backend from the folder's name; the ending stays part of the model's."""
    model = load(None, name="bare.ctranslate2")
    assert_completed(served_config(connection, model))
    assert_translates(connection, model, reference)


def test_what_is_written_stays(load: LoadModel, connection: Connection) -> None:
    model = load(
        configs.BACKEND
        + "max_batch_size: 4\n"
        + configs.entry("input", "INPUT_IDS", "TYPE_INT64", "[-1]")
        + configs.entry("output", "SCORES", "TYPE_FP32", "[-1]")
    )
    config = served_config(connection, model)
    assert [tensor.name for tensor in config.input] == ["INPUT_IDS"]
    assert sorted(tensor.name for tensor in config.output) == ["OUTPUT_IDS", "SCORES"]
    assert config.max_batch_size == 4
    assert not config.HasField("dynamic_batching")


def test_a_config_in_the_load_call(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.BACKEND)
    parameters = '{"beam_size": {"string_value": "1"}}'
    config = f'{{"backend": "ctranslate2", "parameters": {parameters}}}'
    connection.raw.load_model(model, config=config)
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(row, prefix, beam_size=1, max_decoding_length=20)
    assert connection.translate(model, row, prefix, max_decoding_length=20) == expected


def with_input(data_type: str, dims: str, more: str = "") -> str:
    return configs.plain().replace(
        configs.entry("input", "INPUT_IDS", "TYPE_INT32", "[-1]", configs.RAGGED),
        configs.entry("input", "INPUT_IDS", data_type, dims, more),
    )


REFUSED = [
    (with_input("TYPE_FP32", "[-1]"), ["INPUT_IDS", "TYPE_FP32", "integer type"]),
    (with_input("TYPE_INT32", "[16]"), ["INPUT_IDS", "[ 16 ]", "[ -1 ]"]),
    (with_input("TYPE_INT32", "[-1]", "reshape { shape: [1] }"), ["INPUT_IDS"]),
    (configs.plain().replace("INPUT_IDS", "INPUT_ID"), ["INPUT_ID", 'did you mean "INPUT_IDS"']),
    (configs.plain().replace("OUTPUT_IDS", "OUTPUTS"), ["OUTPUTS"]),
    (configs.plain(configs.entry("output", "SCORES", "TYPE_FP64", "[-1]")), ["SCORES"]),
    (configs.plain("response_cache { enable: true }"), ["response_cache"]),
    (configs.plain("model_transaction_policy { decoupled: true }"), ["decoupled"]),
    (configs.plain(batching="sequence_batching {}"), ["sequence_batching"]),
    (configs.plain("instance_group { kind: KIND_MODEL }"), ["KIND_MODEL", "KIND_CPU"]),
    (configs.plain(beam_sise=2), ["beam_sise", 'did you mean "beam_size"']),
    (configs.plain(beam_size="4abc"), ["beam_size", "4abc"]),
    (configs.plain(beam_size=100), ["beam_size", "100", "max_beam_size"]),
    (configs.plain(compute_type="float23"), ["compute_type", "float23", "int8"]),
    (configs.plain(compute_type="float16"), ["float16"]),
    (configs.plain(inter_threads=-1), ["inter_threads"]),
    (configs.plain(end_token=["no such token"]), ["end_token", "no such token"]),
    (configs.plain(model_path="../../outside"), ["model_path", "outside"]),
    (configs.plain(model_path="/etc"), ["model_path", "/etc"]),
    (configs.plain(model_path="../gone/1/model"), ["gone/1/model", "s3://", "--io text"]),
    (configs.plain('default_model_filename: "../2/model"'), ["default_model_filename"]),
]


@pytest.mark.parametrize(("config", "said"), REFUSED, ids=lambda value: value[-1])
def test_refused_with_a_sentence(load_failure: LoadFailure, config: str, said: list[str]) -> None:
    text = load_failure(config)
    for part in said:
        assert part in text


def test_kind_gpu_without_a_gpu(load_failure: LoadFailure) -> None:
    """Triton refuses it before the backend is asked, on a machine without a GPU."""
    text = load_failure(configs.plain("instance_group { kind: KIND_GPU gpus: [0] }"))
    assert "GPU" in text


def test_a_warning_for_input_that_is_not_ragged(load: LoadModel, server: Any) -> None:
    load(with_input("TYPE_INT32", "[-1]"), name="not_ragged")
    warnings = [line for line in server.log_text().splitlines() if line.startswith("W")]
    assert any("'not_ragged'" in w and "allow_ragged_batch" in w for w in warnings)


def test_auto_complete_switched_off(
    make_server: Any, tmp_path: Any, nllb_engine_model: Any
) -> None:
    """A whole config loads; one that leaves tensors out is refused, with what is missing."""
    from support.repository import write_model

    write_model(tmp_path, "whole", nllb_engine_model, configs.plain())
    write_model(tmp_path, "bare", nllb_engine_model, configs.BACKEND)
    server = make_server(
        tmp_path,
        server_arguments=["--disable-auto-complete-config", "--exit-on-error=false"],
    )
    states = {model.name: model for model in server.model_states()}
    assert states["whole"].state == "READY"
    assert "INPUT_IDS" in states["bare"].reason
