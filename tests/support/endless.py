# SPDX-License-Identifier: Apache-2.0
"""Greedy rows that take longer than any test: they end when they are superseded or cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.tiny import TinyOptions, tiny_engine_model

# Options of such a row.
ENDLESS: dict[str, Any] = {
    "beam_size": 1,
    "min_decoding_length": 32_000,
    "max_decoding_length": 32_000,
}
# Parameters of a model that takes them, and its positions; otherwise it answers as `nllb` does.
ALLOWS_ENDLESS = {"decoding_length_limit": 65_536}
ROOMY = TinyOptions(max_positions=33_000)


def endless_model() -> Path:
    """The tiny NLLB model in CTranslate2's format, with room for endless rows."""
    return tiny_engine_model("nllb", ROOMY)
