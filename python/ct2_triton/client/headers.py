# SPDX-License-Identifier: Apache-2.0
"""Headers of requests: those of the client, and those of one call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import Mapping

Headers = tuple[tuple[str, str], ...]

_NAME = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[ -~]*")


def read_headers(metadata: Mapping[str, str] | None) -> Headers:
    """Read what a caller gives as headers; gRPC takes their names in lower case only.

    Args:
        metadata: Values by name; None for none.

    Raises:
        InvalidCallError: gRPC cannot send one of them.
    """
    headers = tuple((name.lower(), value) for name, value in (metadata or {}).items())
    for name, value in headers:
        if not _NAME.fullmatch(name) or name.startswith("grpc-") or name.endswith("-bin"):
            raise InvalidCallError(
                f"metadata has the name {name!r}; it must be of letters, digits, '-', '_' and '.', "
                "and neither begin with 'grpc-' nor end in '-bin'"
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise InvalidCallError(
                f"metadata has {value!r} for {name!r}; it must be a text of printable ASCII"
            )
    return headers


def join_headers(of_client: Headers, of_call: Headers) -> Headers | None:
    """Join both; where a name is in both, the call's value counts. None for none."""
    return tuple({**dict(of_client), **dict(of_call)}.items()) or None
