# SPDX-License-Identifier: Apache-2.0
"""The faults that mutants are drawn from."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from mutation.areas import AREAS
from mutation.operators import faults

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = json.loads(Path(__file__).with_name("mutants.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("suffix", "line", "expected"),
    [
        (".cc", "  if (rows < most && !ends_) return;", [
            ("comparison", "  if (rows <= most && !ends_) return;"),
            ("logic", "  if (rows < most || !ends_) return;"),
            ("negation", "  if (!(rows < most && !ends_)) return;"),
        ]),
        (".cc", "  queue_.Close();  // a + 1", [("lost call", "  ;")]),
        (".cc", "      std::min(most, rows),", []),
        (".cc", '  throw Error("a < b");', []),
        (".cc", "  // rows < most", []),
        (".cc", "#include <vector>", []),
        (".cc", "  return n - 1;", [
            ("constant", "  return n - 2;"),
            ("off by one", "  return n;"),
        ]),
        (".py", "    if not rows and more:  # both", [
            ("logic", "    if not rows or more:  # both"),
            ("logic", "    if rows and more:  # both"),
            ("negation", "    if not (not rows and more):  # both"),
        ]),
        (".py", "        await link.close()", [("lost call", "        pass")]),
        (".py", "        return True", [("constant", "        return False")]),
        (".py", "    return 'a and b'", []),
    ],
)  # fmt: skip
def test_faults_of_a_line(suffix: str, line: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(faults(line, suffix)) == sorted(expected)


def test_the_list_has_60_faults_of_these_operators() -> None:
    assert len(MUTANTS) == 60
    assert len({(one["file"], one["number"]) for one in MUTANTS}) == 60
    for one in random.Random(1).sample(MUTANTS, 20):
        of_line = list(faults(one["line"], Path(one["file"]).suffix))
        assert (one["operator"], one["fault"]) in of_line


def test_the_files_and_the_tests_of_each_fault_are_there() -> None:
    for one in MUTANTS:
        assert (ROOT / one["file"]).is_file()
        for pattern in AREAS[one["area"]].tests:
            assert list((ROOT / "tests").glob(pattern)), pattern
