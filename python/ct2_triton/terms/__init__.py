# SPDX-License-Identifier: Apache-2.0
"""Preserve terms and HTML in translations.

from ct2_triton.terms import translate_html, translate_terms
"""

from ct2_triton.terms.finding import PATTERNS, Terms
from ct2_triton.terms.html_translation import (
    RankedTexts,
    translate_html,
    translate_html_ranks,
)
from ct2_triton.terms.placeholders import DEFAULT_KINDS
from ct2_triton.terms.translation import TermTranslation, translate_terms

__all__ = [
    "DEFAULT_KINDS",
    "PATTERNS",
    "RankedTexts",
    "TermTranslation",
    "Terms",
    "translate_html",
    "translate_html_ranks",
    "translate_terms",
]
