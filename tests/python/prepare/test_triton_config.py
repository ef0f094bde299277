# SPDX-License-Identifier: Apache-2.0
"""config.pbtxt: what is written is what is read, and what the backend's own code accepts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2
from tritonclient.grpc.model_config_pb2 import ModelConfig

from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.triton_config import Parameter, Tensor, TritonConfig
from ct2_triton.prepared_model import PreparedModel
from python.prepare.conftest import Prepared
from support.tiny import tiny_checkpoint

pytestmark = pytest.mark.usefixtures("short_proofs")

EXAMPLE = TritonConfig(
    name="m",
    max_batch_size=8,
    inputs=(
        Tensor("INPUT_IDS", "TYPE_INT32", ragged=True),
        Tensor("X", "TYPE_FP32", optional=True),
    ),
    outputs=(Tensor("OUTPUT_IDS", "TYPE_INT64", (-1, 3)),),
    parameters=(
        Parameter("beam_size", "2", "A reason."),
        Parameter("odd", 'a "quoted" \\ µ\nvalue'),
    ),
    instance_kind="cpu",
    comment=("Two", "lines\nof comments"),
)


def read(text: str) -> ModelConfig:
    return text_format.Parse(text, ModelConfig())


@pytest.mark.parametrize("max_batch_size", [0, 1, 256])
@pytest.mark.parametrize("kind", ["auto", "cpu", "gpu"])
def test_text_is_read_back_as_the_same_message(max_batch_size: int, kind: str) -> None:
    import dataclasses

    config = dataclasses.replace(EXAMPLE, max_batch_size=max_batch_size, instance_kind=kind)
    message = read(config.to_text())
    assert message == config.to_message()
    assert message.instance_group[0].kind == (
        model_config_pb2.ModelInstanceGroup.Kind.Value(f"KIND_{kind.upper()}")
    )
    assert message.HasField("dynamic_batching") == (max_batch_size > 0)
    assert message.parameters["odd"].string_value == 'a "quoted" \\ µ\nvalue'


def test_a_batch_size_of_zero_is_written_out() -> None:
    import dataclasses

    text = dataclasses.replace(EXAMPLE, max_batch_size=0).to_text()
    assert text.splitlines().count("max_batch_size: 0") == 1
    assert EXAMPLE.to_text().splitlines().count("max_batch_size: 8") == 1


def test_reasons_stand_above_their_parameters() -> None:
    lines = EXAMPLE.to_text().splitlines()
    assert lines[:2] == ["# Two", "# lines of comments"]
    position = lines.index("# A reason.")
    assert lines[position + 2] == '  key: "beam_size"'


def config_of(model: PreparedModel) -> ModelConfig:
    return read(model.config_file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("family", ["nllb", "m2m100", "mbart50", "marian", "t5", "madlad"])
def test_the_backend_accepts_what_is_written(prepared: Prepared, family: str) -> None:
    message = config_of(prepared(family))
    text = json_format.MessageToJson(message, preserving_proto_field_name=True)
    parsed = load_core().parse_model_config(text)
    rules = prepared(family).rules
    assert parsed["warnings"] == []
    assert parsed["engine"]["pad_id"] == rules.pad_id
    assert parsed["engine"]["special_ids"] == list(rules.special_ids)
    assert parsed["max_batch_size"] == 256
    assert {tensor["name"] for tensor in parsed["outputs"]} == {
        "OUTPUT_IDS",
        "OUTPUT_LENGTHS",
        "SCORES",
        "FINISH_REASON",
        "HYPOTHESES",
        "HYPOTHESIS_LENGTHS",
        "DRAFT_TOKENS_KEPT",
        "ALIGNMENTS",
        "QUALITY",
        "QUALITY_FLAGS",
    }


@pytest.mark.parametrize(
    ("family", "optional"),
    [("nllb", False), ("m2m100", False), ("mbart50", False), ("marian", True), ("t5", True)],
)
def test_a_prefix_is_required_where_every_request_has_one(
    prepared: Prepared, family: str, optional: bool
) -> None:
    """Triton does not batch requests that differ in the set of inputs they send."""
    inputs = {entry.name: entry for entry in config_of(prepared(family)).input}
    assert list(inputs) == ["INPUT_IDS", "TARGET_PREFIX", "DRAFT_IDS"]
    assert inputs["TARGET_PREFIX"].optional == optional
    assert inputs["DRAFT_IDS"].optional
    assert all(entry.allow_ragged_batch for entry in inputs.values())


def test_no_queue_policy_and_no_delay_are_written(prepared: Prepared) -> None:
    """Any queue policy makes Triton's batcher stall after an execution."""
    batching = config_of(prepared("nllb")).dynamic_batching
    assert not batching.HasField("default_queue_policy")
    assert batching.max_queue_delay_microseconds == 0


def parameters_of(model: PreparedModel) -> dict[str, str]:
    return {name: value.string_value for name, value in config_of(model).parameters.items()}


def test_settings_replace_defaults_and_are_added(tmp_path: Path) -> None:
    settings = {"beam_size": "3", "no_repeat_ngram_size": "4"}
    model = prepare(
        PrepareOptions(
            str(tiny_checkpoint("nllb")),
            tmp_path,
            name="m",
            settings=settings,
            instance_kind="gpu",
            max_batch_size=0,
        )
    )
    written = parameters_of(model)
    assert settings.items() <= written.items()
    assert written["pad_id"] == "1"
    message = config_of(model)
    assert message.max_batch_size == 0
    assert message.instance_group[0].kind == model_config_pb2.ModelInstanceGroup.Kind.KIND_GPU
    assert model.manifest["conversion"]["settings"] == settings


def test_the_beam_size_is_the_checkpoints(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, prepared: Prepared
) -> None:
    assert parameters_of(prepared("nllb"))["beam_size"] == "1"
    checkpoint = checkpoint_copy("nllb")
    path = checkpoint / "generation_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "num_beams": 5}), encoding="utf-8")
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    assert parameters_of(model)["beam_size"] == "5"


def test_the_length_limit_never_exceeds_the_positions(tmp_path: Path, prepared: Prepared) -> None:
    from tiny_models import TinyOptions

    assert parameters_of(prepared("nllb"))["max_decoding_length"] == "256"
    checkpoint = tiny_checkpoint("nllb", TinyOptions(max_positions=128))
    model = prepare(PrepareOptions(str(checkpoint), tmp_path, name="short"))
    assert parameters_of(model)["max_decoding_length"] == "128"
    assert model.rules.max_source_tokens == 128
