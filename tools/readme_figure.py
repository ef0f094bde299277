# SPDX-License-Identifier: Apache-2.0
"""Draw README's figure from a report of ct2-bench in the repository.

The last line of the figure says when the report was made, and on what.

python tools/readme_figure.py
python tools/readme_figure.py --report results/report.md --output figure.svg
"""

from __future__ import annotations

import argparse
import re
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "benchmarks" / "reports" / "amd-epyc" / "servers" / "report.md"
FIGURE = ROOT / "docs" / "images" / "throughput.svg"
CLIENTS = (1, 4, 16, 48)
OURS = "ct2-triton-int8"
NAMES = {
    OURS: "ct2-triton, int8",
    "python-ctranslate2-int8": "Python backend,\nCTranslate2, int8",
    "fastapi-transformers-tuned-int8": "FastAPI,\ntransformers, int8",
    "python-transformers-float32": "Python backend,\ntransformers, float32",
}
QUIET = "#8a8f98"
STRONG = "#0b6bcb"


class Point(NamedTuple):
    """What a contender reached with some clients, as medians of the rounds.

    Attributes:
        clients: Number of clients.
        rate: Sentences per second.
        p95_ms: The 95th percentile of the latency in milliseconds.
    """

    clients: int
    rate: float
    p95_ms: float


def read_points(report: str) -> dict[str, list[Point]]:
    """Read the tables of the scenarios `single:N`.

    Args:
        report: The text of a report.md.

    Returns:
        For each contender of the figure its points, by clients.
    """
    found: dict[str, list[Point]] = {name: [] for name in NAMES}
    for clients in CLIENTS:
        section = re.split(r"^## ", report.split(f"\n## single:{clients}\n")[1], flags=re.M)[0]
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in section.split("\n\nBatches")[0].splitlines()
            if line.startswith("|")
        ]
        rate, p95 = (rows[0].index(column) for column in ("sentences/s", "p95 ms"))
        for row in rows[2:]:
            if row[0] in found:
                found[row[0]].append(Point(clients, _median(row[rate]), _median(row[p95])))
    return found


def read_conditions(report: str) -> str:
    """Return when a report was made, with which model, on what, and beside which other work.

    Args:
        report: The text of a report.md.

    Returns:
        One line.
    """
    began = datetime.fromisoformat(_found(r"^# Comparison of (\S+)$", report))
    fields = (
        _found(rf"^- {name}: (\S[^(\n]*)", report) for name in ("model", "cores", "processor")
    )
    model, cores, processor = (field.strip() for field in fields)
    other = re.search(r"^- \*\*(other work kept up to [\d.]+ cores busy)", report, re.MULTILINE)
    day = f"{began.day} {began:%B %Y}"
    return f"ct2-bench, {day}: {model}, {cores} cores of {processor}" + (
        f"; {other[1]}" if other else ""
    )


def draw(points: dict[str, list[Point]], path: Path, conditions: str) -> None:
    """Draw throughput and latency side by side; each line has its name at its end.

    Args:
        points: What `read_points` gives.
        path: The file to write, an SVG.
        conditions: What `read_conditions` gives.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings = {"svg.fonttype": "none", "svg.hashsalt": "ct2-triton", "font.size": 10}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(10, 4.1), layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        rates, tails = figure.subplots(1, 2)
        for name, line in points.items():
            style = {"color": STRONG, "linewidth": 3} if name == OURS else {"color": QUIET}
            clients = [str(point.clients) for point in line]
            rates.plot(clients, [point.rate for point in line], marker="o", **style)
            tails.plot(clients, [point.p95_ms for point in line], marker="o", **style)
        rates.set(title="sentences per second, higher is better", xlabel="clients", ylim=0)
        tails.set(title="p95 latency in ms, lower is better", xlabel="clients", yscale="log")
        tails.set_yticks([20, 50, 100, 200, 500, 1000, 2000, 5000], minor=False)
        tails.yaxis.set_major_formatter("{x:,.0f}")
        tails.yaxis.set_minor_formatter("")
        _name_lines(rates, {name: line[-1].rate for name, line in points.items()}, apart=0.12)
        _name_lines(tails, {name: line[-1].p95_ms for name, line in points.items()}, apart=0.12)
        for axes in (rates, tails):
            axes.grid(axis="y", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        figure.supxlabel(conditions, fontsize=9, color=QUIET)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _name_lines(axes: Any, ends: dict[str, float], apart: float) -> None:  # noqa: ANN401
    """Write names beside the ends of the lines, `apart` of the axes' height from one another."""
    lowest = -1.0
    for name, value in sorted(ends.items(), key=lambda item: item[1]):
        _, height = axes.transAxes.inverted().transform(axes.transData.transform((0, value)))
        lowest = max(height, lowest + apart)
        axes.annotate(
            f"{NAMES[name]}: {value:,.0f}",
            (1, lowest),
            xycoords="axes fraction",
            verticalalignment="center",
            color=STRONG if name == OURS else QUIET,
            fontweight="bold" if name == OURS else "normal",
            annotation_clip=False,
        )


def _median(cell: str) -> float:
    return float(cell.split(" ")[0].replace(",", ""))


def _found(pattern: str, report: str) -> str:
    match = re.search(pattern, report, re.MULTILINE)
    if match is None:
        raise SystemExit(f"the report has no line {pattern}")
    return match[1]


def main() -> int:
    """Draw the figure and print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--output", type=Path, default=FIGURE)
    args = parser.parse_args()
    report = args.report.read_text(encoding="utf-8")
    draw(read_points(report), args.output, read_conditions(report))
    print(args.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
