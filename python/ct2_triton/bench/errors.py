# SPDX-License-Identifier: Apache-2.0
"""What ct2-bench can raise."""

from __future__ import annotations

from ct2_triton.errors import Ct2TritonError


class BenchError(Ct2TritonError):
    """A comparison cannot be run or read: correct what the message names."""
