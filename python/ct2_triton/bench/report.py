# SPDX-License-Identifier: Apache-2.0
"""The report of a run in Markdown with its tables and plots, and the comparison of two runs.

Tables are for the terminal and for the report: ratios first, then medians.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.bench.contenders.base import precision_of
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import Spread, over_rounds, ratios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

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
    "client busy",
    "other CPU",
)
# Of a core: above it, the load generator may be what is measured.
_BUSY_CLIENT = 0.7
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
    """Return warnings about the figures: differing answers, a busy client, a busy machine."""
    found = busy_clients(run)
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


def busy_clients(run: Run) -> list[str]:
    """Return the rounds in which a process of the load generator was too busy."""
    return [
        f"{scenario.name}: {round_.contender}: a process of the load generator was "
        f"{round_.client_busy:.0%} busy in round {round_.number + 1}: use more --client-processes"
        for scenario in run.scenarios
        for round_ in scenario.rounds
        if round_.client_busy > _BUSY_CLIENT
    ]


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
    reference = scenario.answers_of[precision_of(contender)]
    rounds = scenario.of(contender)
    different = sum(round_.different_rows for round_ in rounds)
    compared = sum(round_.compared_rows for round_ in rounds)
    if not different:
        return "its own" if reference == contender else f"{compared} equal to {reference}"
    return f"{different} of {compared} differ from {reference}"


_READING = """\
A ratio is that of a contender's round to the baseline's same round; the range goes from the lowest
of the rounds to the highest, also in parentheses. All contenders ran at the same time, each idle
while another had its turn. The load generator runs on the same cores as the servers unless it has
cores of its own, and is not part of `ctranslate2`, which has no server. Rows are sent as token
ids: tokenization is left out for everybody. What each figure means: benchmarks/README.md of
ct2-triton."""


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


_LOADS = {
    "single": "clients",
    "streams": "sessions",
    "poisson": "sentences/s offered",
    "bursts": "sentences a burst",
}
_LINES = ("-", "--", ":")


def write_plots(run: Run, folder: Path) -> list[str]:
    """Write a plot for each kind of scenario."""
    kinds: defaultdict[tuple[str, str], list[ScenarioRecord]] = defaultdict(list)
    for scenario in run.scenarios:
        kind, _, load = scenario.name.partition(":")
        kinds[kind, load.partition("@")[2]].append(scenario)
    names = []
    for (kind, pace), scenarios in kinds.items():
        name = f"{kind}{f'-every-{pace}-s' if pace else ''}.png"
        _draw(scenarios, _LOADS[kind], folder / name)
        names.append(name)
    return names


def _draw(scenarios: list[ScenarioRecord], load: str, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    ordered = sorted(scenarios, key=_amount)
    for axes, name in zip(figure.subplots(1, 2), (RATE, TAIL), strict=True):
        for number, contender in enumerate(ordered[0].contenders()):
            points = _points(ordered, contender, name)
            # Ten colours, then the same with dashed lines.
            style = {"color": f"C{number % 10}", "linestyle": _LINES[number // 10 % len(_LINES)]}
            _plot_line(axes, points, contender, style)
        axes.set(xlabel=load, ylabel=name)
        if name == TAIL:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(ordered)), [f"{_amount(s):g}" for s in ordered])
        axes.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"{scenarios[0].name.partition(':')[0]}: median, lowest and highest round")
    figure.savefig(path, dpi=120)


def _points(scenarios: list[ScenarioRecord], contender: str, name: str) -> list[tuple[int, Spread]]:
    points: list[tuple[int, Spread]] = []
    for position, scenario in enumerate(scenarios):
        rounds = scenario.of(contender)
        if rounds and (spread := over_rounds(rounds).get(name)):
            points.append((position, spread))
    return points


def _plot_line(
    axes: Any,  # noqa: ANN401
    points: list[tuple[int, Spread]],
    label: str,
    style: dict[str, str],
) -> None:
    axes.errorbar(
        [position for position, _ in points],
        [spread.median for _, spread in points],
        yerr=[
            [spread.median - spread.lowest for _, spread in points],
            [spread.highest - spread.median for _, spread in points],
        ],
        marker="o",
        capsize=3,
        label=label,
        **style,
    )


def _amount(scenario: ScenarioRecord) -> float:
    return float(scenario.name.partition(":")[2].partition("@")[0])
