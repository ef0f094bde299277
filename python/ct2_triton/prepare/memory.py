# SPDX-License-Identifier: Apache-2.0
"""How much memory the preparation of a checkpoint takes, known before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ConversionError

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_OF_FLOAT32 = 4
# What benchmarks/measure_prepare_memory.py measured: the weights once in memory, a part of them
# once more in another type or as pages of their file, and the libraries.
_TIMES_THE_WEIGHTS = 1.75
_LIBRARIES_BYTES = 450_000_000
_GB = 1e9


def weights_bytes(checkpoint: Path) -> int:
    """Tell how large the weights of a checkpoint are in float32, without reading them.

    Tied weights count once.
    """
    import torch
    import transformers

    auto_config: Any = transformers.AutoConfig
    auto_model: Any = transformers.AutoModelForSeq2SeqLM
    try:
        config = auto_config.from_pretrained(str(checkpoint), local_files_only=True)
        with torch.device("meta"):
            model = auto_model.from_config(config)
    except Exception as error:  # whatever transformers raises
        raise ConversionError(f"transformers makes no model of {checkpoint}: {error}") from error
    return int(model.num_parameters()) * _BYTES_OF_FLOAT32


def memory_line(checkpoint: Path) -> str:
    """Say in a line how much memory the preparation needs, in GB (10^9 bytes)."""
    weights = weights_bytes(checkpoint)
    needed = weights * _TIMES_THE_WEIGHTS + _LIBRARIES_BYTES
    return (
        f"needs about {needed / _GB:.1f} GB of memory; the weights in float32 are "
        f"{weights / _GB:.1f} GB"
    )
