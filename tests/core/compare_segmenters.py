# SPDX-License-Identifier: Apache-2.0
"""Prints how this project and `sentencex` cut the hard texts and the clean ones of the tests.

pip install sentencex
PYTHONPATH=tests python tests/core/compare_segmenters.py
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import sentencex

from core.hard_texts import HARD_TEXTS
from ct2_triton import _core

DATA = Path(__file__).resolve().parent / "data"
Segmenter = Callable[[str, str], list[str]]


def ours(language: str, text: str) -> list[str]:
    """Cuts as the text front does."""
    data = text.encode()
    return [data[begin:end].decode() for begin, end in _core.segment(data, language)]


def theirs(language: str, text: str) -> list[str]:
    """Cuts with sentencex."""
    return [piece for part in sentencex.segment(language, text) if (piece := part.strip())]


def texts() -> dict[str, list[tuple[str, str, list[str]]]]:
    """Gives language, text and its sentences, for each kind of text."""
    hard = [(language, text.replace("|", ""), text.split("|")) for language, text in HARD_TEXTS]
    declaration = json.loads((DATA / "udhr_sentences.json").read_text(encoding="utf-8"))
    clean = [
        (language, ("" if language in ("cmn", "jpn") else " ").join(sentences), sentences)
        for language, sentences in declaration.items()
    ]
    return {"hard": hard, "clean": clean}


def verdict(pieces: list[str], wanted: list[str]) -> str:
    """Tells whether a text is cut right, too often or too seldom."""
    if pieces == wanted:
        return "right"
    return "too often" if len(pieces) > len(wanted) else "too seldom or elsewhere"


def main() -> None:
    """Prints a line for each segmenter and kind of text."""
    for name, cut in (("ours", ours), ("sentencex", theirs)):
        for kind, all_texts in texts().items():
            verdicts = Counter(
                verdict(cut(language, text), [piece.strip() for piece in wanted])
                for language, text, wanted in all_texts
            )
            sys.stdout.write(f"{name}, {kind} texts: {dict(verdicts)}\n")


if __name__ == "__main__":
    main()
