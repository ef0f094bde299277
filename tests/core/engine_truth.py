# SPDX-License-Identifier: Apache-2.0
"""The truth that the core is held against: `ctranslate2.Translator` on the same directory."""

from __future__ import annotations

import json
import random
from functools import cached_property
from pathlib import Path
from typing import Any

import ctranslate2

END = 2
FIRST_PIECE, LAST_PIECE = 4, 1100
Row = list[int]


class EngineTruth:
    """Translates one row of ids at a time with the Python module."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.translator = ctranslate2.Translator(
            str(directory), device="cpu", compute_type="float32", intra_threads=1
        )

    @cached_property
    def vocabulary(self) -> list[str]:
        return json.loads((self.directory / "shared_vocabulary.json").read_text())

    @cached_property
    def ids(self) -> dict[str, int]:
        first: dict[str, int] = {}
        for index, token in enumerate(self.vocabulary):
            first.setdefault(token, index)
        return first

    @cached_property
    def languages(self) -> Row:
        """The language codes of an NLLB vocabulary."""
        return [i for i, token in enumerate(self.vocabulary) if len(token) == 8 and token[3] == "_"]

    def tokens(self, ids: Row) -> list[str]:
        return [self.vocabulary[i] for i in ids]

    def result(self, source: Row, prefix: Row, **options: Any) -> ctranslate2.TranslationResult:
        """One row, alone in its call."""
        prefixes = [self.tokens(prefix)] if prefix else None
        [result] = self.translator.translate_batch(
            [self.tokens(source)], target_prefix=prefixes, **options
        )
        return result

    def hypotheses(self, source: Row, prefix: Row, **options: Any) -> list[Row]:
        """The ids of each hypothesis of one row, alone in its call."""
        result = self.result(source, prefix, **options)
        return [[self.ids[token] for token in tokens] for tokens in result.hypotheses]


def ragged_rows(truth: EngineTruth, count: int, seed: int = 0) -> tuple[list[Row], list[Row]]:
    """Sources of 1 to 30 pieces in NLLB's form, and prefixes: some absent, some of two ids."""
    rng = random.Random(seed)
    sources, prefixes = [], []
    for _ in range(count):
        pieces = [rng.randint(FIRST_PIECE, LAST_PIECE) for _ in range(rng.randint(1, 30))]
        sources.append([rng.choice(truth.languages), *pieces, END])
        language = rng.choice(truth.languages)
        prefixes.append(rng.choice([[language], [language], [language, pieces[0]], []]))
    return sources, prefixes
