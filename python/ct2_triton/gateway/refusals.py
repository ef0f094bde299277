# SPDX-License-Identifier: Apache-2.0
"""The gateway's error responses: a status and a text."""

from __future__ import annotations

import logging
import time

from ct2_triton import errors

FAILED = "The gateway has failed; its log says why"
_LOG = logging.getLogger(__name__)
_LOG_EVERY_S = 60.0
_GONE = "the translation server does not answer at the moment; try again later"
_BUSY = "the translation server is busy or restarts at the moment; try again later"
_FAILED = "the translation server has failed; the operator's log says why"
# Status and text for each failure of the Triton server; the failure's own text is for the
# operator.
_ANSWERS = (
    (errors.DeadlineExceededError, 504, None),
    (errors.RequestRejectedError, 400, None),
    (errors.InvalidCallError, 400, None),
    (errors.UnknownLanguageError, 400, None),
    (errors.ServerUnreachableError, 503, _GONE),
    (errors.ConnectionLostError, 503, _GONE),
    (errors.ModelNotFoundError, 503, _GONE),
    (errors.ServerBusyError, 503, _BUSY),
    (errors.Ct2TritonError, 500, _FAILED),
)


class Refusal(errors.Ct2TritonError):
    """A refused request: its status says who can act, its text what to do."""

    def __init__(self, status: int, text: str) -> None:
        """Keep the status and the text."""
        super().__init__(text)
        self.status = status

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response: Retry-After if it may help."""
        from ct2_triton.web_connections import RETRY_AFTER_S  # needs the extra

        return {"Retry-After": str(RETRY_AFTER_S)} if self.status in {429, 503} else {}


class Refusals:
    """Maps failures to HTTP: a sentence for the client, a log line for the operator."""

    def __init__(self) -> None:
        """Start without failures."""
        self._since = 0.0
        self._logged = 0.0
        self._count = 0

    def of(self, error: errors.Ct2TritonError) -> Refusal:
        """Return the response to a failure of the client or of the Triton server."""
        if isinstance(error, Refusal):
            return error
        status, text = next((s, text) for kind, s, text in _ANSWERS if isinstance(error, kind))
        if text is not None:
            self._log(error)
        return Refusal(status, f"Cannot translate text: {text or error}")

    def end(self) -> None:
        """Record that the Triton server has answered."""
        if self._count:
            lasted_s = time.monotonic() - self._since
            _LOG.warning(
                "the server answers again, after %.0f s and %d requests", lasted_s, self._count
            )
            self._count = 0

    def _log(self, error: errors.Ct2TritonError) -> None:
        """Log the first failure after an answer, and then one per minute."""
        now = time.monotonic()
        if not self._count:
            self._since = now
        if not self._count or now - self._logged >= _LOG_EVERY_S:
            self._logged = now
            _LOG.error("a request failed: %s: %s", type(error).__name__, error)
        self._count += 1
