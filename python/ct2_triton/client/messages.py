# SPDX-License-Identifier: Apache-2.0
"""The messages of a server as errors, in the words of a caller."""

from __future__ import annotations

import re

from ct2_triton.errors import (
    ClientError,
    DeadlineExceededError,
    ModelNotFoundError,
    RequestRejectedError,
    ServerBusyError,
    ServerFailedError,
    SupersededError,
)

UNKNOWN_MODEL = "Request for unknown model"
"""Start of Triton's message for a model or version that is missing or not ready."""

# Of a model that loads, was unloaded, or ends with its server. Triton sends the one as UNAVAILABLE
# and the other as NOT_FOUND, the status also of a model that it does not have.
_NOT_READY = f"{UNKNOWN_MODEL}.* (is not at ready state|has no available versions)"
_NOT_READY_HINT = "; it is loading or was unloaded, or the server is ending"
# Begins of messages of the backend and of Triton, whatever their status is.
_ERROR_OF_WORDING: tuple[tuple[re.Pattern[str], type[ClientError]], ...] = tuple(
    (re.compile(rf"(\[request id: [^\]]*\] )?{wording}"), kind)
    for wording, kind in (
        ("superseded", SupersededError),
        ("deadline exceeded", DeadlineExceededError),
        (_NOT_READY, ServerBusyError),
        (UNKNOWN_MODEL, ModelNotFoundError),
        ("Exceeds maximum queue size", ServerBusyError),
        ("Request timeout expired", ServerBusyError),
        ("Server is stopping", ServerBusyError),
        ("Server not ready", ServerBusyError),
        ("GRPC server is shutting down", ServerBusyError),
        ("(CTranslate2|a decode loop) failed", ServerFailedError),
        ("a decode loop lacks memory", ServerBusyError),
        ("the server ran out of memory", ServerFailedError),
    )
)


# What a caller gave, by the tensor that the backend's messages name.
_GIVEN = {
    "INPUT_IDS": "the sentence",
    "text_input": "the text",
    "TARGET_PREFIX": "the prefix",
    "DRAFT_IDS": "the draft",
    "draft": "the draft",
}
_TENSOR = re.compile(rf"({'|'.join(_GIVEN)}), row \d+(, value \d+)?(?=[,:])")
_OF_LANGUAGES = re.compile(r" in (source_language|target_languages)(?=;)")


def without_tensors(message: str) -> str:
    """Return a message of the backend that names what a caller gave in place of tensors."""
    if found := _TENSOR.match(message):
        message = _GIVEN[found[1]] + message[found.end() :]
    return _OF_LANGUAGES.sub("", message)


def error_of_message(
    message: str, otherwise: type[ClientError] = RequestRejectedError
) -> ClientError:
    """Map a server's message to an error, by its wording; `otherwise` is that of its status.

    A stream sends messages without a status.
    """
    message = without_tensors(message)
    kind = next((kind for wording, kind in _ERROR_OF_WORDING if wording.match(message)), otherwise)
    return kind(f"{message}{_NOT_READY_HINT}" if re.match(_NOT_READY, message) else message)
