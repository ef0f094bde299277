# SPDX-License-Identifier: Apache-2.0
"""What the backend reads from a model configuration, and what it refuses to load."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ct2_triton import _core
from support.model_config import config_json, pbtxt_as_json, recorded, tensor

INTEGERS = [f"TYPE_{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
INPUTS = [
    tensor("INPUT_IDS"),
    tensor("TARGET_PREFIX"),
    tensor("INPUT_LENGTHS", dims=(1,)),
    tensor("PREFIX_LENGTHS", dims=(1,)),
]
OUTPUTS = [
    tensor("OUTPUT_IDS"),
    tensor("OUTPUT_LENGTHS", dims=(1,)),
    tensor("HYPOTHESES", dims=(-1, -1)),
    tensor("HYPOTHESIS_LENGTHS"),
    tensor("SCORES", "TYPE_FP32"),
    tensor("FINISH_REASON", "TYPE_STRING"),
]


def parse(**changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = _core.parse_model_config(config_json(**changes))
    return result


def refusal(code: str, **changes: Any) -> str:
    """The text after the model's name."""
    with pytest.raises(_core.Error) as caught:
        parse(**changes)
    assert caught.value.code == code
    assert str(caught.value).startswith('model "m": ')
    return str(caught.value).removeprefix('model "m": ')


class TestPredecessor:
    """Configurations written for speechmatics/ctranslate2_triton_backend load unchanged."""

    @pytest.mark.parametrize(
        ("file", "inputs", "max_batch_size", "decoding"),
        [
            ("readme", ["INPUT_IDS"], 128, {"beam_size": 4, "repetition_penalty": 1.5}),
            ("opus", ["INPUT_IDS"], 128, {"beam_size": 4, "repetition_penalty": 1.0}),
            ("m2m100", ["INPUT_IDS", "TARGET_PREFIX"], 64, {"beam_size": 5}),
        ],
    )
    def test_is_read(
        self, file: str, inputs: list[str], max_batch_size: int, decoding: dict[str, Any]
    ) -> None:
        given = pbtxt_as_json(f"predecessor_{file}")
        config = _core.parse_model_config(given)
        assert [one["name"] for one in config["inputs"]] == inputs
        assert all(one["allow_ragged_batch"] and one["dims"] == [-1] for one in config["inputs"])
        assert [one["name"] for one in config["outputs"]] == ["OUTPUT_IDS"]
        assert config["max_batch_size"] == max_batch_size
        assert config["engine"]["compute_type"] == "float16"
        expected = decoding | {"max_decoding_length_multiple": 2.0}
        assert {name: config["decoding"][name] for name in expected} == expected
        assert config["warnings"] == []
        assert _core.auto_complete(given) is None


class TestAsTritonGivesIt:
    def test_everything_that_is_read(self) -> None:
        config = _core.parse_model_config(recorded("full"))
        assert (config["name"], config["max_batch_size"]) == ("full", 4)
        assert config["decoding"]["beam_size"] == 4

    def test_a_config_without_batching(self) -> None:
        config = _core.parse_model_config(recorded("dyn_zero"))
        assert config["max_batch_size"] == 0
        assert config["warnings"] == []

    def test_the_default_file_name_of_a_folder_without_config(self) -> None:
        completed = _core.auto_complete(recorded("folder"))
        config = _core.parse_model_config(completed)
        assert config["name"] == "folder.ctranslate2"
        assert config["default_model_filename"] == "model.ctranslate2"

    @pytest.mark.parametrize("number", ["128", 128])
    def test_64_bit_integers_are_strings_or_numbers(self, number: object) -> None:
        inputs = [dict(INPUTS[0], dims=["-1"])]
        assert parse(max_batch_size=number, input=inputs)["max_batch_size"] == 128

    def test_unknown_members_are_for_triton(self) -> None:
        others = {"metric_tags": {"a": "b"}, "a_later_field": {"x": 1}}
        assert parse(**others, model_warmup=[{"name": "w"}]) == parse()

    def test_a_warmup_of_random_ids_is_refused(self) -> None:
        """Triton 2.51 can die of a warmup request that is refused."""
        ids = {"data_type": "TYPE_INT32", "dims": ["8"]}
        parse(model_warmup=[{"name": "w", "inputs": {"INPUT_IDS": ids | {"zero_data": True}}}])
        with pytest.raises(
            _core.Error, match='model_warmup "w": input "INPUT_IDS" has random_data'
        ):
            parse(
                model_warmup=[{"name": "w", "inputs": {"INPUT_IDS": ids | {"random_data": True}}}]
            )

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '"x"', '{"input": 3}', '{"response_cache": 1}']
    )
    def test_text_that_is_no_configuration_is_our_fault(self, text: str) -> None:
        with pytest.raises(_core.Error) as caught:
            _core.parse_model_config(text)
        assert caught.value.code == "internal"
        assert "cannot be read: " in str(caught.value)


class TestTensors:
    def test_all_of_the_protocol(self) -> None:
        config = parse(input=INPUTS, output=OUTPUTS)
        assert config["inputs"] == [one | {"optional": False} for one in INPUTS]
        assert [one["name"] for one in config["outputs"]] == [one["name"] for one in OUTPUTS]

    @pytest.mark.parametrize("data_type", INTEGERS)
    def test_ids_are_of_any_integer_type(self, data_type: str) -> None:
        inputs = [tensor("INPUT_IDS", data_type), tensor("TARGET_PREFIX", data_type)]
        outputs = [tensor("OUTPUT_IDS", data_type), tensor("HYPOTHESES", data_type, (-1, -1))]
        config = parse(input=inputs, output=outputs)
        assert {one["data_type"] for one in config["inputs"] + config["outputs"]} == {data_type}

    @pytest.mark.parametrize("name", ["INPUT_IDS", "TARGET_PREFIX", "OUTPUT_IDS", "HYPOTHESES"])
    @pytest.mark.parametrize(
        "data_type", ["TYPE_FP32", "TYPE_FP16", "TYPE_BOOL", "TYPE_STRING", "TYPE_INVALID"]
    )
    def test_ids_are_of_no_other_type(self, name: str, data_type: str) -> None:
        kind, text = _with(name, data_type=data_type)
        assert text == (
            f'{kind} "{name}": data_type {data_type} is not allowed; '
            "give an integer type, such as TYPE_INT32"
        )

    @pytest.mark.parametrize(
        ("name", "data_type", "right"),
        [
            ("INPUT_LENGTHS", "TYPE_INT64", "TYPE_INT32"),
            ("PREFIX_LENGTHS", "TYPE_FP32", "TYPE_INT32"),
            ("OUTPUT_LENGTHS", "TYPE_UINT32", "TYPE_INT32"),
            ("HYPOTHESIS_LENGTHS", "TYPE_INT64", "TYPE_INT32"),
            ("SCORES", "TYPE_FP64", "TYPE_FP32"),
            ("FINISH_REASON", "TYPE_INT32", "TYPE_STRING"),
        ],
    )
    def test_the_others_are_of_one_type(self, name: str, data_type: str, right: str) -> None:
        kind, text = _with(name, data_type=data_type)
        assert text == f'{kind} "{name}": data_type {data_type} is not allowed; give {right}'

    @pytest.mark.parametrize("one", INPUTS + OUTPUTS, ids=lambda one: one["name"])
    @pytest.mark.parametrize("dims", [[], [128], [-1, -1, -1], [-1, 1], [0]])
    def test_dims(self, one: dict[str, Any], dims: list[int]) -> None:
        kind, text = _with(one["name"], dims=dims)
        shown = f"[ {', '.join(map(str, dims))} ]" if dims else "[ ]"
        right = f"[ {', '.join(map(str, one['dims']))} ]"
        assert text == (
            f'{kind} "{one["name"]}": dims {shown} are not allowed; give {right}, '
            "the batch dimension left out"
        )

    def test_unknown_names(self) -> None:
        assert refusal("invalid_argument", input=[tensor("INPUT_ID")]) == (
            'input "INPUT_ID" is not known; did you mean "INPUT_IDS"? Known are INPUT_IDS, '
            "TARGET_PREFIX, DRAFT_IDS, INPUT_LENGTHS, PREFIX_LENGTHS"
        )
        assert refusal("invalid_argument", output=[tensor("foo")]) == (
            'output "foo" is not known; known are OUTPUT_IDS, OUTPUT_LENGTHS, HYPOTHESES, '
            "HYPOTHESIS_LENGTHS, SCORES, FINISH_REASON, DRAFT_TOKENS_KEPT, ALIGNMENTS, "
            "QUALITY, QUALITY_FLAGS"
        )

    @pytest.mark.parametrize(("kind", "name"), [("input", "INPUT_IDS"), ("output", "OUTPUT_IDS")])
    def test_missing_and_repeated_ones(self, kind: str, name: str) -> None:
        missing = (
            f'{kind} "{name}" is missing; declare it with data_type TYPE_INT32 and dims [ -1 ]'
        )
        assert refusal("invalid_argument", **{kind: []}) == missing
        twice = refusal("invalid_argument", **{kind: [tensor(name), tensor(name)]})
        assert twice == f'{kind} "{name}" is declared twice'

    def test_companions(self) -> None:
        assert refusal("invalid_argument", input=[INPUTS[0], INPUTS[3]]) == (
            'input "PREFIX_LENGTHS" needs input "TARGET_PREFIX"; declare both or none'
        )
        assert refusal("invalid_argument", output=[OUTPUTS[0], OUTPUTS[3]]) == (
            'output "HYPOTHESIS_LENGTHS" needs output "HYPOTHESES"; declare both or none'
        )

    @pytest.mark.parametrize("name", ["TARGET_PREFIX", "INPUT_LENGTHS", "PREFIX_LENGTHS"])
    def test_these_inputs_may_be_optional(self, name: str) -> None:
        inputs = [dict(one, optional=one["name"] == name) for one in INPUTS]
        assert [one["optional"] for one in parse(input=inputs)["inputs"]].count(True) == 1

    def test_input_ids_may_not(self) -> None:
        text = refusal("invalid_argument", input=[dict(INPUTS[0], optional=True)])
        assert text == 'input "INPUT_IDS" cannot be optional; remove optional: true'

    @pytest.mark.parametrize("feature", ["is_shape_tensor", "is_non_linear_format_io"])
    def test_flags_of_other_backends(self, feature: str) -> None:
        text = refusal("unsupported", input=[INPUTS[0] | {feature: True}])
        assert text == f'input "INPUT_IDS": {feature} is not supported; remove it'

    def test_reshape(self) -> None:
        text = refusal("unsupported", output=[OUTPUTS[0] | {"reshape": {"shape": [-1, 1]}}])
        assert text == 'output "OUTPUT_IDS": reshape is not supported; remove it'


def _with(name: str, **changes: Any) -> tuple[str, str]:
    """Kind of the tensor, and the refusal of a config that declares all, this one changed."""
    kind = "input" if any(one["name"] == name for one in INPUTS) else "output"
    all_of = {"input": INPUTS, "output": OUTPUTS}
    all_of[kind] = [one | changes if one["name"] == name else one for one in all_of[kind]]
    return kind, refusal("invalid_argument", **all_of)


class TestFeatures:
    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            (
                {"response_cache": {"enable": True}},
                "response_cache is refused: Triton's cache key leaves out request parameters, "
                "shapes and the outputs asked for, and it stores errors, so requests would get "
                "wrong answers; remove response_cache",
            ),
            (
                {"model_transaction_policy": {"decoupled": True}},
                "model_transaction_policy { decoupled: true } is not supported for token ids: each "
                'request has one response; remove it, or declare the input "text_input" for '
                "streams of text",
            ),
            (
                {"sequence_batching": {}},
                "sequence_batching is not supported: requests do not depend on earlier ones; use "
                "dynamic_batching { } instead",
            ),
            (
                {"batch_input": [{"kind": "BATCH_ELEMENT_COUNT"}]},
                "batch_input is not supported: ragged rows are read without it; remove it",
            ),
            (
                {"batch_output": [{"kind": "BATCH_SCATTER_WITH_INPUT_SHAPE"}]},
                "batch_output is not supported: ragged rows are read without it; remove it",
            ),
            (
                {"instance_group": [{"kind": "KIND_CPU"}, {"kind": "KIND_MODEL"}]},
                "instance_group kind KIND_MODEL is not supported: the backend does not choose "
                "devices itself; use KIND_CPU, or KIND_GPU with gpus: [ ... ]",
            ),
        ],
    )
    def test_refused(self, changes: dict[str, Any], text: str) -> None:
        assert refusal("unsupported", **changes) == text

    def test_streams_are_greedy(self) -> None:
        text = {
            "model_transaction_policy": {"decoupled": True},
            "input": [{"name": "text_input", "data_type": "TYPE_STRING", "dims": [1]}],
            "output": [{"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]}],
        }
        assert refusal("invalid_argument", **text).startswith("a stream needs beam_size 1, ")
        parse(**text, parameters={"beam_size": "1"})

    @pytest.mark.parametrize("name", ["seq", "cache"])
    def test_refused_as_triton_gives_them(self, name: str) -> None:
        with pytest.raises(_core.Error) as caught:
            _core.parse_model_config(_core.auto_complete(recorded(name)))
        assert caught.value.code == "unsupported"

    @pytest.mark.parametrize(
        "changes",
        [
            {"response_cache": {"enable": False}},
            {"model_transaction_policy": {"decoupled": False}},
            {"batch_input": [], "batch_output": []},
        ],
    )
    def test_switched_off_they_load(self, changes: dict[str, Any]) -> None:
        assert parse(**changes) == parse()

    def test_instance_groups(self) -> None:
        groups = [{"kind": "KIND_CPU", "count": "2"}, {"kind": "KIND_GPU", "gpus": [0]}]
        assert parse(instance_group=groups) == parse(instance_group=[]) == parse()


class TestPadId:
    def test_must_fit_into_the_outputs(self) -> None:
        outputs = [
            tensor("OUTPUT_IDS", "TYPE_UINT16"),
            tensor("HYPOTHESES", "TYPE_INT16", (-1, -1)),
        ]
        assert refusal("invalid_argument", output=outputs, parameters={"pad_id": "58100"}) == (
            'parameter "pad_id": 58100 does not fit into output "HYPOTHESES" of data_type '
            "TYPE_INT16; give the output a wider type"
        )
        assert (
            parse(output=outputs[:1], parameters={"pad_id": "58100"})["engine"]["pad_id"] == 58100
        )

    def test_is_none_when_not_given(self) -> None:
        assert parse()["engine"]["pad_id"] is None


class TestWarnings:
    def test_none_for_a_good_config(self) -> None:
        assert parse()["warnings"] == []

    def test_of_inputs_that_are_not_ragged(self) -> None:
        inputs = [INPUTS[0], dict(INPUTS[1], allow_ragged_batch=False)]
        expected = [
            'input "TARGET_PREFIX" lacks allow_ragged_batch: true, so only requests of equal '
            "length are batched"
        ]
        assert parse(input=inputs)["warnings"] == expected
        assert parse(input=inputs, max_batch_size=1)["warnings"] == []

    @pytest.mark.parametrize(
        "batching",
        [
            {"priority_levels": "2"},
            {"default_queue_policy": {"max_queue_size": 8}},
            {"default_queue_policy": {"default_timeout_microseconds": "100"}},
            {"default_queue_policy": {"allow_timeout_override": True}},
        ],
    )
    def test_of_a_queue_policy(self, batching: dict[str, Any]) -> None:
        assert parse(dynamic_batching=batching)["warnings"] == [
            "dynamic_batching sets a queue policy (priority_levels, max_queue_size or a timeout), "
            "with which Triton's batcher can stall for up to 500 ms"
        ]

    @pytest.mark.parametrize("batch", [1, 8])
    def test_of_a_bias_that_lets_languages_change(self, batch: int) -> None:
        parameters = {"prefix_bias_beta": "0.01"}
        assert parse(max_batch_size=batch, parameters=parameters)["warnings"] == [
            "prefix_bias_beta 0.01 is so small that rows may leave the language of their prefix; "
            "give 0.05 or more, or let requests set draft_bias, which always forces the prefix"
        ]
        parameters = {"prefix_bias_beta": "0.05"}
        assert parse(max_batch_size=batch, parameters=parameters)["warnings"] == []

    def test_not_of_a_queue_delay(self) -> None:
        batching = {"max_queue_delay_microseconds": "5000", "preferred_batch_size": [4]}
        assert parse(dynamic_batching=batching)["warnings"] == []


def test_the_empty_name_of_a_parameter_is_unknown() -> None:
    text = json.dumps(json.loads(config_json()) | {"parameters": {"": {}}})
    with pytest.raises(_core.Error, match='unknown parameter ""; known are'):
        _core.parse_model_config(text)
