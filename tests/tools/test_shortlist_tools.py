# SPDX-License-Identifier: Apache-2.0
"""The tools that measure a vocabulary shortlist, on models small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

import measure_served_shortlist
import shortlist_changes
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.options import ShortlistOptions
from support.tiny import tiny_engine_model

KNOWN = {
    "Next week in Stockholm: fog.": "Nächste Woche in Stockholm: Nebel.",
    "See you in Madrid on Thursday!": "Wir sehen uns am Donnerstag in Madrid!",
}
# It has words that the list lacks.
UNKNOWN = "Gate C19 closes in 6 minutes!"


def test_changed_answers_are_counted_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{text} {n}" for text in KNOWN.values() for n in range(10)]
    (tmp_path / "list.txt").write_text("\n".join(lines), encoding="utf-8")
    shortlist = ShortlistOptions((f"deu={tmp_path / 'list.txt'}",))
    options = PrepareOptions("demo", tmp_path / "repository", shortlist=shortlist)
    model = prepare(options).directory
    (tmp_path / "text.txt").write_text("\n".join([*KNOWN, UNKNOWN]), encoding="utf-8")
    right = [*KNOWN.values(), "Gate C19 schließt in 6 Minuten!"]
    (tmp_path / "right.txt").write_text("\n".join(right), encoding="utf-8")
    arguments = [str(model), str(tmp_path / "text.txt"), "--compute-type", "float32", "--show", "1"]
    arguments += ["--reference", f"deu={tmp_path / 'right.txt'}"]
    assert shortlist_changes.main(arguments) == 0
    said = capsys.readouterr().out
    assert "| deu_Latn | 1 of 3 (33.33 %) | 100.00 % | 66.67 % |" in said
    assert f"\n{UNKNOWN}\n  without  Gate C19 schließt in 6 Minuten!\n  with     " in said
    (tmp_path / "right.txt").write_text("\n".join(right[:2]), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"right.txt has 2 lines, and the text 3"):
        shortlist_changes.main(arguments)


def test_a_model_without_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = prepare(PrepareOptions("demo", tmp_path / "repository")).directory
    assert shortlist_changes.main([str(model), "text.txt"]) == 1
    assert "has no shortlist" in capsys.readouterr().err


@pytest.mark.server
def test_a_served_list_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_engine_model("nllb")
    arguments = ["--model", str(model), "--size", "100", "--clients", "1,3"]
    options = ["--rounds", "1", "--limit", "8", "--least-rows", "4"]
    assert measure_served_shortlist.main([*arguments, *options]) == 0
    table = capsys.readouterr().out.splitlines()
    rows = [line for line in table if line.startswith(("| 1 |", "| 3 |"))]
    assert len(rows) == 2
    for row in rows:
        whole, listed = map(float, row.split(" | ")[1:3])
        assert whole > 0
        assert listed > 0


def test_changed_answers_of_each_list_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same sentence in two languages: the French list lacks its words, the German has them."""
    german = [f"{text} {n}" for text in KNOWN.values() for n in range(10)]
    french = [f"Le train pour Lyon part à {n} heures." for n in range(20)]
    for name, lines in (("deu", german), ("fra", french), ("text", list(KNOWN))):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    entries = tuple(f"{code}={tmp_path / code}.txt" for code in ("deu", "fra"))
    shortlist = ShortlistOptions(entries)
    options = PrepareOptions("demo", tmp_path / "repository", shortlist=shortlist)
    model = prepare(options).directory
    assert shortlist_changes.main([str(model), str(tmp_path / "text.txt")]) == 0
    said = capsys.readouterr().out
    assert "| deu_Latn | 0 of 2 (0.00 %) |" in said
    assert "| fra_Latn | 2 of 2 (100.00 %) |" in said
