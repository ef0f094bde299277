# SPDX-License-Identifier: Apache-2.0
"""Fewer random rows, for builds that compute many times slower: sanitizers.

CT2_TRITON_FEWER_ROWS divides how many rows some tests make. They go the same ways with fewer.
"""

from __future__ import annotations

import os

_DIVISOR = int(os.environ.get("CT2_TRITON_FEWER_ROWS", "1"))


def fewer(rows: int) -> int:
    """So many rows, or that part of them that the environment asks for."""
    return -(-rows // _DIVISOR)
