# SPDX-License-Identifier: Apache-2.0
"""Draws sentences for training and for evaluation, which never share a combination of values."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

from train_demo.kinds import GrammarError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from train_demo.grammar import Grammar
    from train_demo.templates import Sentence, Template

HELD_OUT_SHARE = 0.1
_DRAWS = 1000


def is_held_out(sentence: Sentence) -> bool:
    """Return whether a sentence is kept from training.

    The hash of the template and its combination of slot values decides, so that the split depends
    on nothing else: about a tenth of all combinations of every template.
    """
    digest = hashlib.sha256(f"{sentence.template}|{sentence.key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


def training_sentences(grammar: Grammar, count: int, seed: int) -> Iterator[Sentence]:
    """Draws sentences that are not held out, every template equally often.

    Args:
        grammar: Where from.
        count: How many.
        seed: Equal seeds give equal sentences.

    Raises:
        GrammarError: A template has hardly a combination that is not held out.
    """
    return _draw(grammar, count, random.Random(seed), held_out=False)


def held_out_sentences(grammar: Grammar, count: int, seed: int) -> list[Sentence]:
    """Draws distinct held-out sentences, every template equally often.

    Args:
        grammar: Where from.
        count: How many; fewer come where templates have too few held-out combinations.
        seed: Equal seeds give equal sentences.
    """
    distinct: dict[str, Sentence] = {}
    for sentence in _draw(grammar, 2 * count, random.Random(seed), held_out=True):
        if len(distinct) < count:
            distinct.setdefault(sentence.texts["eng"], sentence)
    return list(distinct.values())


def _draw(
    grammar: Grammar, count: int, rng: random.Random, *, held_out: bool
) -> Iterator[Sentence]:
    templates = grammar.templates
    for number in range(count):
        if number % len(templates) == 0:
            order = rng.sample(templates, len(templates))
        template = order[number % len(templates)]
        yield _draw_of_part(template, rng, held_out=held_out)


def _draw_of_part(template: Template, rng: random.Random, *, held_out: bool) -> Sentence:
    for _ in range(_DRAWS):
        sentence = template.draw(rng)
        if is_held_out(sentence) == held_out:
            return sentence
    part = "held-out" if held_out else "training"
    raise GrammarError(f"{template.id} has too few values for {part} combinations")
