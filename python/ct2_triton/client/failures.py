# SPDX-License-Identifier: Apache-2.0
"""What the client raises for what servers say in words, and for its own end."""

from __future__ import annotations

import re

from ct2_triton.errors import (
    ClientError,
    DeadlineExceededError,
    InvalidCallError,
    ModelNotFoundError,
    RequestRejectedError,
    ServerBusyError,
    ServerFailedError,
    SupersededError,
)

UNKNOWN_MODEL = "Request for unknown model"
"""How Triton begins where it has no such model, or version; UNAVAILABLE once it was unloaded."""

# How the backend and Triton begin what another class says than RequestRejectedError.
_ERROR_OF_WORDING: tuple[tuple[re.Pattern[str], type[ClientError]], ...] = tuple(
    (re.compile(rf"(\[request id: [^\]]*\] )?{wording}"), kind)
    for wording, kind in (
        ("superseded", SupersededError),
        ("deadline exceeded", DeadlineExceededError),
        (f"{UNKNOWN_MODEL}.* (is not at ready state|has no available versions)", ServerBusyError),
        (UNKNOWN_MODEL, ModelNotFoundError),
        ("Exceeds maximum queue size", ServerBusyError),
        ("Request timeout expired", ServerBusyError),
        ("Server is stopping", ServerBusyError),
        ("GRPC server is shutting down", ServerBusyError),
        ("CTranslate2 failed", ServerFailedError),
        ("the server ran out of memory", ServerFailedError),
    )
)


def error_of_message(message: str) -> ClientError:
    """Choose our error for a message without a status, as a stream has it.

    The classes are those of the status in `Connection`.
    """
    for wording, kind in _ERROR_OF_WORDING:
        if wording.match(message):
            return kind(message)
    return RequestRejectedError(message)


def closed_error() -> InvalidCallError:
    """Return the error for a call that the end of its client ended."""
    return InvalidCallError("the client was closed during the call")
