# SPDX-License-Identifier: Apache-2.0
"""A tiny model on the emulated GPU, and CTranslate2's answers for each row alone."""

from __future__ import annotations

import json
import random
from functools import cached_property
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from ct2_triton import _core
from tiny_models import TinyOptions

# Heads of 80, and an inner width of 40 tiles, of which each of eight warps sums five.
WIDE = TinyOptions(d_model=320, layers=1)

Row = list[int]
MASK = 2**64 - 1
LIMITS = {
    "sequences": 8,
    "step_tokens": 32,
    "encoded_tokens": 64,
    "source_tokens": 40,
    "target_tokens": 24,
    "cache_bytes": 1 << 26,
}


class GpuTruth:
    """CTranslate2 on one directory, in ids.

    Attributes:
        directory: Of the model.
        start: The token that starts the decoder.
        end: The token that ends a sentence.
    """

    def __init__(self, directory: Path, compute_type: str = "float32") -> None:
        self.directory = directory
        self.config = json.loads((directory / "config.json").read_text())
        self.translator = ctranslate2.Translator(str(directory), compute_type=compute_type)
        self.end = self.ids[self.config["eos_token"]]
        self.start = self.ids[self.config["decoder_start_token"] or self.config["bos_token"]]

    @cached_property
    def vocabulary(self) -> list[str]:
        """The tokens of ids."""
        return json.loads((self.directory / "shared_vocabulary.json").read_text())

    @cached_property
    def ids(self) -> dict[str, int]:
        """The first id of each token."""
        return {token: i for i, token in reversed(list(enumerate(self.vocabulary)))}

    def unique(self, ids: Row) -> Row:
        """The first ids of the same tokens."""
        return [self.ids[self.vocabulary[i]] for i in ids]

    def sources(self, *lengths: int, seed: int = 1) -> list[Row]:
        """Random sources of so many tokens before the end token."""
        rng = random.Random(seed)
        return [[rng.randrange(10, 1000) for _ in range(n)] + [self.end] for n in lengths]

    def result(self, source: Row, prefix: Row = [], **options: Any) -> Any:  # noqa: B006
        """A greedy translation with scores and logits."""
        if self.config["decoder_start_token"] is None:
            prefix = [self.start, *prefix]
        [result] = self.translator.translate_batch(
            [[self.vocabulary[i] for i in source]],
            target_prefix=[[self.vocabulary[i] for i in prefix]] if prefix else None,
            **{
                "beam_size": 1,
                "return_end_token": True,
                "return_scores": True,
                "min_decoding_length": 0,
                **options,
            },
        )
        return result

    def tokens(self, result: Any) -> Row:
        """The ids of the best hypothesis."""
        return [self.ids[token] for token in result.hypotheses[0]]

    def decoder(
        self, library: Path, images: Path, kind: str = "float32", ordinal: int = 0, **limits: int
    ) -> _core.GpuDecoder:
        """The model on the emulated GPU."""
        epsilon = self.config.get("layer_norm_epsilon")
        wanted = {**LIMITS, **limits}
        return _core.GpuDecoder(
            str(library), str(images), str(self.directory), kind, epsilon, wanted, ordinal
        )

    def rules(self, **others: Any) -> dict[str, Any]:
        """Rules of a sequence that ends with the end token."""
        return {"ends": [self.end], **others}


def begin(decoder: _core.GpuDecoder, truth: GpuTruth, encoding: int, **rules: Any) -> int:
    """A sequence with a cache of its own."""
    [name] = decoder.join(encoding, 1, truth.rules(**rules))
    return int(name)


def run(decoder: _core.GpuDecoder, rows: list[Any], *lists: Any) -> list[Any]:
    """A step that is read at once."""
    return list(decoder.read(decoder.launch(rows, *lists)))


def forget(decoder: _core.GpuDecoder, names: list[int], encodings: list[int]) -> None:
    """Gives all back."""
    for name in names:
        decoder.forget(name)
    for encoding in encodings:
        decoder.forget_encoding(encoding)


def chosen_until_the_end(steps: list[Any]) -> list[Any]:
    """What the steps chose for a row, until it ended by itself."""
    return [one for one in steps if one.token >= 0]


def translate(
    decoder: _core.GpuDecoder,
    truth: GpuTruth,
    sources: list[Row],
    limit: int,
    prefix: Row = [],  # noqa: B006
    **rules: Any,
) -> list[tuple[Row, float]]:
    """Tokens and scores of rows whose steps are all launched before the first one is read."""
    encodings = decoder.encode(sources)
    names = [begin(decoder, truth, encoding, limit=limit, **rules) for encoding in encodings]
    steps = [decoder.launch([(name, 0, [truth.start, *prefix], 1) for name in names])]
    steps += [
        decoder.launch([(name, position, [], 1) for name in names])
        for position in range(1 + len(prefix), limit)
    ]
    found = [decoder.read(step) for step in steps]
    rows = [chosen_until_the_end([step[i] for step in found]) for i in range(len(names))]
    forget(decoder, names, encodings)
    return [
        ([*prefix, *(one.token for one in row)], sum(one.log_probability for one in row))
        for row in rows
    ]


def step_logits(
    decoder: _core.GpuDecoder, truth: GpuTruth, sources: list[Row], target: Row
) -> np.ndarray:
    """The logits behind each token of a target, for sources that share the steps."""
    encodings = decoder.encode(sources)
    names = [begin(decoder, truth, encoding) for encoding in encodings]
    logits = []
    for position, token in enumerate(target):
        run(decoder, [(name, position, [token], 1) for name in names])
        logits.append(decoder.logits())
    forget(decoder, names, encodings)
    return np.array(logits).transpose(1, 0, 2)


def mixed(key: int, value: int) -> int:
    """MixedKey() of engine/compute/random_stream.h."""

    def scrambled(bits: int) -> int:
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & MASK
        return bits ^ (bits >> 31)

    return scrambled(scrambled(key + 0x9E3779B97F4A7C15 & MASK) + value & MASK)


def sampling_key(seed: int, *rows: Row) -> int:
    """The key that a sampler makes of a seed, the source and the prefix."""
    key = mixed(len(rows[0]), seed)
    for row in rows:
        for token in row:
            key = mixed(key, token)
    return key
