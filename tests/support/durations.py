# SPDX-License-Identifier: Apache-2.0
"""How long the tests of each folder took, in build/durations.tsv."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from support.checkout import ROOT

FILE = ROOT / "build" / "durations.tsv"


def write(reports: Mapping[str, Iterable[Any]]) -> None:
    """Write the table of a run: seconds, with fixtures, and cases, the slowest folder first."""
    seconds: dict[str, float] = defaultdict(float)
    cases: Counter[str] = Counter()
    for report in (one for some in reports.values() for one in some):
        if isinstance(report, pytest.TestReport):
            folder = report.nodeid.partition("::")[0].rpartition("/")[0]
            seconds[folder] += report.duration
            cases[folder] += report.when == "call"
    slowest = sorted(seconds.items(), key=lambda item: -item[1])
    FILE.parent.mkdir(exist_ok=True)
    lines = [f"{taken:.1f}\t{cases[folder]}\t{folder}\n" for folder, taken in slowest]
    FILE.write_text("seconds\tcases\tfolder\n" + "".join(lines), encoding="utf-8")
