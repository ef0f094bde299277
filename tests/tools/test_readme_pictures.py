# SPDX-License-Identifier: Apache-2.0
"""README's pictures: the figure says what its report says, the recording what the demo prints."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import readme_figure
import record_demo
from record_demo import Line

COMMENTARY = record_demo.DEMO.with_name("commentary.txt")


def _texts(svg: str) -> list[str]:
    return [
        "".join(element.itertext()).strip()
        for element in ET.fromstring(svg).iter()  # noqa: S314  our own file
        if element.tag.endswith("}text")
    ]


def test_the_figure_has_the_numbers_of_its_report(tmp_path: Path) -> None:
    report = readme_figure.REPORT.read_text(encoding="utf-8")
    points = readme_figure.read_points(report)
    assert list(points) == list(readme_figure.NAMES)
    for name, line in points.items():
        assert [point.clients for point in line] == [1, 4, 16, 48]
        rows = re.findall(rf"^\| {name} \|(.*)$", report, re.MULTILINE)[::2]  # the rest: costs
        cells = [[cell.split()[0].replace(",", "") for cell in row.split("|")[:8]] for row in rows]
        reported = [(float(cell[2]), float(cell[7])) for cell in cells]
        assert [(point.rate, point.p95_ms) for point in line] == reported
    conditions = readme_figure.read_conditions(report)
    readme_figure.draw(points, tmp_path / "new.svg", conditions)
    drawn = _texts((tmp_path / "new.svg").read_text(encoding="utf-8"))
    assert drawn == _texts(readme_figure.FIGURE.read_text(encoding="utf-8"))
    assert conditions in drawn
    assert f"ct2-triton, int8: {points[readme_figure.OURS][-1].rate:,.0f}" in drawn


def test_the_figure_says_when_and_where_its_report_was_made() -> None:
    report = """# Comparison of 2026-11-02T10:41:29+00:00

- **other work kept up to 0.8 cores busy: repeat on a quiet machine**
- model: opus-mt (--shape)
- processor: Some CPU
- cores: 4
"""
    made = "ct2-bench, 2 November 2026: opus-mt, 4 cores of Some CPU"
    other = "other work kept up to 0.8 cores busy"
    assert readme_figure.read_conditions(report) == f"{made}; {other}"
    assert readme_figure.read_conditions(report.replace(other, "")) == made


def test_the_recording_shows_the_demo_of_today() -> None:
    """Its commands, its commentary in six languages, and what was measured."""
    texts = _texts(record_demo.RECORDING.read_text(encoding="utf-8"))
    whole = re.sub(r"\s+", " ", " ".join(texts))
    for line in COMMENTARY.read_text(encoding="utf-8").splitlines()[:20]:
        assert f"> {line} " in whole
    for code in ("deu", "fra", "spa", "ita", "por", "nld"):
        assert sum(text.startswith(f"{code}_Latn ") for text in texts) == 20
    assert "240 lines into 6 languages" in whole
    demo = record_demo.DEMO.read_text(encoding="utf-8")
    assert texts[1].startswith("$ ct2-prepare demo --model-repository ")
    assert '"--model-repository", _short(repository), "--name", MODEL, "--force"' in demo


def test_pauses_are_shortened_and_long_lines_broken() -> None:
    lines = [Line(0, "a"), Line(10, "b " * 60), Line(10.5, "")]
    shown = record_demo.without_long_pauses(lines)
    assert [line.at_s for line in shown] == pytest.approx([0, 1.5, 1.5, 2])
    assert max(len(line.text) for line in shown) <= record_demo.COLUMNS
    assert "".join(line.text for line in shown[1:3]).split() == ["b"] * 60


def test_markup_in_a_line_is_text() -> None:
    svg = record_demo.to_svg([Line(0, "> a <b> & c"), *[Line(n, str(n)) for n in range(1, 30)]])
    assert _texts(svg)[0] == "> a <b> & c"
