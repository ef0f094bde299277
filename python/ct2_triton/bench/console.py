# SPDX-License-Identifier: Apache-2.0
"""Tables and progress in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.errors import BenchError

if TYPE_CHECKING:
    from rich.console import Console

    from ct2_triton.bench.tables import Table

_FILE_WIDTH = 120


def make_console() -> Console:
    """Open the terminal, or a file of fixed width; BenchError where rich is not installed."""
    try:
        from rich.console import Console
    except ImportError as error:
        raise BenchError("ct2-bench needs its extra: pip install 'ct2-triton[bench]'") from error
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def rich_table(table: Table) -> object:
    """Make a table for the terminal; what its cells hold is text, not markup."""
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
