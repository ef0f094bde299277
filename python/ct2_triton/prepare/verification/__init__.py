# SPDX-License-Identifier: Apache-2.0
"""Proves that a converted model is the checkpoint it was made from."""

from __future__ import annotations

from ct2_triton.prepare.verification.proof import Proof, prove

__all__ = ["Proof", "prove"]
