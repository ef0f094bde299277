# SPDX-License-Identifier: Apache-2.0
"""Options that CTranslate2 would refuse, or that would end or hang its process (facts 5.1).

Each is refused before the call, by the server of all other tests, which then answers correctly.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from server import configs
from server.conftest import LoadFailure
from server.helpers import END, Connection

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("the_same_server_still_answers")]

MODEL = "nllb"
ROW, PREFIX = [300, 50, 60, 70, END], [9]
VOCABULARY = 1406


# What ends or hangs CTranslate2 itself, where no exception can be caught.
DEADLY: list[tuple[dict[str, Any], str]] = [
    (
        {
            "return_alternatives": True,
            "num_hypotheses": 3,
            "min_alternative_expansion_prob": 0.999,
        },
        "min_alternative_expansion_prob",
    ),
    (
        {"return_alternatives": True, "num_hypotheses": 2, "beam_size": 2, "patience": 0.2},
        "num_hypotheses",
    ),
    ({"coverage_penalty": 0.2, "beam_size": 1, "return_scores": True}, "coverage_penalty"),
    ({"coverage_penalty": 0.2, "beam_size": 1}, "coverage_penalty"),
    (
        {"coverage_penalty": 0.2, "beam_size": 1, "num_hypotheses": 2, "sampling_topk": 5},
        "coverage_penalty",
    ),
    ({"end_token": f"[{VOCABULARY}]", "min_decoding_length": 2}, "end_token"),
    ({"end_token": "[2147483647]", "min_decoding_length": 2}, "end_token"),
    ({"end_token": "[-1]", "min_decoding_length": 2}, "end_token"),
    ({"no_repeat_ngram_size": 2**63 - 1}, "no_repeat_ngram_size"),
    ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size"),
    ({"beam_size": 1000}, "beam_size"),
    ({"beam_size": 10**9}, "beam_size"),
    ({"num_hypotheses": 10**9, "beam_size": 1, "sampling_topk": 0}, "num_hypotheses"),
    ({"max_decoding_length": 2**63 - 1}, "max_decoding_length"),
    ({"sampling_topk": 10**9, "beam_size": 1}, "sampling_topk"),
    ({"beam_size": 4, "sampling_topk": 5}, "sampling_topk"),
]

# What CTranslate2 refuses by an exception that would fail the whole call.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"beam_size": 0}, "beam_size"),
    ({"beam_size": -3}, "beam_size"),
    ({"patience": 0.0}, "patience"),
    ({"patience": -1.0}, "patience"),
    ({"num_hypotheses": 3, "beam_size": 2}, "num_hypotheses"),
    ({"num_hypotheses": 0}, "num_hypotheses"),
    ({"min_decoding_length": 30, "max_decoding_length": 20}, "min_decoding_length"),
    ({"max_decoding_length": 0}, "max_decoding_length"),
    ({"repetition_penalty": 0.0}, "repetition_penalty"),
    ({"prefix_bias_beta": 1.0}, "prefix_bias_beta"),
    ({"prefix_bias_beta": -0.5}, "prefix_bias_beta"),
    ({"sampling_topp": 0.0}, "sampling_topp"),
    ({"sampling_topp": 1.5}, "sampling_topp"),
    ({"sampling_topk": VOCABULARY + 1, "beam_size": 1}, "sampling_topk"),
    ({"sampling_topk": -1}, "sampling_topk"),
    ({"sampling_temperature": -1.0}, "sampling_temperature"),
    ({"length_penalty": float("nan")}, "length_penalty"),
    ({"length_penalty": float("inf")}, "length_penalty"),
    ({"repetition_penalty": float("nan")}, "repetition_penalty"),
    ({"suppress_sequences": '[["no such token"]]'}, "no such token"),
    ({"end_token": '["no such token"]'}, "no such token"),
    ({"return_alternatives": True, "prefix_bias_beta": 0.5}, "prefix_bias_beta"),
]

# What depends on the row, and so only a request can be refused for.
BY_ROW: list[tuple[dict[str, Any], str]] = [
    ({"min_decoding_length": 30, "max_decoding_length_multiple": 2.0}, "min_decoding_length"),
]

# What is no value of that option at all, or no option.
MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"beam_size": "two"}, "beam_size"),
    ({"beam_size": "4abc"}, "beam_size"),
    ({"beam_size": 2.5}, "beam_size"),
    ({"beam_size": True}, "beam_size"),
    ({"return_scores": 2}, "return_scores"),
    ({"return_scores": "yes"}, "return_scores"),
    ({"suppress_sequences": "[[1, 2"}, "suppress_sequences"),
    ({"suppress_sequences": '{"a": 1}'}, "suppress_sequences"),
    ({"suppress_sequences": "[" * 100_000}, "suppress_sequences"),
    ({"end_token": "[1.5]"}, "end_token"),
    ({"beam_sise": 4}, 'did you mean "beam_size"'),
    ({"": 1}, "unknown parameter"),
    ({"x" * 10_000: 1}, "unknown parameter"),
    ({"compute_type": "int8"}, "compute_type"),
    ({"inter_threads": 64}, "inter_threads"),
    ({"max_beam_size": 1000}, "max_beam_size"),
    ({"max_input_length": 100_000}, "max_input_length"),
    ({"model_path": "/etc"}, "model_path"),
]


@pytest.mark.parametrize(("options", "named"), DEADLY + REFUSED + BY_ROW + MALFORMED, ids=repr)
def test_refused(connection: Connection, options: dict[str, Any], named: str) -> None:
    assert named in connection.refusal(MODEL, [ROW], [PREFIX], **options)


@pytest.mark.parametrize(("options", "named"), DEADLY + REFUSED, ids=repr)
def test_refused_in_the_config(
    load_failure: LoadFailure, options: dict[str, Any], named: str
) -> None:
    """As a model's default they fail the load, not the first request."""
    assert named in load_failure(configs.full(**options))


def test_a_vocabulary_longer_than_the_embedding_table(
    load_failure: LoadFailure, longer_vocabulary: Any
) -> None:
    """CTranslate2 loads it, and dies when such a token is used."""
    assert "vocabulary" in load_failure(configs.full(), engine_model=longer_vocabulary)


def test_scores_asked_of_greedy_search_with_coverage_penalty(connection: Connection) -> None:
    """Asking for the output SCORES must not open the way to the crash."""
    message = connection.refusal(
        MODEL, [ROW], [PREFIX], outputs=["SCORES"], beam_size=1, coverage_penalty=0.2
    )
    assert "coverage_penalty" in message


@pytest.mark.parametrize("name", ["end_token", "suppress_sequences"])
def test_a_refusal_shows_a_huge_token_in_part(connection: Connection, name: str) -> None:
    """A status of more than 16 KiB does not reach a gRPC client: it hears of a lost stream."""
    token = json.dumps("x" * 60_000)
    value = f"[{token}]" if name == "end_token" else f"[[{token}]]"
    message = connection.refusal(MODEL, [ROW], [PREFIX], **{name: value})
    assert "is not in the target vocabulary" in message
    assert len(message) < 300
