# SPDX-License-Identifier: Apache-2.0
"""The report of a run, in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.tables import Table, full_tables, warnings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ct2_triton.bench.record import Run

_READING = """\
A ratio is that of a contender's round to the baseline's same round; the range goes from the lowest
of the rounds to the highest, also in parentheses. All contenders ran at the same time, each idle
while another had its turn. The load generator runs on the same cores as the servers, and is not
part of `ctranslate2`, which has no server. Rows are sent as token ids: tokenization is left out
for everybody. What each figure means: benchmarks/README.md of ct2-triton."""


def markdown(run: Run, plots: Sequence[str]) -> str:
    """Write the report."""
    parts = [f"# Comparison of {run.started}", _READING, f"Baseline: `{run.baseline}`."]
    if notes := warnings(run):
        parts.append("\n".join(f"- **{note}**" for note in notes))
    for scenario in run.scenarios:
        parts.append(f"## {scenario.name}")
        parts.extend(_table(table) for table in full_tables(run, scenario))
    if plots:
        parts += ["## Plots", *(f"![{name}]({name})" for name in plots)]
    parts.append("## What was compared")
    parts.extend(f"**{name}**\n\n{_list(entries)}" for name, entries in run.contenders.items())
    parts.append("## Model, workload, machine, versions")
    parts.append(_list({**run.setup, **run.workload, **run.machine}))
    parts.append(", ".join(f"{name} {value}" for name, value in run.versions.items()))
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    lines = [
        _line(table.header),
        "|---|" + "---:|" * (len(table.header) - 1),
        *(_line(row) for row in table.rows),
    ]
    return f"{table.title}\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(entries: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in entries.items())
