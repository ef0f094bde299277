# SPDX-License-Identifier: Apache-2.0
"""What is filled into a configuration that leaves things out, and what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ct2_triton import _core
from support.model_config import config, recorded, tensor

ALL_INPUTS = [
    tensor("INPUT_IDS") | {"optional": False},
    tensor("TARGET_PREFIX") | {"optional": True},
    tensor("DRAFT_IDS") | {"optional": True},
    tensor("INPUT_LENGTHS", dims=(1,)) | {"optional": True, "allow_ragged_batch": False},
    tensor("PREFIX_LENGTHS", dims=(1,)) | {"optional": True, "allow_ragged_batch": False},
]
ALL_OUTPUTS = [
    {"name": "OUTPUT_IDS", "data_type": "TYPE_INT32", "dims": [-1]},
    {"name": "OUTPUT_LENGTHS", "data_type": "TYPE_INT32", "dims": [1]},
    {"name": "HYPOTHESES", "data_type": "TYPE_INT32", "dims": [-1, -1]},
    {"name": "HYPOTHESIS_LENGTHS", "data_type": "TYPE_INT32", "dims": [-1]},
    {"name": "SCORES", "data_type": "TYPE_FP32", "dims": [-1]},
    {"name": "FINISH_REASON", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "DRAFT_TOKENS_KEPT", "data_type": "TYPE_INT32", "dims": [1]},
    {"name": "ALIGNMENTS", "data_type": "TYPE_INT32", "dims": [-1]},
    {"name": "QUALITY", "data_type": "TYPE_FP32", "dims": [-1]},
    {"name": "QUALITY_FLAGS", "data_type": "TYPE_STRING", "dims": [-1]},
]


def complete(given: dict[str, Any]) -> dict[str, Any] | None:
    text = _core.auto_complete(json.dumps(given))
    return None if text is None else json.loads(text)


def completed(given: dict[str, Any]) -> dict[str, Any]:
    """The completed config, which must load and leave nothing to complete."""
    result = complete(given)
    assert result is not None
    _core.parse_model_config(json.dumps(result))
    assert complete(result) is None
    return result


@pytest.mark.parametrize(
    ("name", "max_batch_size"), [("bare", 256), ("bare_max8", 8), ("folder", 256)]
)
def test_a_config_without_tensors_gets_all(name: str, max_batch_size: int) -> None:
    given = json.loads(recorded(name))
    result = completed(given)
    changed = {"input", "output", "max_batch_size", "dynamic_batching"}
    assert {key: result[key] for key in changed} == {
        "input": ALL_INPUTS,
        "output": ALL_OUTPUTS,
        "max_batch_size": max_batch_size,
        "dynamic_batching": {},
    }
    assert result.keys() - changed == given.keys() - changed
    assert all(result[key] == given[key] for key in given.keys() - changed)


def test_members_that_are_absent_count_as_empty() -> None:
    result = completed({"name": "m", "backend": "ctranslate2"})
    assert (result["input"], result["output"]) == (ALL_INPUTS, ALL_OUTPUTS)
    assert result["max_batch_size"] == 256


@pytest.mark.parametrize("name", ["full", "dyn_zero"])
def test_a_complete_config_is_left_alone(name: str) -> None:
    assert _core.auto_complete(recorded(name)) is None


def test_given_inputs_keep_their_batch_size_of_zero() -> None:
    result = completed(config(max_batch_size=0, output=[]))
    assert result["max_batch_size"] == 0
    assert result["output"] == ALL_OUTPUTS


def test_given_inputs_get_no_batching_that_was_not_asked_for() -> None:
    given = config(output=[])
    del given["dynamic_batching"]
    assert "dynamic_batching" not in completed(given)


def test_given_outputs_are_kept_and_inputs_filled_in() -> None:
    outputs = [tensor("OUTPUT_IDS", "TYPE_INT64"), tensor("SCORES", "TYPE_FP32")]
    result = completed(config(input=[], output=outputs, max_batch_size=0))
    assert (result["input"], result["output"]) == (ALL_INPUTS, outputs)
    assert result["max_batch_size"] == 256


def test_batching_settings_are_kept() -> None:
    batching = {"max_queue_delay_microseconds": 5000}
    result = completed(config(input=[], dynamic_batching=batching))
    assert result["dynamic_batching"] == batching


@pytest.mark.parametrize("choice", ["sequence_batching", "ensemble_scheduling"])
def test_another_scheduler_is_not_joined_by_a_batcher(choice: str) -> None:
    given = config(input=[]) | {choice: {}}
    del given["dynamic_batching"]
    result = complete(given)
    assert result is not None
    assert "dynamic_batching" not in result


def test_missing_type_and_dims_of_a_tensor_are_filled_in() -> None:
    result = completed(json.loads(recorded("partial")))
    (given,) = json.loads(recorded("partial"))["input"]
    assert result["input"] == [given | {"data_type": "TYPE_INT32", "dims": [-1]}]
    assert result["max_batch_size"] == 0


def test_a_required_tensor_is_added_to_the_others() -> None:
    result = completed(
        config(input=[tensor("TARGET_PREFIX")], output=[tensor("SCORES", "TYPE_FP32")])
    )
    assert [one["name"] for one in result["input"]] == ["TARGET_PREFIX", "INPUT_IDS"]
    assert [one["name"] for one in result["output"]] == ["SCORES", "OUTPUT_IDS"]


@pytest.mark.parametrize(
    "changes",
    [
        {"input": [tensor("INPUT_IDS", "TYPE_FP32")]},
        {"input": [tensor("INPUT_IDS", dims=(128,))]},
        {"input": [tensor("INPUT_IDS"), tensor("foo")]},
        {"output": [tensor("OUTPUT_IDS"), tensor("foo")]},
        {"response_cache": {"enable": True}},
    ],
)
def test_what_is_wrong_stays_as_it_is_and_is_refused(changes: dict[str, Any]) -> None:
    given = config(**changes)
    assert complete(given) is None
    with pytest.raises(_core.Error):
        _core.parse_model_config(json.dumps(given))


@pytest.mark.parametrize("text", ["", "{", "3", '{"input": [3]}', '{"input": [{"name": 3}]}'])
def test_text_that_is_no_configuration(text: str) -> None:
    with pytest.raises(
        _core.Error, match="the model configuration cannot be completed: "
    ) as caught:
        _core.auto_complete(text)
    assert caught.value.code == "internal"


def test_a_model_that_names_text_input_gets_the_tensors_of_text() -> None:
    full = completed({"name": "m", "input": [{"name": "text_input"}], "max_batch_size": 8})
    assert [(one["name"], one["data_type"], one["dims"]) for one in full["input"]] == [
        ("text_input", "TYPE_STRING", [1])
    ]
    assert [one["name"] for one in full["output"]] == [
        "text_output",
        "score",
        "finish_reason",
        "num_input_tokens",
        "num_output_tokens",
        "hypotheses",
        "hypothesis_scores",
        "source_ranges",
        "target_ranges",
        "alignments",
        "quality",
        "quality_flags",
    ]


def test_ids_and_text_are_not_mixed() -> None:
    mixed = {"name": "m", "input": [{"name": "text_input"}, {"name": "INPUT_IDS"}]}
    with pytest.raises(_core.Error, match='input "INPUT_IDS" is not known; known are text_input'):
        completed(mixed)


def test_a_model_of_streams_gets_the_tensors_of_parts() -> None:
    text = [{"name": "text_input"}]
    policy = {"decoupled": True}
    parameters = {"beam_size": {"string_value": "1"}}
    given = {"name": "m", "input": text, "parameters": parameters}
    model = completed(given | {"model_transaction_policy": policy})
    outputs = {output["name"]: output["dims"] for output in model["output"]}
    assert set(outputs) >= {"text_output", "target_index", "target_language", "finish_reason"}
    assert all(dims == [-1] for dims in outputs.values())
