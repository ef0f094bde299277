# SPDX-License-Identifier: Apache-2.0
"""Convert a Hugging Face translation checkpoint to a Triton model, and prove that it is right."""

from __future__ import annotations

from ct2_triton.prepare.options import PrepareOptions
from ct2_triton.prepare.pipeline import prepare

__all__ = ["PrepareOptions", "prepare"]
