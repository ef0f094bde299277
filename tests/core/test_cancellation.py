# SPDX-License-Identifier: Apache-2.0
"""What becomes of rows whose client has gone. Counted in steps, not in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END
from ct2_triton import _core

ROWS = [[300, 50 + i, 60, END] for i in range(4)]
ENDLESS = {"max_decoding_length": 120, "min_decoding_length": 120}


@pytest.mark.parametrize("asked", [1, 2, 17, 100])
def test_a_running_greedy_row_of_a_call_stops_at_the_next_step(
    engine_model: Path, asked: int
) -> None:
    """The worker asks once before the call, then once in each step."""
    translator = _core.Translator(str(engine_model), {"decoding": "calls"})
    answer = translator.translate(ROWS[:1], None, {"beam_size": 1, **ENDLESS}, cancel_after=asked)
    assert len(answer[0][0]["ids"]) == asked


def test_all_running_rows_of_a_request_stop(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), {"inter_threads": "1", "decoding": "calls"})
    answers = translator.translate(ROWS, None, {"beam_size": 1, **ENDLESS}, cancel_after=40)
    assert all(len(answer[0]["ids"]) <= 40 for answer in answers)


@pytest.mark.parametrize("asked", [1, 2, 17, 100])
def test_a_row_of_a_loop_leaves_at_the_next_step(engine_model: Path, asked: int) -> None:
    """The loop asks once before the row is admitted, then once before each step but the first."""
    translator = _core.Translator(str(engine_model), {"inter_threads": "1", "decoding": "loop"})
    with pytest.raises(_core.Error, match="cancelled while it ran"):
        translator.translate(ROWS[:1], None, {"beam_size": 1, **ENDLESS}, cancel_after=asked)
    assert translator.loops[0]["steps"] == asked


@pytest.mark.parametrize("asked", [1, 17])
def test_a_beam_search_leaves_its_loop_at_the_next_step(engine_model: Path, asked: int) -> None:
    translator = _core.Translator(str(engine_model), {"inter_threads": "1", "decoding": "loop"})
    with pytest.raises(_core.Error, match="cancelled while it ran"):
        translator.translate(ROWS[:1], None, {"beam_size": 8, **ENDLESS}, cancel_after=asked)
    assert translator.loops[0]["steps"] == asked
    assert translator.translate(ROWS[:1], None, {"beam_size": 8, "max_decoding_length": 5})


def test_a_beam_search_of_a_call_goes_on_to_its_end(engine_model: Path) -> None:
    """CTranslate2 cannot be asked to stop it."""
    translator = _core.Translator(str(engine_model), {"decoding": "calls"})
    answer = translator.translate(ROWS[:1], None, {"beam_size": 2, **ENDLESS}, cancel_after=1)
    assert len(answer[0][0]["ids"]) == 120


@pytest.mark.parametrize("beams", [1, 4])
def test_a_waiting_row_is_never_run(translator: Any, beams: int) -> None:
    calls = len(translator.calls)
    with pytest.raises(_core.Error, match="cancelled while it waited"):
        translator.translate(ROWS, None, {"beam_size": beams, **ENDLESS}, cancel_after=0)
    assert len(translator.calls) == calls
