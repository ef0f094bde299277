# SPDX-License-Identifier: Apache-2.0
"""Texts that cannot be sent, though Python has them."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """Tell whether a text can be sent. JSON and a shell may give half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
