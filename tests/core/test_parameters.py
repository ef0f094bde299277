# SPDX-License-Identifier: Apache-2.0
"""The table of parameters: every row's default, values, range and scope, and what refusals say."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest

from ct2_triton import _core
from support.model_config import config_json

TABLE: dict[str, dict[str, Any]] = {row["name"]: row for row in _core.parameters()}
REQUEST = [name for name, row in TABLE.items() if row["scope"] == "request"]
MODEL_ONLY = [name for name, row in TABLE.items() if row["scope"] == "model"]
REQUEST_ONLY = [name for name, row in TABLE.items() if row["scope"] == "request only"]
# As each of the two may set them.
OF_REQUESTS = [name for name in TABLE if name not in MODEL_ONLY]
OF_CONFIGS = [name for name in TABLE if name not in REQUEST_ONLY]

# Options that must be set too, for a value to be allowed in combination with the rest.
NEEDS: dict[str, dict[str, str]] = {
    "beam_size": {"max_beam_size": "1024"},
    "num_hypotheses": {"max_num_hypotheses": "1024", "max_beam_size": "1024", "beam_size": "1024"},
    "patience": {"beam_size": "1", "sampling_topk": "5"},
    "max_decoding_length": {"decoding_length_limit": "65536"},
    "min_decoding_length": {"decoding_length_limit": "65536", "max_decoding_length": "65536"},
    "sampling_topk": {"beam_size": "1"},
    "max_beam_size": {"beam_size": "1"},
    "decoding_length_limit": {"max_decoding_length": "1"},
}

# name: values as given and as kept, beside the table's example and the ends of its range.
MORE: dict[str, list[tuple[Any, Any]]] = {
    "beam_size": [("4", 4), (4, 4)],
    "patience": [("0.5", 0.5), (2.5, 2.5), (2, 2.0), ("1e1", 10.0)],
    "length_penalty": [("0.5", 0.5), ("-1", -1.0)],
    "coverage_penalty": [("0.25", 0.25), (-0.5, -0.5)],
    "repetition_penalty": [("1.5", 1.5), (2, 2.0)],
    "no_repeat_ngram_size": [("3", 3), (3, 3)],
    "prefix_bias_beta": [("0.5", 0.5), ("0", 0.0)],
    "draft_bias": [("0.5", 0.5), ("0", 0.0)],
    "num_hypotheses": [("2", 2)],
    "return_alternatives": [("true", True), ("1", True), (1, True), (True, True)],
    "min_alternative_expansion_prob": [("0.5", 0.5)],
    "return_alignments": [("true", True), ("0", False)],
    "quality": [("true", True), ("0", False)],
    "on_doubt": [("none", "none"), ("flag", "flag"), ("retry", "retry")],
    "return_scores": [("True", True), ("FALSE", False), ("0", False), (0, False)],
    "sampling_topk": [("0", 0), (10, 10)],
    "sampling_topp": [("0.5", 0.5), ("1", 1.0)],
    "sampling_temperature": [("0", 0.0), ("0.01", pytest.approx(0.01)), (0.5, 0.5)],
    "sampling_seed": [("0", 0), (4294967295, 4294967295)],
    "max_input_length": [("0", 0), ("100", 100)],
    "truncate_input": [("true", True)],
    "max_decoding_length": [("1", 1), (512, 512)],
    "max_decoding_length_multiple": [("2", 2.0), ("1.5", 1.5), (3, 3.0)],
    "min_decoding_length": [("0", 0), ("10", 10)],
    "disable_unk": [("true", True)],
    "suppress_sequences": [('[["a", 3], [7]]', [["a", 3], [7]]), ("[]", [])],
    "end_token": [('["</s>", 2]', ["</s>", 2]), (" [ 5 ] ", [5]), ("[]", [])],
    "return_end_token": [("true", True)],
    "replace_unknowns": [("true", True)],
    "use_vmap": [("true", True)],
    "supersede_key": [("x", "x"), ("captions-7/1", "captions-7/1"), ("x" * 256, "x" * 256)],
    "compute_type": [("int8", "int8"), ("float", "float")],
    "inter_threads": [("2", 2)],
    "intra_threads": [("2", 2)],
    "max_batch_rows": [("64", 64)],
    "max_batch_tokens": [("4096", 4096)],
    "max_search_tokens": [("0", 0), (65536, 65536)],
    "decoding": [("loop", "loop"), ("calls", "calls")],
    "max_cache_bytes": [("0", 0), ("1000000000", 1000000000)],
    "max_queued_rows": [("64", 64)],
    "verify_files": [("true", True)],
    "model_path": [("../base/1/model", "../base/1/model"), ("1/./a/../b", "1/./a/../b"), ("", "")],
    "pad_id": [("0", 0), ("58100", 58100)],
    "special_ids": [("[0, 1, 2147483647]", [0, 1, 2147483647]), ("[]", [])],
    "alignment_layer": [("0", 0)],
    "alignment_heads": [("[0]", [0]), ("[]", [])],
    "vmap_prefix_ids": [("[5, 6]", [5, 6]), ("[]", [])],
    "vmap_source_ids": [("[5]", [5])],
    "max_beam_size": [("8", 8)],
    "max_num_hypotheses": [("8", 8)],
    "decoding_length_limit": [("512", 512)],
    "allowed_parameters": [('["x-a", "x-b*"]', ["x-a", "x-b*"])],
}


def _example(row: dict[str, Any]) -> tuple[str, Any]:
    """The table's example, as given and as kept."""
    given = row["example"]
    if row["type"] == "string":
        return given, given
    kept = json.loads(given)
    return given, float(kept) if row["type"] == "number" else kept


# Floats are narrowed to 32 bits.
GOOD: dict[str, list[tuple[Any, Any]]] = {
    name: [
        (given, pytest.approx(kept) if isinstance(kept, float) else kept)
        for given, kept in [*MORE.get(name, []), _example(row)]
    ]
    for name, row in TABLE.items()
}

# By type, whatever the range.
BAD: dict[str, list[Any]] = {
    "integer": ["", " 4", "4 ", "+4", "4.0", "4a", "0x4", "four", "1e3", 4.0, True, "9" * 30],
    "number": ["", " 1", "1 ", "+1", "1,5", "1x", "nan", "inf", "-inf", "1e999", "0x1p3", True],
    "boolean": ["", "yes", "on", "2", " true", 2, -1, 1.0],
    "string": [],  # each has its own rule, in TestMessages and test_supersede
    "list of tokens": ["", "</s>", "2", "{}", "[1.5]", "[null]", "[true]", '[""]', "[-1]", "[[1]]"],
    "list of token lists": ["", "[1]", '["a"]', "[[]]", "[[1], []]", "[[[1]]]", "[[-1]]", '[[""]]'],
    "list of ids": ["", "1", '["a"]', "[1.0]", "[-1]", "[2147483648]", "{}", 1],
    "list of names": ["", "x", "[1]", '[""]', '{"a": 1}', 1],
}

BAD["list of tokens"] += ["[2147483648]", "[18446744073709551615]", "[1", "[1] 2", 2, True]
BAD["list of tokens"] += [f"[{'1,' * 40000}1]", "[" * 30000 + "]" * 30000]  # long, deep


def read(name: str, value: Any) -> Any:
    """Sets one parameter where its scope allows and gives back what was kept."""
    row, others = TABLE[name], NEEDS.get(name, {})
    if row["scope"] != "model":
        return _core.check_decoding_options({name: value}, others)[name]
    return _core.parse_model_config(config_json(parameters=others | {name: value}))[row["kind"]][
        name
    ]


def read_as_model(name: str, value: str) -> Any:
    config = config_json(parameters=NEEDS.get(name, {}) | {name: value})
    return _core.parse_model_config(config)[TABLE[name]["kind"]][name]


def refusal(name: str, value: Any) -> str:
    with pytest.raises(_core.Error) as caught:
        read(name, value)
    assert caught.value.code == "invalid_argument"
    return str(caught.value)


def test_every_row_is_tested_and_has_one_sentence() -> None:
    assert MORE.keys() <= TABLE.keys()
    assert {row["type"] for row in TABLE.values()} == BAD.keys()
    for row in TABLE.values():
        assert re.fullmatch(r"[A-Z0-9].*\.", row["help"]), row
        assert ". " not in row["help"], row


@pytest.mark.parametrize("name", OF_CONFIGS)
def test_the_default_is_what_a_config_without_the_parameter_gives(name: str) -> None:
    row = TABLE[name]
    config = _core.parse_model_config(config_json())
    assert config[row["kind"]][name] == row["default"]
    if row["scope"] == "request":
        assert _core.check_decoding_options({})[name] == row["default"]


@pytest.mark.parametrize(("name", "given", "kept"), [(n, *pair) for n in GOOD for pair in GOOD[n]])
def test_good_values_are_kept(name: str, given: Any, kept: Any) -> None:
    if name in OF_REQUESTS:
        result = read(name, given)
        assert result == kept
        assert type(result) is type(TABLE[name]["default"])
    if name in OF_CONFIGS and isinstance(given, str):
        assert read_as_model(name, given) == kept


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row["min"] is not None])
def test_the_range_ends_where_the_table_says(name: str) -> None:
    row = TABLE[name]
    low, high = row["min"], row["max"]
    tiny = 1e-3 if row["type"] == "number" else 1
    below_min = low if " above " in row["allowed"] else low - tiny
    above_max = high if " to below " in row["allowed"] else high + tiny
    inside = [low + tiny, high - tiny] + [low] * (below_min != low) + [high] * (above_max != high)
    for value in inside:
        if name != "sampling_temperature" or value == 0 or value >= 0.01:
            keep = read if name in REQUEST_ONLY else read_as_model
            assert keep(name, str(value)) == pytest.approx(value)
    for value in (below_min, above_max):
        assert f"the value {_shown(value)} is not allowed" in refusal(name, str(value))


def _shown(value: float) -> str:
    return f'"{value}"'


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, row in TABLE.items()
        for value in BAD[row["type"]]
        if row["scope"] == "request" or isinstance(value, str)  # config.pbtxt has only strings
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any) -> None:
    text = refusal(name, value)
    assert f'parameter "{name}": the value ' in text
    assert text.endswith(f"; give {TABLE[name]['allowed']}")


@pytest.mark.parametrize("name", REQUEST)
def test_the_operators_default_and_the_requests_value(name: str) -> None:
    given, kept = GOOD[name][0]
    needs = NEEDS.get(name, {})
    assert _core.check_decoding_options({}, needs | {name: given})[name] == kept
    default = TABLE[name]["default"]
    back: Any = "[]" if default == [] else default
    own = {key: value for key, value in needs.items() if TABLE[key]["scope"] == "model"}
    assert _core.check_decoding_options({name: back}, own | {name: str(given)})[name] == default


@pytest.mark.parametrize("name", MODEL_ONLY)
def test_a_request_cannot_set_what_belongs_to_the_model(name: str) -> None:
    with pytest.raises(_core.Error) as caught:
        _core.check_decoding_options({name: TABLE[name]["example"]})
    assert str(caught.value) == (
        f'parameter "{name}" cannot be set by a request; set it in the model\'s config.pbtxt'
    )
    assert caught.value.code == "invalid_argument"


@pytest.mark.parametrize("name", REQUEST_ONLY)
def test_a_config_cannot_set_what_belongs_to_a_request(name: str) -> None:
    with pytest.raises(_core.Error) as caught:
        _core.parse_model_config(config_json(parameters={name: TABLE[name]["example"]}))
    assert str(caught.value) == (
        f'model "m": parameter "{name}" cannot be set in config.pbtxt; '
        "each request sets it for itself"
    )
    given, kept = GOOD[name][-1]  # the example
    assert _core.check_decoding_options({name: given})[name] == kept


@pytest.mark.parametrize("name", OF_CONFIGS)
def test_the_example_of_the_documentation_is_allowed(name: str) -> None:
    others = {"coverage_penalty": {"beam_size": "2"}}.get(name, {}) | NEEDS.get(name, {})
    config = config_json(parameters=others | {name: TABLE[name]["example"]})
    assert _core.parse_model_config(config)


@pytest.mark.parametrize("name", [n for n in OF_CONFIGS if TABLE[n]["kind"] == "decoding"])
def test_rows_that_differ_in_one_option_do_not_share_a_call(name: str) -> None:
    different = next(given for given, kept in GOOD[name] if kept != TABLE[name]["default"])
    assert not _core.equal_decoding_options({}, {name: str(different)})
    assert _core.equal_decoding_options({name: str(different)}, {name: str(different)})


def test_defaults_and_names_are_those_of_ctranslate2() -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    signature = inspect.getdoc(ctranslate2.Translator.translate_batch).split(")")[0]
    theirs = dict(re.findall(r"(\w+): [^=]*? = ([\w.']+)", signature.split("*, ", 1)[1]))
    assert len(theirs) > 25
    # Decided by the batch plan, answered by outputs of the protocol, or not for a server.
    not_ours = {"max_batch_size", "batch_type", "asynchronous", "return_attention"}
    not_ours |= {"return_logits_vocab", "callback"}
    assert theirs.keys() - not_ours <= TABLE.keys()
    for name in theirs.keys() - not_ours:
        default = TABLE[name]["default"]
        assert str(default if default != [] else None) in {theirs[name], theirs[name] + ".0"}, name
    ours = {"truncate_input", "max_decoding_length_multiple", "sampling_seed", "draft_bias"}
    ours |= {"return_alignments", "quality", "on_doubt"}
    decoding = {name for name, row in TABLE.items() if row["kind"] == "decoding"}
    assert decoding - theirs.keys() == ours


class TestUnknownNames:
    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("beam_sise", "beam_size"),
            ("beamsize", "beam_size"),
            ("BEAM-SIZE", "beam_size"),
            ("bema_size", "beam_size"),
            ("num_hypothesis", "num_hypotheses"),
            ("max_decoding_lenght", "max_decoding_length"),
            ("temperatur", "temperature"),
            ("topk", "top_k"),
            ("suppress_sequence", "suppress_sequences"),
            ("end_tokens", "end_token"),
        ],
    )
    def test_near_ones_are_named(self, name: str, nearest: str) -> None:
        expected = f'unknown parameter "{name}"; did you mean "{nearest}"?'
        with pytest.raises(_core.Error) as caught:
            _core.check_decoding_options({name: "1"})
        assert str(caught.value) == expected
        with pytest.raises(_core.Error) as caught:
            _core.parse_model_config(config_json(parameters={name: "1"}))
        assert str(caught.value) == f'model "m": {expected}'

    @pytest.mark.parametrize("name", ["foo", "num_beams", "", "length", "x" * 1000, "\N{SNOWMAN}"])
    def test_others_get_the_list(self, name: str) -> None:
        with pytest.raises(_core.Error) as caught:
            _core.check_decoding_options({name: "1"})
        assert str(caught.value).startswith("unknown parameter ")
        assert str(caught.value).endswith(f"; known are {', '.join(OF_REQUESTS)}")
        assert len(str(caught.value)) < 1000
        with pytest.raises(_core.Error, match=re.escape(f"; known are {', '.join(OF_CONFIGS)}")):
            _core.parse_model_config(config_json(parameters={name: "1"}))

    def test_a_request_is_not_pointed_to_a_parameter_it_cannot_set(self) -> None:
        with pytest.raises(_core.Error, match='unknown parameter "compute_typ"; known are'):
            _core.check_decoding_options({"compute_typ": "int8"})

    @pytest.mark.parametrize("name", ["triton_anything", "TRITON_BATCH_STRATEGY_PATH"])
    def test_tritons_own_pass(self, name: str) -> None:
        assert _core.check_decoding_options({name: "x"}) == _core.check_decoding_options({})
        _core.parse_model_config(config_json(parameters={name: "x"}))

    @pytest.mark.parametrize(
        ("name", "passes"),
        [
            ("x-request-id", True),
            ("X-Request-ID", True),
            ("x-b3-", True),
            ("x-b3-traceid", True),
            ("x_request_id", False),
            ("xrequestid", False),
        ],
    )
    def test_names_the_operator_allows_pass(self, name: str, passes: bool) -> None:
        allowed = {"allowed_parameters": '["x-request-id", "x-b3-*"]'}
        if passes:
            assert _core.check_decoding_options({name: 1.5}, allowed)["beam_size"] == 2
            # Whatever the order in the file.
            _core.parse_model_config(config_json(parameters={name: "1"} | allowed))
        else:
            with pytest.raises(_core.Error, match="unknown parameter"):
                _core.check_decoding_options({name: 1.5}, allowed)
            with pytest.raises(_core.Error, match="unknown parameter"):
                _core.parse_model_config(config_json(parameters={name: "1"} | allowed))

    def test_allowing_a_known_name_does_not_switch_it_off(self) -> None:
        allowed = {"allowed_parameters": '["*"]'}
        assert _core.check_decoding_options({"beam_size": 4, "foo": 1}, allowed)["beam_size"] == 4


class TestHeaders:
    """What a server forwards of the headers that clients and proxies send."""

    @pytest.mark.parametrize(
        "name",
        ["x-request-id", "User-Agent", "grpc-timeout", "x-stream", "Host", "priority", "te", "-"],
    )
    def test_they_break_no_request(self, name: str) -> None:
        assert _core.check_decoding_options({name: "x"}) == _core.check_decoding_options({})
        with pytest.raises(_core.Error, match="unknown parameter"):
            _core.parse_model_config(config_json(parameters={name: "1"}))

    @pytest.mark.parametrize("name", ["beam-size", "Beam-Size", "host_name", "hosts"])
    def test_a_mistake_is_no_header(self, name: str) -> None:
        with pytest.raises(_core.Error, match="unknown parameter"):
            _core.check_decoding_options({name: "4"})

    @pytest.mark.parametrize("value", [5, 0.5, True])
    @pytest.mark.parametrize("name", ["max-tokens", "top-p", "x-request-id"])
    def test_a_header_is_a_string(self, name: str, value: object) -> None:
        with pytest.raises(_core.Error, match="unknown parameter"):
            _core.check_decoding_options({name: value})
        assert _core.check_decoding_options({name: str(value)}) == _core.check_decoding_options({})


ALIASES = {
    "beam_width": ("beam_size", 3),
    "max_tokens": ("max_decoding_length", 30),
    "n": ("num_hypotheses", 2),
    "seed": ("sampling_seed", 7),
    "temperature": ("sampling_temperature", 0.5),
    "top_k": ("sampling_topk", 5),
    "top_p": ("sampling_topp", 0.5),
}


class TestAliases:
    def test_the_table(self) -> None:
        table = {alias: row["name"] for row in TABLE.values() for alias in row["aliases"]}
        assert table == {alias: name for alias, (name, _) in ALIASES.items()}

    @pytest.mark.parametrize("alias", ALIASES)
    def test_each_is_the_parameter(self, alias: str) -> None:
        name, value = ALIASES[alias]
        more = {"beam_size": 1} if alias == "top_k" else {}
        by_name = _core.check_decoding_options({name: value, **more})
        assert _core.check_decoding_options({alias: value, **more}) == by_name
        assert by_name[name] == value

    def test_a_wrong_value_is_said_by_the_parameters_name(self) -> None:
        with pytest.raises(_core.Error, match='parameter "sampling_topp": the value 2 is not'):
            _core.check_decoding_options({"top_p": 2})

    def test_stop_is_pointed_to_end_token(self) -> None:
        with pytest.raises(_core.Error, match='"stop"; did you mean "end_token"'):
            _core.check_decoding_options({"stop": "."})

    def test_both_names_are_refused_in_a_config(self) -> None:
        said = 'parameters "beam_size" and "beam_width" are the same; give one of them'
        with pytest.raises(_core.Error, match=said):
            _core.parse_model_config(config_json(parameters={"beam_size": "3", "beam_width": "3"}))


@pytest.mark.parametrize("value", [-1, 0, 33, 1000, 5000])
def test_bounds_are_those_of_the_model_whatever_was_given(value: int) -> None:
    said = f"the value {value} is not allowed; give an integer from 1 to 32, the model's max_beam"
    with pytest.raises(_core.Error, match=said):
        _core.check_decoding_options({"beam_size": value})
    _core.check_decoding_options({"beam_size": 32})


def test_a_name_near_to_an_input_is_told_so() -> None:
    with pytest.raises(_core.Error, match='did you mean "target_languages"'):
        _core.check_decoding_options({"target_language": "de"})


class TestMessages:
    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("beam_size", "abc", 'the value "abc" is not allowed; give an integer from 1 to 1024'),
            ("beam_size", 0, "the value 0 is not allowed; give an integer from 1 to 1024"),
            ("patience", "0", 'the value "0" is not allowed; give a number above 0 to 100'),
            ("patience", -0.5, "the value -0.5 is not allowed; give a number above 0 to 100"),
            ("prefix_bias_beta", 1, "the value 1 is not allowed; give a number from 0 to below 1"),
            ("disable_unk", "y", 'the value "y" is not allowed; give true or false'),
            ("beam_size", True, "the value true is not allowed; give an integer from 1 to 1024"),
            (
                "end_token",
                "</s>",
                'the value "</s>" is not allowed; give a JSON list of tokens and ids, '
                'like ["</s>", 2]',
            ),
            (
                "suppress_sequences",
                "[[]]",
                'the value "[[]]" is not allowed; give a JSON list of non-empty lists of tokens '
                'and ids, like [["a", "b"], [7]]',
            ),
        ],
    )
    def test_of_a_request(self, name: str, value: Any, text: str) -> None:
        assert refusal(name, value) == f'parameter "{name}": {text}'

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            (
                "compute_type",
                "float64",
                'the value "float64" is not allowed; give one of default, auto, float32, float, '
                "float16, bfloat16, int8, int8_float32, int8_float16, int8_bfloat16, int16",
            ),
            (
                "special_ids",
                "1",
                'the value "1" is not allowed; give a JSON list of ids, like [0, 1, 2]',
            ),
            (
                "allowed_parameters",
                "x",
                'the value "x" is not allowed; give a JSON list of names, like '
                '["x-request-id", "x-b3-*"]',
            ),
        ],
    )
    def test_of_a_config(self, name: str, value: str, text: str) -> None:
        assert refusal(name, value) == f'model "m": parameter "{name}": {text}'

    @pytest.mark.parametrize("path", ["/models/a", "../../a", "1/../../../a", "..//../a", "a\0b"])
    def test_of_a_path_out_of_the_repository(self, path: str) -> None:
        text = refusal("model_path", path)
        assert text.endswith(
            "leaves the model repository; give a path relative to the model's folder that stays "
            'inside the repository, like "../other_model/1/model"'
        )

    def test_long_and_odd_values_are_cut_and_escaped(self) -> None:
        assert '"' + "x" * 80 + '"... is not allowed' in refusal("beam_size", "x" * 100000)
        assert r'the value "a\n\u0000b" is not' in refusal("beam_size", "a\n\0b")
        assert refusal("beam_size", "\N{EURO SIGN}" * 50).count("\N{REPLACEMENT CHARACTER}") <= 1
