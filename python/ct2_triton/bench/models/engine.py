# SPDX-License-Identifier: Apache-2.0
"""CTranslate2's own Python module on rows of IDs, in its fastest configuration.

It uses `translate_batch` with `max_batch_size`, which sorts the rows by length and splits them into
calls with little padding. With several workers, a small batch is shared among them instead of going
to one. The compute type is `precision`, whatever type the weights are stored in. CTranslate2's
Python module takes and returns strings, so IDs are looked up in the vocabulary in both directions,
as every user of it must.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import ctranslate2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.bench.models.translator import Settings
    from ct2_triton.bench.setup import Row


class EngineTranslator:
    """A CTranslate2 model."""

    def __init__(self, settings: Settings) -> None:
        """Load it, with `threads` threads for each worker."""
        self._settings = settings
        self._translator = ctranslate2.Translator(
            settings.model,
            device=settings.library_device,
            compute_type=settings.precision,
            inter_threads=settings.workers,
            intra_threads=settings.threads,
        )
        files = sorted(Path(settings.model).glob("*_vocabulary.json"))
        self._source_tokens = _tokens(files[0])  # source_ comes before target_; shared_ is both
        self._target_tokens = _tokens(files[-1])
        # In reverse, so that a repeated token has its first ID, which CTranslate2 looks up.
        numbered = enumerate(reversed(self._target_tokens), start=1)
        last = len(self._target_tokens)
        self._target_ids = {token: last - i for i, token in numbered}

    def check(self, row: Row) -> None:
        """Refuse IDs outside the vocabulary."""
        for ids, tokens in (
            (row.input_ids, self._source_tokens),
            (row.target_prefix, self._target_tokens),
        ):
            outside = [i for i in ids if not 0 <= i < len(tokens)]
            if outside:
                raise ValueError(
                    f"id {outside[0]} is outside the vocabulary of {len(tokens)} tokens"
                )

    def translate(self, rows: Sequence[Row]) -> list[list[int]]:
        """Translate rows in one call of the module."""
        return self.timed_translate(rows)[0]

    def timed_translate(self, rows: Sequence[Row]) -> tuple[list[list[int]], float]:
        """Translate rows that passed `check` in one call of the module.

        The seconds of the call exclude the conversion between IDs and tokens.
        """
        settings = self._settings
        share = -(-len(rows) // settings.workers)
        sources = [[self._source_tokens[i] for i in row.input_ids] for row in rows]
        prefixes = [[self._target_tokens[i] for i in row.target_prefix] for row in rows]
        started = time.perf_counter()
        results = self._translator.translate_batch(
            sources,
            target_prefix=prefixes,
            max_batch_size=max(1, min(share, settings.rows_per_call)),
            beam_size=settings.beam_size,
            max_decoding_length=settings.max_decoding_length,
            max_input_length=0,
        )
        seconds = time.perf_counter() - started
        ids = [[self._target_ids[token] for token in result.hypotheses[0]] for result in results]
        return ids, seconds


def _tokens(file: Path) -> list[str]:
    return list(json.loads(file.read_text(encoding="utf-8")))
