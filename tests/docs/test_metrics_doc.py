# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md is what the table says, and the table keeps Prometheus' customs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import metrics_doc
from ct2_triton import _core

UNITS = (
    "_seconds",
    "_bytes",
    "_rows",
    "_tokens",
    "_threads",
    "_total",
    "_loop",
    "_refused",
    "_lost",
)


def test_the_page_is_up_to_date() -> None:
    assert metrics_doc.main(["--check"]) == 0


def test_a_page_that_differs_fails_the_check_and_is_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    assert metrics_doc.main(["--check", "--file", str(page)]) == 1
    page.write_text(metrics_doc.PAGE.read_text(encoding="utf-8") + "x", encoding="utf-8")
    assert metrics_doc.main(["--check", "--file", str(page)]) == 1
    assert "page.md is out of date: run tools/metrics_doc.py" in capsys.readouterr().err
    assert metrics_doc.main(["--file", str(page)]) == 0
    assert page.read_bytes() == metrics_doc.PAGE.read_bytes()


def test_names_have_the_prefix_their_unit_and_total_on_counters_alone() -> None:
    metrics = _core.metrics()
    names = [metric["name"] for metric in metrics]
    assert len(set(names)) == len(names) > 30
    for metric in metrics:
        assert re.fullmatch(r"ct2_[a-z_]+", metric["name"])
        assert metric["name"].endswith(UNITS)
        assert metric["name"].endswith("_total") == (metric["kind"] == "counter")
        assert metric["help"].endswith(".")
        if metric["unit"] in {"seconds", "bytes"}:
            assert metric["unit"] in metric["name"]


def test_what_the_page_asks_names_metrics_of_the_table() -> None:
    shown = re.findall(r"\bct2_[a-z_]+", metrics_doc.PAGE.read_text(encoding="utf-8"))
    names = {metric["name"] for metric in _core.metrics()}
    assert {re.sub(r"_bucket$", "", name) for name in shown} - names == set()
