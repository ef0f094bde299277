# SPDX-License-Identifier: Apache-2.0
"""The page that the proof of the tokenizers writes."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import tokenizer_causes

if TYPE_CHECKING:
    from prove_tokenizers import Comparison, Speed

PAGE = Path(__file__).resolve().parents[1] / "benchmarks" / "tokenizers.md"

_MARK = "<!-- From here on written by benchmarks/prove_tokenizers.py. -->\n"


def page(
    comparisons: Sequence[Comparison],
    speeds: Sequence[Speed],
    refusals: Sequence[tuple[str, int, int]],
    lines: int,
) -> str:
    """Writes what follows the mark of the page.

    Args:
        comparisons: What was compared.
        speeds: What was timed.
        refusals: Family, lines of bad UTF-8 refused at the right byte, and number of such lines.
        lines: Number of different lines for each family.

    Returns:
        Its text.
    """
    packages = ("sentencepiece", "transformers", "tokenizers")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    right, total = (sum(entry[i] for entry in refusals) for i in (1, 2))
    parts = [
        f"{lines:,} different lines a family: three quarters are paragraphs of the Declaration, "
        "the rest have emoji, odd spaces,\ncontrol and combining characters, compatibility forms, "
        f"special tokens, very long words.\nThe versions are {versions}.\n",
        _table(
            ("family", "reference", "lines", "rows that differ", "of these, no cause", "texts"),
            (_compared(entry) for entry in comparisons),
        ),
        f"\nOf {total:,} further lines that are no UTF-8, {right:,} were refused with the right "
        "offset.\n\n### Why rows differ\n",
        _causes(comparisons),
        "\n## Speed\n\nMicroseconds of processor time a line, one thread, median of 7 rounds in "
        f"turns; {_processor()}, Python {platform.python_version()}.\nThe factor is the time of "
        "transformers' `encode` by ours. From Python, a list of numbers is made too.\n",
        _table(
            (
                "what", "bytes a line", "ours, C++", "ours, Python", "`encode`",
                "`tokenizer(text)`", "factor, C++", "factor, Python",
            ),
            (_timed(entry) for entry in speeds),
        ),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def write(text: str) -> None:
    """Replaces the text after the mark of the page."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    PAGE.write_text(head + mark + "\n" + text, encoding="utf-8")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _compared(entry: Comparison) -> tuple[str, ...]:
    rows, texts = sum(entry.rows.values()), sum(entry.texts.values())
    without = entry.rows[tokenizer_causes.UNEXPLAINED]
    counts = (f"{entry.lines:,}", f"{rows:,}", str(without), str(texts))
    return (entry.family, entry.reference, *counts)


def _causes(comparisons: Sequence[Comparison]) -> str:
    meanings = {cause.name: cause.meaning for cause in tokenizer_causes.causes(["</s>"])}
    meanings[tokenizer_causes.TIE] = (
        "Two ways to split have the same sum of scores (a unigram model), and sums are rounded in "
        "another order. The text of both is the same."
    )
    rows = []
    for name, meaning in meanings.items():
        found: Counter[str] = Counter()
        for entry in comparisons:
            found[entry.reference] += entry.rows[name]
        where = "; ".join(f"{reference}: {count:,}" for reference, count in found.items() if count)
        rows.append((name, meaning, where or "none"))
    return _table(("cause", "what happens", "rows, all families"), rows)


def _timed(entry: Speed) -> tuple[str, ...]:
    name = f"{entry.what} ({entry.kind})"
    times = (f"{value:.1f}" for value in entry.microseconds)
    return (name, f"{entry.bytes:.0f}", *times, *(f"{ratio:.1f}" for ratio in entry.ratios))


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
