# SPDX-License-Identifier: Apache-2.0
"""Marian's own Python module on rows of IDs, with the same weights as CTranslate2.

All rows are one job, which Marian sorts by length and splits into batches, with one thread per
core. int8 weights, including the output layer, are packed for the processor's widest instructions.
Marian takes and returns text, so each ID is written as a word.

The first rows are also translated in float32 by both libraries. A differing answer is an error,
because the figures would not be comparable.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.models.engine import EngineTranslator
from ct2_triton.bench.models.marian_file import MODEL_NAME, VOCABULARY_NAME, word
from ct2_triton.bench.models.translator import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.bench.setup import Row

ENGINE_NAME = "engine"
"""Name in the folder `Settings.model` of CTranslate2's float32 model with the same weights."""
CONFIG_NAME = "config.json"
"""Name in that folder of the checkpoint's configuration."""
COMPARED_ROWS = 16
"""Number of rows that must equal CTranslate2's in float32 before others are translated."""
LENGTH_FACTOR = 4
"""Longest translation, as a multiple of the longest source of its batch, in tokens."""


class MarianTranslator:
    """A model of Marian."""

    def __init__(self, settings: Settings) -> None:
        """Load the files of `write_marian_file`, `ENGINE_NAME` and `CONFIG_NAME`."""
        folder = Path(settings.model)
        config = json.loads((folder / CONFIG_NAME).read_text(encoding="utf-8"))
        self._end = config["eos_token_id"]
        self._words = [word(i, config) for i in range(config["vocab_size"] - 1)]
        self._ids = {one: i for i, one in enumerate(self._words)}
        self._folder = folder
        self._settings = settings
        self._compared = 0
        self._translator = self._load(
            _packed(folder) if settings.precision == "int8" else MODEL_NAME
        )

    def timed_translate(self, rows: Sequence[Row]) -> tuple[list[list[int]], float]:
        """Translate rows without target prefixes in one job; return the IDs and the seconds.

        Raises BenchError if Marian and CTranslate2 differ on one of the first rows in float32.
        """
        if self._compared < COMPARED_ROWS:
            self._compare(rows[:COMPARED_ROWS])
        return self._translate(self._translator, rows)

    def _translate(self, translator: Any, rows: Sequence[Row]) -> tuple[list[list[int]], float]:  # noqa: ANN401
        texts = [self._text(row) for row in rows]
        started = time.perf_counter()
        answers = translator.translate(texts)
        seconds = time.perf_counter() - started
        return [[self._ids[one] for one in answer.split()] for answer in answers], seconds

    def _text(self, row: Row) -> str:
        ids = row.input_ids
        if row.target_prefix or ids[-1:] != (self._end,) or self._end in ids[:-1]:
            raise BenchError(
                f"Marian translates rows that end with {self._end} and have no target prefix, not "
                f"{row}"
            )
        return " ".join(self._words[i] for i in ids[:-1])

    def _compare(self, rows: Sequence[Row]) -> None:
        engine = EngineTranslator(
            Settings(
                str(self._folder / ENGINE_NAME),
                beam_size=self._settings.beam_size,
                max_decoding_length=self._settings.max_decoding_length,
            )
        )
        expected = engine.translate(rows)
        answers, _ = self._translate(self._load(MODEL_NAME), rows)
        different = [i for i in range(len(rows)) if answers[i] != expected[i]]
        if different:
            i = different[0]
            raise BenchError(
                f"Marian answers {len(different)} of {len(rows)} rows differently from CTranslate2 "
                "with the same float32 weights, so its time would say nothing: to "
                f"{list(rows[i].input_ids)} it answers {answers[i]}, and CTranslate2 {expected[i]}"
            )
        self._compared += len(rows)

    def _load(self, model: str) -> Any:  # noqa: ANN401 - untyped
        import pymarian

        settings = self._settings
        options = {
            "models": self._folder / model,
            "vocabs": f"{self._folder / VOCABULARY_NAME} {self._folder / VOCABULARY_NAME}",
            "beam-size": settings.beam_size,
            "normalize": 1,
            "max-length-factor": LENGTH_FACTOR,
            "mini-batch": settings.rows_per_call,
            "maxi-batch": 100,
            "maxi-batch-sort": "src",
            "cpu-threads": settings.threads,
            "workspace": 512,
        }
        given = [f"--{name} {value}" for name, value in options.items()]
        flags = ["--skip-cost", "--allow-unk", "--quiet", "--quiet-translation"]
        return pymarian.Translator(" ".join([*given, *flags]))


def int8_type() -> str:
    """Return the widest of Marian's packed int8 types that this processor supports."""
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return "packed8avx512" if "avx512bw" in flags else "packed8avx2"


def _packed(folder: Path) -> str:
    """Write the int8 model next to the float32 one, and return its name."""
    name = "model.int8.bin"
    command = [sys.executable, "-m", "pymarian", "convert", "--gemm-type", int8_type()]
    command += ["--from", str(folder / MODEL_NAME), "--to", str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"Marian cannot convert its model to {int8_type()}: {done.stderr}")
    return name
