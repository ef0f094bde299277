# SPDX-License-Identifier: Apache-2.0
"""Prove that a converted model computes what its checkpoint does."""

from __future__ import annotations

from ct2_triton.prepare.verification.proof import Proof, prove

__all__ = ["Proof", "prove"]
