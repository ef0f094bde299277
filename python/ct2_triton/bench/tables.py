# SPDX-License-Identifier: Apache-2.0
"""The tables of a run, for the terminal and for the report: ratios first, then medians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.bench.figures import Spread, over_rounds, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.bench.record import Run, ScenarioRecord

RATE, TAIL = "source tokens/s", "p95 ms"
# An open loop sends all contenders the same rate, so only latencies differ.
_OPEN_LOOP_SIGN = ("@", "poisson")

_BRIEF = ("sentences/s", "p50 ms", TAIL, "PSS MiB")
_TIMES = ("sentences/s", RATE, "generated tokens/s", "words/s", "p50 ms", TAIL, "p99 ms")
_LAST = ("last p50 ms", "last p95 ms", "last p99 ms")
_COSTS = (
    "mean batch",
    "queue ms",
    "compute ms",
    "first token ms",
    "longest gap ms",
    "RSS MiB",
    "PSS MiB",
    "CPU s/1000 source tokens",
    "client CPU s/1000 source tokens",
    "other CPU",
)
# Above the load of an idle system.
_BUSY_CORES = 0.2


@dataclass(frozen=True)
class Table:
    """Text in rows and columns; the first column is a name, the others are right-aligned."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def is_open_loop(scenario: ScenarioRecord) -> bool:
    """Return whether sentences were sent when due, even if earlier ones were not answered."""
    return any(sign in scenario.name for sign in _OPEN_LOOP_SIGN)


def brief_table(run: Run, scenario: ScenarioRecord) -> Table:
    """Make the table that the terminal shows."""
    spreads = {name: over_rounds(scenario.of(name)) for name in scenario.contenders()}
    rows = [
        [name, *_ratio(run, scenario, name), *_medians(values, _BRIEF)]
        for name, values in spreads.items()
    ]
    judged = f"ratios to {_baseline(run, scenario)} in {_judged_by(scenario)}"
    header = ["", "ratio", "range", *_BRIEF]
    return Table(f"{scenario.name}: {_title(scenario)}; {judged}", header, rows)


def full_tables(run: Run, scenario: ScenarioRecord) -> list[Table]:
    """Make the tables of the report: rates and latencies with their spread, costs, answers."""
    spreads = {name: over_rounds(scenario.of(name)) for name in scenario.contenders()}
    present = [name for name in (*_TIMES, *_LAST) if any(name in v for v in spreads.values())]
    times = Table(
        f"{_title(scenario)}. Ratios to `{_baseline(run, scenario)}` in {_judged_by(scenario)}. "
        "Medians and, in parentheses, ranges of the rounds.",
        ["", "ratio", "range", *present],
        [
            [
                name,
                *_ratio(run, scenario, name),
                *(_with_range(values.get(f)) for f in present),
            ]
            for name, values in spreads.items()
        ],
    )
    costs = Table(
        "Batches and costs: medians. Answers: of all rounds.",
        ["", *_COSTS, "answers"],
        [
            [name, *_medians(values, _COSTS), _answers(scenario, name)]
            for name, values in spreads.items()
        ],
    )
    return [times, costs]


def warnings(run: Run) -> list[str]:
    """Return warnings about the figures: differing answers, a busy machine."""
    found = []
    for scenario in run.scenarios:
        for contender in scenario.contenders():
            if any(round_.different_rows for round_ in scenario.of(contender)):
                answers = _answers(scenario, contender)
                found.append(f"{scenario.name}: {contender}: answers, {answers}")
    busy = max(
        round_.other_cpu_s / round_.wall_s
        for scenario in run.scenarios
        for round_ in scenario.rounds
    )
    if busy > _BUSY_CORES:
        found.append(f"other work kept up to {busy:.1f} cores busy: repeat on a quiet machine")
    return found


def number(value: float) -> str:
    """Format a figure with three significant digits, or all digits of its whole part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _title(scenario: ScenarioRecord) -> str:
    return f"{scenario.description}; {scenario.sentences} sentences"


def _judged_by(scenario: ScenarioRecord) -> str:
    return TAIL if is_open_loop(scenario) else RATE


def _baseline(run: Run, scenario: ScenarioRecord) -> str:
    """Return the run's baseline, or the first contender if the baseline skips this scenario."""
    contenders = scenario.contenders()
    return run.baseline if run.baseline in contenders else contenders[0]


def _ratio(run: Run, scenario: ScenarioRecord, contender: str) -> list[str]:
    spread = ratios(scenario, contender, _baseline(run, scenario), _judged_by(scenario))
    return ["-", "-"] if spread is None else [number(spread.median), _range(spread)]


def _medians(values: dict[str, Spread], names: Sequence[str]) -> list[str]:
    return [number(values[name].median) if name in values else "-" for name in names]


def _with_range(spread: Spread | None) -> str:
    return "-" if spread is None else f"{number(spread.median)} ({_range(spread)})"


def _range(spread: Spread) -> str:
    return f"{number(spread.lowest)}..{number(spread.highest)}"


def _answers(scenario: ScenarioRecord, contender: str) -> str:
    reference = scenario.answers_of[contender.rpartition("-")[2]]
    rounds = scenario.of(contender)
    different = sum(round_.different_rows for round_ in rounds)
    compared = sum(round_.compared_rows for round_ in rounds)
    if not different:
        return "its own" if reference == contender else f"{compared} equal to {reference}"
    return f"{different} of {compared} differ from {reference}"
