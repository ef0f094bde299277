# SPDX-License-Identifier: Apache-2.0
"""Compare two runs: the effect of a change of the code, the model or the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.figures import over_rounds, ratios
from ct2_triton.bench.tables import RATE, TAIL, Table, number

if TYPE_CHECKING:
    from ct2_triton.bench.figures import Spread
    from ct2_triton.bench.record import Run

_FIGURES = (RATE, TAIL, "PSS MiB")


def compare_runs(first: Run, second: Run) -> list[Table]:
    """Compare the measurements that both runs have."""
    others = {scenario.name: scenario for scenario in second.scenarios}
    tables = []
    for scenario in first.scenarios:
        if scenario.name not in others:
            continue
        other = others[scenario.name]
        rows = []
        for contender in scenario.contenders():
            if not other.of(contender):
                continue
            before = over_rounds(scenario.of(contender))
            after = over_rounds(other.of(contender))
            shared = [name for name in _FIGURES if name in before and name in after]
            rows += [_row(contender, name, before[name], after[name]) for name in shared]
            old = ratios(scenario, contender, first.baseline, RATE)
            new = ratios(other, contender, second.baseline, RATE)
            if first.baseline == second.baseline and old and new and contender != first.baseline:
                rows.append(_row(contender, f"{RATE} / {first.baseline}", old, new))
        header = ["", "figure", "first", "second", "second/first", "rounds apart"]
        tables.append(Table(scenario.name, header, rows))
    return tables


def differences(first: Run, second: Run) -> list[str]:
    """Return other differences between the runs, which could be mistaken for the effect."""
    lines = []
    for part in ("machine", "versions", "setup", "workload"):
        old, new = getattr(first, part), getattr(second, part)
        lines += [
            f"{part}, {name}: {old.get(name, '-')} against {new.get(name, '-')}"
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]
    for name, settings in first.contenders.items():
        if name in second.contenders and settings != second.contenders[name]:
            lines.append(f"settings of {name}: {settings} against {second.contenders[name]}")
    return lines


def _row(contender: str, name: str, old: Spread, new: Spread) -> list[str]:
    apart = old.highest < new.lowest or new.highest < old.lowest
    ratio = number(new.median / old.median) if old.median else "-"
    return [
        contender,
        name,
        number(old.median),
        number(new.median),
        ratio,
        "yes" if apart else "no",
    ]
