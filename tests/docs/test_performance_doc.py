# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/performance.md have the numbers of the newest reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import readme_figure

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
REPORTS = ROOT / "benchmarks" / "reports"


def _shown(processor: str, model: str) -> dict[int, list[float]]:
    """Sentences/s, p50, p95, ratio by clients, as the page has them for a model."""
    section = PAGE.split(f"\n## {processor}\n")[1].split("\n## ")[0]
    found: dict[int, list[float]] = {}
    current = model
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = [cell.replace(",", "") for cell in cells]
        if processor == "AMD EPYC" and len(cells) == 7:
            current = cells[0].split(",")[0] or current
            numbers = numbers[1:]
        if current == model and re.fullmatch(r"\d+", numbers[0]) and len(cells) >= 6:
            found[int(numbers[0])] = [float(number) for number in numbers[1:5]]
    return found


def _reported(report: Path, contender: str, clients: int) -> list[float]:
    section = report.read_text(encoding="utf-8").split(f"\n## single:{clients}\n")[1]
    (line,) = re.findall(rf"^\| {contender} \| (.*)\|$", section.split("\nBatches")[0], re.M)
    cells = [cell.strip().split(" ")[0].replace(",", "") for cell in line.split("|")]
    return [float(cells[at]) for at in (2, 6, 7, 0)]


@pytest.mark.parametrize(
    ("processor", "model", "folder", "contender"),
    [
        ("AMD EPYC", "transformer-base", "amd-epyc/transformer-base/report.md", "ct2-triton-int8"),
        ("AMD EPYC", "opus-mt", "amd-epyc/opus-mt/report.md", "ct2-triton-int8"),
        ("AMD EPYC", "m2m100-418m", "amd-epyc/m2m100-418m/report.md", "ct2-triton-int8"),
        ("AMD EPYC", "nllb-600m", "amd-epyc/nllb-600m/report.md", "ct2-triton-int8"),
        ("Intel Xeon", "", "intel-xeon/transformer-base/report.md", "ct2-triton-int8"),
        ("NVIDIA H100", "", "nvidia-h100/calls.md", "ct2-triton-float16"),
    ],
)
def test_the_page_has_the_numbers_of_the_report(
    processor: str, model: str, folder: str, contender: str
) -> None:
    shown = _shown(processor, model)
    assert len(shown) >= 3
    for clients, numbers in shown.items():
        reported = _reported(REPORTS / folder, contender, clients)
        assert numbers == pytest.approx(reported, rel=0.03), clients


def test_other_servers_are_those_of_the_figure_and_of_the_readme() -> None:
    points = readme_figure.read_points(readme_figure.REPORT.read_text(encoding="utf-8"))
    table = PAGE.split("\n| server | ")[1].split("\n\n")[0].splitlines()[2:]
    shown = [[float(cell) for cell in line.strip("|").split("|")[1:]] for line in table]
    assert shown == [[point.rate for point in line] for line in points.values()]
    readme = re.findall(r"[\d.,]*\d", (ROOT / "README.md").read_text(encoding="utf-8"))
    ours, theirs = (line[-1] for line in list(points.values())[:2])
    assert {f"{number:.0f}" for number in (ours.rate, ours.p95_ms, theirs.rate)} <= set(readme)


def test_the_library_in_process_is_compared_on_the_gpu() -> None:
    report = REPORTS / "nvidia-h100" / "calls.md"
    section = PAGE.split("\n## NVIDIA H100\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \|.*\| ([\d.]+) \|$", section, re.M)
    assert len(rows) == 4
    for clients, shown in rows:
        ours = _reported(report, "ct2-triton-float16", int(clients))[3]
        library = _ratio(report, "ctranslate2-float16", int(clients))
        assert float(shown) == pytest.approx(ours / library, abs=0.01), clients


def _ratio(report: Path, contender: str, clients: int) -> float:
    section = report.read_text(encoding="utf-8").split(f"\n## single:{clients}\n")[1]
    (ratio,) = re.findall(rf"^\| {contender} \| ([\d.]+) \|", section.split("\nBatches")[0], re.M)
    return float(ratio)
