# SPDX-License-Identifier: Apache-2.0
"""Find out whether CTranslate2's own int8 products are exact on this processor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

INEXACT_INT8 = (
    "this processor lacks VNNI, so CTranslate2's calls at int8 are inexact; decode loops are exact,"
    " and CT2_USE_MKL=1 or compute_type float32 makes calls exact and slower"
)


def int8_calls_are_inexact(
    variables: Mapping[str, str] = os.environ, processor: Path = Path("/proc/cpuinfo")
) -> bool:
    """Return whether oneDNN multiplies int8 and adds the products in 16 bits.

    On Intel, or if configured, CTranslate2 uses MKL instead.
    """
    try:
        found = processor.read_text(encoding="utf-8")
    except OSError:
        return False
    by_mkl = variables.get("CT2_USE_MKL", "GenuineIntel" if "GenuineIntel" in found else "0")
    return "avx2" in found and "vnni" not in found and by_mkl.lower() in {"0", "false"}
