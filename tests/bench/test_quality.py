# SPDX-License-Identifier: Apache-2.0
"""`ct2-bench quality`: verdicts and scores of the demo model's translations."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.test_command import bench
from ct2_triton.bench.quality import scored_language, scores, verdict_table
from ct2_triton.client import Hypothesis, Translation, Verdict
from ct2_triton.prepared_model import Language

LINES = ["The ticket office opens at 5:45.", "Goal goal goal goal goal goal 77 goal!"]


@pytest.mark.server
def test_a_text_is_judged_and_scored(tmp_path: Path) -> None:
    (tmp_path / "en").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "de").write_text("Der Fahrkartenschalter öffnet um 5:45 Uhr.\nTor!\n")
    options = ["--reference", "de", "--from", "en", "--to", "de", "--output", "out"]
    result = bench(["quality", "demo", "--text", "en", *options], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "verdicts on 2 translations" in result.stdout
    [any_flag] = [line.split() for line in result.stdout.splitlines() if "any flag" in line]
    assert any_flag == ["any", "flag", "1", "50.00", "%"]
    assert "chrF2" in result.stdout
    assert "BLEU" in result.stdout
    written = (tmp_path / "out").read_text().splitlines()
    assert (len(written), written[0]) == (2, "Der Fahrkartenschalter öffnet um 5:45 Uhr.")


def test_flags_are_counted() -> None:
    verdicts = [
        Verdict(0.2, ("values", "length")),
        Verdict(0.4, ("values",), ("unsure",)),
        Verdict(0.9, (), ("unsure",)),
    ]
    rows = [Translation("", None, None, (Hypothesis("", verdict=one),)) for one in verdicts]
    table = verdict_table(rows)
    assert table.title == "verdicts on 3 translations"
    assert table.rows == [
        ["any flag", "2", "66.67 %", ""],
        ["length", "1", "33.33 %", ""],
        ["unsure", "0", "0.00 %", "2"],
        ["values", "2", "66.67 %", ""],
    ]


@pytest.mark.parametrize(
    ("code", "tokenizer"),
    [("zho_Hans", "zh"), ("zh", "zh"), ("jpn_Jpan", "ja"), ("ko_KR", "ko"), ("deu_Latn", "13a")],
)
def test_words_are_cut_as_the_language_needs_it(code: str, tokenizer: str) -> None:
    language = Language(code)
    text = ["他昨天买了三本书。"]
    *_, (_, _, how) = scores(text, text, scored_language(language))
    assert f"|tok:{tokenizer}" in how or (tokenizer in {"ja", "ko"} and "|tok:char" in how)
    assert scored_language(None) == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "absent"], "cannot read absent: No such file"),
        (["--text", "latin"], "cannot read latin: it is not UTF-8"),
        (["--text", "two", "--reference", "one"], "two has 2 lines and one has 1"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "one").write_text("A line.\n")
    (tmp_path / "two").write_text("A line.\nAnother.\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    result = bench(["quality", "demo", *options], tmp_path)
    assert result.returncode == 1
    [line] = result.stderr.strip().splitlines()
    assert message in line
