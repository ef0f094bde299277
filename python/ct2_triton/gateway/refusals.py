# SPDX-License-Identifier: Apache-2.0
"""What the gateway answers instead of a translation: a status and a text."""

from __future__ import annotations

from ct2_triton import errors
from ct2_triton.web_connections import RETRY_AFTER_S

# What each failure behind the gateway is to whoever asked it.
_STATUS = (
    (errors.DeadlineExceededError, 504),
    (errors.RequestRejectedError, 400),
    (errors.InvalidCallError, 400),
    (errors.UnknownLanguageError, 400),
    (errors.ServerUnreachableError, 503),
    (errors.ConnectionLostError, 503),
    (errors.ServerBusyError, 503),
    (errors.ModelNotFoundError, 503),
)


class Refusal(errors.Ct2TritonError):
    """A request that is not answered: its status says whose part it is, its text what to do."""

    def __init__(self, status: int, text: str) -> None:
        """Remember both.

        Args:
            status: HTTP's status code.
            text: The `error` of the answer.
        """
        super().__init__(text)
        self.status = status

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer: when to come again, where that may help."""
        return {"Retry-After": str(RETRY_AFTER_S)} if self.status in {429, 503} else {}


def refusal_of(error: errors.Ct2TritonError) -> Refusal:
    """Say what a failure of the client or of the server behind it is in HTTP.

    Args:
        error: What the client raised.

    Returns:
        The refusal.
    """
    if isinstance(error, Refusal):
        return error
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return Refusal(status, f"Cannot translate text: {error}")
