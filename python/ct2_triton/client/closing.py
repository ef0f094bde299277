# SPDX-License-Identifier: Apache-2.0
"""What a call says whose client is closed while it waits."""

from __future__ import annotations

from ct2_triton.errors import InvalidCallError


def closed_error() -> InvalidCallError:
    """Return the error for a call that the end of its client ended."""
    return InvalidCallError("the client was closed during the call")
