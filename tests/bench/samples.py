# SPDX-License-Identifier: Apache-2.0
"""Runs made by hand, for tests of what is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ct2_triton.bench.contenders import precision_of
from ct2_triton.bench.record import Round, Run, Sample, ScenarioRecord


def sample(
    sentence: int,
    row: int,
    due_s: float = 0.0,
    done_s: float | None = 1.0,
    source: int = 10,
    generated: int = 10,
) -> Sample:
    return Sample(sentence, row, due_s, done_s, source, generated)


def round_of(contender: str, samples: Sequence[Sample], **values: Any) -> Round:
    defaults: dict[str, Any] = {
        "number": 0,
        "wall_s": 1.0,
        "words": 8 * len(samples),
        "cpu_s": 1.0,
        "client_cpu_s": 0.5,
        "other_cpu_s": 0.0,
        "rss_bytes": 2**21,
        "pss_bytes": 2**20,
        "counts": None,
        "compared_rows": len(samples),
    }
    return Round(contender=contender, samples=tuple(samples), **{**defaults, **values})


def run_of(
    rounds: Sequence[Round],
    baseline: str,
    scenario: str = "single:4",
    answers_of: dict[str, str] | None = None,
    **values: Any,
) -> Run:
    defaults: dict[str, Any] = {
        "started": "2026-01-02T03:04:05+00:00",
        "machine": {"cores": "2"},
        "versions": {"ct2-triton": "1"},
        "setup": {"beam": "1"},
        "workload": {"sentences": "4"},
        "contenders": {round_.contender: {"threads": "1"} for round_ in rounds},
    }
    precisions = {precision_of(round_.contender): round_.contender for round_ in rounds}
    record = ScenarioRecord(scenario, "closed loop", 4, answers_of or precisions, tuple(rounds))
    return Run(baseline=baseline, scenarios=(record,), **{**defaults, **values})
