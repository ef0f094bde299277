# SPDX-License-Identifier: Apache-2.0
"""Plots of a run: throughput and latency against load, one for each kind of scenario."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ct2_triton.bench.figures import Spread, over_rounds
from ct2_triton.bench.report import RATE, TAIL

if TYPE_CHECKING:
    from pathlib import Path

    from ct2_triton.bench.record import Run, ScenarioRecord

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
            _line(axes, points, contender, style)
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


def _line(axes: Any, points: list[tuple[int, Spread]], label: str, style: dict[str, str]) -> None:  # noqa: ANN401
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
