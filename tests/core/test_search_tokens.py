# SPDX-License-Identifier: Apache-2.0
"""max_search_tokens: the product of what a request's options multiply stays within the memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END
from ct2_triton import _core

ROW = [[300, 50, 60, END]]
ENDLESS = {"max_decoding_length": 100, "min_decoding_length": 100}


@pytest.mark.parametrize(
    ("options", "hypotheses", "tokens"),
    [
        ({"beam_size": 32, "max_decoding_length": 60}, 32, 60),
        ({"beam_size": 1, "sampling_topk": 5, "num_hypotheses": 32}, 32, 100),
        ({"beam_size": 8, "num_hypotheses": 4, "return_alternatives": True}, 32, 100),
        ({"beam_size": 2, "patience": 16, "replace_unknowns": True}, 32, 100),
        ({"beam_size": 2, "patience": 16, "coverage_penalty": 0.1}, 32, 100),
    ],
    ids=str,
)
def test_a_search_that_is_too_large_is_refused(
    engine_model: Path, options: dict[str, Any], hypotheses: int, tokens: int
) -> None:
    limit = hypotheses * tokens
    options = {"max_decoding_length": 100, **options}
    config = {"max_decoding_length": "9", "max_search_tokens": str(limit - 1)}
    small = _core.Translator(str(engine_model), config)
    with pytest.raises(_core.Error) as raised:
        small.translate(ROW, None, options)
    assert (
        f"row 0: its search may keep {hypotheses} hypotheses of {tokens} tokens, "
        f"{limit} in all, more than the model's max_search_tokens {limit - 1}"
    ) in str(raised.value)
    assert small.translate(ROW, None, {"max_decoding_length": 5})
    large = _core.Translator(str(engine_model), {**config, "max_search_tokens": str(limit)})
    assert large.translate(ROW, None, options)


def test_patience_alone_keeps_no_attention(engine_model: Path) -> None:
    small = _core.Translator(str(engine_model), {"max_search_tokens": "1000"})
    assert small.translate(ROW, None, {"patience": 16, "max_decoding_length": 100})


def test_defaults_that_do_not_fit_fail_the_load(engine_model: Path) -> None:
    config = {"beam_size": "4", "max_decoding_length": "100", "max_search_tokens": "399"}
    with pytest.raises(_core.Error, match="with the model's defaults: its search may keep 4"):
        _core.Translator(str(engine_model), config)


def test_rows_share_calls_within_the_bound(engine_model: Path) -> None:
    """Eight rows of 2 x 100 tokens where 400 are allowed: two a call."""
    config = {"max_search_tokens": "400", "inter_threads": "1", "decoding": "calls"}
    translator = _core.Translator(str(engine_model), config)
    translator.translate([[300, 50 + i, 60, END] for i in range(8)], None, ENDLESS)
    assert max(translator.calls) == 2


def test_the_worst_request_under_the_defaults_is_refused(translator: Any) -> None:
    """1024 hypotheses of the default 256 tokens (here: 128 positions) are 26 GB for NLLB-600M."""
    worst = {"beam_size": 32, "num_hypotheses": 32, "return_alternatives": True}
    with pytest.raises(_core.Error, match="1024 hypotheses of 128 tokens"):
        translator.translate(ROW, None, worst)
