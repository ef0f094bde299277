# SPDX-License-Identifier: Apache-2.0
"""Holds the backend's alignments against those that the grammar knows.

A sentence and its translation have the same values in their slots. So a token of a value in the
translation comes from that value in the source, whatever the languages do with their order.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train_demo.languages import FLORES, SOURCE, TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from train_demo.templates import Sentence

    Place = tuple[str, int, int]  # of a value: variable, first character, end (exclusive)

LAYERS, HEADS = 2, 4
SHIPPED = Path(__file__).resolve().parents[2] / "python" / "ct2_triton" / "demo_model"


def choices() -> Iterator[tuple[int, list[int]]]:
    """Yield what to compare: layers with all their heads, and single heads."""
    for layer in range(LAYERS):
        yield layer, list(range(HEADS))
        yield from ((layer, [head]) for head in range(HEADS))


def share_right(
    sentences: Sequence[Sentence], layer: int, heads: Sequence[int]
) -> tuple[float, int]:
    """Translate sentences with the shipped model, in int8, and judge the values' tokens.

    Args:
        sentences: Each is translated into one language, in rotation. Those whose translation
            differs from the grammar's are left out.
        layer: Layer of the decoder, from 0.
        heads: Heads of the layer, from 0.

    Returns:
        The share of the tokens of values that come from a token of the same value, 0 to 1, and how
        many tokens that is of.
    """
    from ct2_triton.engine_library import load_core

    options = {"alignment_layer": layer, "alignment_heads": str(list(heads))}
    core = load_core()
    translator = core.Translator(str(SHIPPED / "model"), options)
    pieces = _Pieces()
    rows = [pieces.row(sentence, target) for sentence, target in _pairs(sentences)]
    answers = translator.translate(
        [source for source, _ in rows],
        [prefix for _, prefix in rows],
        {"beam_size": 1, "return_alignments": True},
    )
    right = tokens = 0
    for (sentence, target), (source, _), [answer] in zip(
        _pairs(sentences), rows, answers, strict=True
    ):
        given = [pieces.names[i] for i in answer["ids"][1:]]
        if _text(given) != sentence.texts[target]:
            continue
        values = _owners([pieces.names[i] for i in source[1:-1]], sentence.places[SOURCE])
        for owner, position in zip(
            _owners(given, sentence.places[target]), answer["alignments"][1:], strict=True
        ):
            if owner is not None:
                tokens += 1
                # The first source token is that of the language.
                right += 0 < position <= len(values) and values[position - 1] == owner
    return right / max(tokens, 1), tokens


def _pairs(sentences: Sequence[Sentence]) -> list[tuple[Sentence, str]]:
    return [(s, TARGETS[number % len(TARGETS)]) for number, s in enumerate(sentences)]


class _Pieces:
    """The shipped model's ids."""

    def __init__(self) -> None:
        import json

        from sentencepiece import SentencePieceProcessor

        self.names: list[str] = json.loads(
            (SHIPPED / "model" / "shared_vocabulary.json").read_text("utf-8")
        )
        self._ids = {name: i for i, name in enumerate(self.names)}
        self._processor: Any = SentencePieceProcessor(
            model_file=str(SHIPPED / "checkpoint" / "sentencepiece.bpe.model")
        )

    def row(self, sentence: Sentence, target: str) -> tuple[list[int], list[int]]:
        """Return source ids and prefix."""
        pieces = self._processor.encode(sentence.texts[SOURCE], out_type=str)
        source = [FLORES[SOURCE], *pieces, "</s>"]
        return [self._ids[name] for name in source], [self._ids[FLORES[target]]]


def _text(pieces: Sequence[str]) -> str:
    return "".join(pieces).replace("\u2581", " ").strip()


def _owners(pieces: Sequence[str], places: Sequence[Place]) -> list[str | None]:
    """Return the variable whose value has most of each piece; None where none has any."""
    ends = list(accumulate((len(piece) for piece in pieces), initial=-1))  # a space precedes it

    def owner(start: int, end: int) -> str | None:
        shared = [(min(end, last) - max(start, first), name) for name, first, last in places]
        length, name = max(shared, default=(0, ""))
        return name if length > 0 else None

    return [owner(start, end) for start, end in pairwise(ends)]
