# SPDX-License-Identifier: Apache-2.0
"""The report of a run in Markdown, and tables and progress in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.tables import Table, full_tables, warnings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from ct2_triton.bench.record import Run
    from ct2_triton.bench.tables import Table

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


_FILE_WIDTH = 120


def make_console() -> Console:
    """Open the terminal, or a file of fixed width; raises BenchError if rich is not installed."""
    try:
        from rich.console import Console
    except ImportError as error:
        raise BenchError("the extra is not installed: pip install 'ct2-triton[bench]'") from error
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def rich_table(table: Table) -> object:
    """Make a table for the terminal; its cells are text, not markup."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD)
    shown.add_column("", overflow="fold")
    for name in table.header[1:]:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(escape, row))
    return shown
