# SPDX-License-Identifier: Apache-2.0
"""Scripts without spaces between words."""

from __future__ import annotations

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
)
"""Scripts without spaces between words, as ranges of a regular expression: Thai, Lao, Burmese,
Khmer; Japanese kana; Chinese characters; full-width forms."""
