# SPDX-License-Identifier: Apache-2.0
"""A model in both engines, and random rows for it; what CTranslate2 answers to them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ctranslate2

from ct2_triton import _core

Row = list[int]

TIE = 1e-5
"""Two logits that are closer, relative to their size, count as equal."""


@dataclass(frozen=True)
class Case:
    """A row and its options, as CTranslate2 takes them (lists are lists)."""

    source: Row
    prefix: Row
    options: dict[str, Any]

    @property
    def is_greedy(self) -> bool:
        """Whether CTranslate2 searches without beams."""
        wide = self.options.get("prefix_bias_beta") or self.options.get("return_alternatives")
        return self.options["beam_size"] == 1 and not wide

    @property
    def parameters(self) -> dict[str, Any]:
        """The options as the backend takes them: lists are JSON texts."""
        return {
            name: json.dumps(value) if isinstance(value, list) else value
            for name, value in self.options.items()
        }


class MatrixModel:
    """A model in both engines."""

    def __init__(
        self, name: str, directory: Path, compute_type: str, beams: float = 0, device: str = "cpu"
    ) -> None:
        """Loads the model twice.

        Args:
            name: What to call it in results.
            directory: A CTranslate2 model.
            compute_type: CTranslate2's name of the type to compute in.
            beams: Share of the rows that are beam searches.
            device: CTranslate2's name of where to compute.
        """
        self.name, self.beams = name, beams
        self.compute_type = compute_type
        self.directory = directory
        self.map_options = {"use_vmap": True} if (directory / "vmap.txt").exists() else {}
        gpu = device == "cuda"
        self.loop_model = _core.LoopModel(str(directory), {"compute_type": compute_type}, gpu=gpu)
        self.translator = ctranslate2.Translator(
            str(directory), device=device, compute_type=compute_type, intra_threads=1
        )

    def _vocabulary(self, side: str) -> list[str]:
        own, shared = (self.directory / f"{name}_vocabulary.json" for name in (side, "shared"))
        return json.loads((own if own.exists() else shared).read_text())

    @cached_property
    def source_tokens(self) -> list[str]:
        """Token of each id of a source."""
        return self._vocabulary("source")

    @cached_property
    def target_tokens(self) -> list[str]:
        """Token of each id of a target."""
        return self._vocabulary("target")

    @cached_property
    def target_ids(self) -> dict[str, int]:
        """The first id of each token of a target."""
        return {token: i for i, token in reversed(list(enumerate(self.target_tokens)))}

    @cached_property
    def end(self) -> int:
        """The end token of targets."""
        config = json.loads((self.directory / "config.json").read_text())
        return self.target_ids[config["eos_token"]]

    @cached_property
    def least_prefix(self) -> int:
        """Ids that a prefix has at least: without a start token the first one is that."""
        config = json.loads((self.directory / "config.json").read_text())
        return 0 if config["decoder_start_token"] else 1

    @cached_property
    def choosable(self) -> list[int]:
        """Targets to draw from: those of the vocabulary map, where the model has one.

        No token that stands twice in the vocabulary: as an end token, the backend takes it by name,
        and CTranslate2 by id.
        """
        if self.map_options:
            line = (self.directory / "vmap.txt").read_text().strip("\n")
            return [self.target_ids[token] for token in line.split("\t")[1].split()]
        counts = Counter(self.target_tokens)
        return [i for i, token in enumerate(self.target_tokens) if i > 2 and counts[token] == 1]

    @cached_property
    def candidates(self) -> list[int]:
        """The tokens of the vocabulary map, with those that CTranslate2 adds to them."""
        config = json.loads((self.directory / "config.json").read_text())
        own = ("unk_token", "bos_token", "eos_token", "decoder_start_token")
        return sorted({*self.choosable, *(self.target_ids[config[name]] for name in own)})

    def truth(self, case: Case) -> dict[str, Any]:
        """What CTranslate2 answers to the row alone."""
        prefix = [[self.target_tokens[i] for i in case.prefix]] if case.prefix else None
        options = dict(case.options)
        if "suppress_sequences" in options:
            options["suppress_sequences"] = [
                [self.target_tokens[i] for i in ids] for ids in options["suppress_sequences"]
            ]
        options["return_attention"] = options.pop("return_alignments", False)
        [result] = self.translator.translate_batch(
            [[self.source_tokens[i] for i in case.source]], target_prefix=prefix, **options
        )
        ids = self.target_ids  # a source token in place of an unknown one may be unknown, too
        hypotheses = [[ids.get(token, ids["<unk>"]) for token in row] for row in result.hypotheses]
        return {
            "ids": hypotheses[0],
            "hypotheses": hypotheses,
            "scores": result.scores or [0.0] * len(hypotheses),
            "logits": result.logits[0] if result.logits else None,
            "attention": result.attention,
        }

    def draw(self, rng: random.Random) -> Case:
        """Makes a row: most with few options, so that each shows alone too."""
        tokens = range(3, len(self.source_tokens))
        source = [rng.choice(tokens) for _ in range(rng.choice([1, 2, rng.randint(3, 25)]))]
        length = max(self.least_prefix, rng.choice([0, 1, 1, 1, 2, rng.randint(0, 12)]))
        prefix = [rng.choice([*self.choosable[:400], self.end]) for _ in range(length)]
        options: dict[str, Any] = {
            "beam_size": 1,
            "max_decoding_length": rng.choice([1, 4, 10, 20, 32]),
            **self.map_options,
        }
        for name, make in _OPTIONS.items():
            if rng.random() < 0.25:
                options[name] = make(rng, self)
        if rng.random() < self.beams:
            options |= _beams(rng)
        least = options.get("min_decoding_length", 1)
        options["max_decoding_length"] = max(options["max_decoding_length"], least)
        return Case(source, prefix, options)


_OPTIONS: dict[str, Callable[[random.Random, MatrixModel], Any]] = {
    "min_decoding_length": lambda rng, _: rng.choice([0, 3, 12]),
    "repetition_penalty": lambda rng, _: rng.choice([1.2, 2.0, 0.8]),
    "no_repeat_ngram_size": lambda rng, _: rng.choice([1, 2, 3]),
    "suppress_sequences": lambda rng, model: _sequences(rng, model),
    "end_token": lambda rng, model: rng.sample(model.choosable, min(60, len(model.choosable))),
    "disable_unk": lambda rng, _: rng.random() < 0.8,
    "return_scores": lambda _rng, _: True,
    "length_penalty": lambda rng, _: rng.choice([0.0, 0.6, 2.0]),
    "return_end_token": lambda _rng, _: True,
}


def _beams(rng: random.Random) -> dict[str, Any]:
    """Options of a beam search; scores and all hypotheses are compared."""
    bias = rng.choice([0.05, 0.5, 0.9]) if rng.random() < 0.15 else 0.0
    beam_size = rng.choice([2, 2, 3, 4, 4, 5, 8, *[1] * (bias > 0)])
    patience = rng.choice([1, 1, 1, 0.5, 1.7, 2.5])
    # As CTranslate2 rounds: half away from zero.
    finished = int(beam_size * patience + 0.5)
    if rng.random() < 0.15:
        several = {"return_alternatives": True, "num_hypotheses": rng.choice([1, 3, 6])}
        return {"beam_size": rng.choice([1, 2, 4]), "return_scores": True, **several}
    return {
        "beam_size": beam_size,
        "prefix_bias_beta": bias,
        "patience": patience,
        "num_hypotheses": rng.choice([1, rng.randint(1, finished), finished]),
        "return_scores": True,
    }


def _sequences(rng: random.Random, model: MatrixModel) -> list[Row]:
    """Single tokens, and so many pairs of tokens that some are met."""
    singles = [[rng.choice(model.choosable)] for _ in range(rng.randint(0, 20))]
    pairs = [rng.choices(model.choosable, k=2) for _ in range(rng.choice([0, 200, 2000]))]
    return [*singles, *pairs, rng.choices(model.choosable, k=3)]
