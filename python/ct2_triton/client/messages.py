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
"""Start of Triton's message for a missing model or version; UNAVAILABLE after it was unloaded."""

# Begins of messages of the backend and of Triton, for errors other than RequestRejectedError.
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


def error_of_message(message: str) -> ClientError:
    """Map a message without a status, as a stream sends it, to an error.

    The classes are those of the status in `Connection`.
    """
    message = without_tensors(message)
    for wording, kind in _ERROR_OF_WORDING:
        if wording.match(message):
            return kind(message)
    return RequestRejectedError(message)
