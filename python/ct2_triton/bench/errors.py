# SPDX-License-Identifier: Apache-2.0
"""Errors of ct2-bench."""

from __future__ import annotations

from ct2_triton.errors import Ct2TritonError


class BenchError(Ct2TritonError):
    """A comparison cannot be run or read: correct what the message names."""
