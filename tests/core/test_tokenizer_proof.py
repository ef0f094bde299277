# SPDX-License-Identifier: Apache-2.0
"""benchmarks/prove_tokenizers.py on a few lines: it explains what differs and finds a fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tokenizer_lines
from prove_tokenizers import Subject, compare, refused, with_added_tokens
from support.tiny import tiny_checkpoint
from tiny_corpus import sentences
from tokenizer_causes import UNEXPLAINED

PLAIN = list(sentences(150, seed=6))
LINES = tokenizer_lines.corpus(PLAIN, 400)


@pytest.mark.parametrize("lines", [LINES[::4], LINES], ids=["few", "many"])
@pytest.mark.parametrize("family", ["nllb", "m2m100", "marian", "t5", "madlad"])
def test_every_difference_has_a_cause(family: str, lines: list[str], tmp_path: Path) -> None:
    subject = Subject(family, tiny_checkpoint(family), tmp_path)
    references = subject.references()
    assert len(references) == {"nllb": 5, "t5": 5}.get(family, 3)
    differ = False
    for reference in references:
        found = compare(subject, reference, lines)
        assert found.unexplained == 0, (reference.name, found.examples)
        if reference.name == "SentencePiece":
            assert sum(found.texts.values()) == 0
        differ |= bool(found.rows)
    assert differ


def test_added_tokens_have_a_proof(tmp_path: Path) -> None:
    checkpoint = with_added_tokens(tiny_checkpoint("nllb"), tmp_path / "checkpoint")
    subject = Subject("nllb+", checkpoint, tmp_path)
    lines = tokenizer_lines.with_tokens(LINES)
    slow, fast = (compare(subject, entry, lines) for entry in subject.references())
    assert (slow.unexplained, fast.unexplained) == (0, 0)
    assert sum(slow.rows.values()) > 2 * sum(fast.rows.values()) > 0


def test_a_fault_is_found(tmp_path: Path) -> None:
    subject = Subject("nllb", tiny_checkpoint("nllb"), tmp_path)
    right = subject.references()[0]
    decode = right.decode
    assert decode is not None
    wrong = replace(
        right,
        encode=lambda text: list(right.encode(text))[::-1],
        decode=lambda ids: decode(ids[1:]),
    )
    found = compare(subject, wrong, PLAIN)
    assert found.rows[UNEXPLAINED] == len(PLAIN)
    assert found.texts[UNEXPLAINED] > len(PLAIN) / 2


def test_lines_are_many_kinds_and_the_same_each_time() -> None:
    assert len(set(LINES)) == len(LINES) == 400
    assert tokenizer_lines.corpus(PLAIN, 400) == LINES
    text = "".join(LINES)
    for part in ("\u200d", "\u3000", "\u0301", "\0", "</s>", "ﬁ", "a" * 1, "日本", "\x85"):
        assert part in text
    assert max(map(len, LINES)) >= 3000


def test_lines_of_bad_utf8_are_refused_at_the_right_byte(tmp_path: Path) -> None:
    subject = Subject("nllb", tiny_checkpoint("nllb"), tmp_path)
    lines = tokenizer_lines.broken(PLAIN, 100, seed=2)
    assert refused(subject, lines) == 100
    assert refused(subject, [b"this is UTF-8"]) == 0
