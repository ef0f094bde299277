# SPDX-License-Identifier: Apache-2.0
"""Moments that a test makes: a worker that stays busy, a request that the backend surely has.

Requests that are sent one after the other may reach the backend in another order: Triton reads them
on two threads. What supersedes another request, though, has arrived.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tritonclient.utils import InferenceServerException

from reliability.supersede_storm import SUPERSEDED
from server.helpers import Connection, Ids, Pending
from support.endless import ENDLESS
from support.waiting import wait_until


def superseded(pending: Pending) -> bool:
    """Waits for the end of a request; whether a newer one took its place."""
    try:
        pending.get_result()
    except InferenceServerException as error:
        if (error.status(), error.message()) == ("StatusCode.CANCELLED", SUPERSEDED):
            return True
        raise
    return False


def in_backend(
    connection: Connection, model: str, row: Ids, prefix: Ids, key: str, **parameters: Any
) -> Pending:
    """Sends a request that cannot run to its end now, and gives it once the backend has it.

    It is sent twice: the one that is superseded shows that the other is there.
    """
    both = [
        connection.start(model, [row], [prefix], **parameters, supersede_key=key) for _ in range(2)
    ]
    wait_until(lambda: any(pending.has_ended() for pending in both))
    ended, there = sorted(both, key=lambda pending: not pending.has_ended())
    assert superseded(ended)
    return there


class Occupied:
    """The one worker of a model runs an endless row, and what comes waits, until the end."""

    def __init__(self, connection: Connection, model: str, row: Ids, prefix: Ids) -> None:
        self._connection = connection
        self._request = (model, row, prefix, "occupied")

    def __enter__(self) -> None:
        self._endless = in_backend(self._connection, *self._request, **ENDLESS)

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        model, row, prefix, key = self._request
        last = self._connection.start(
            model, [row], [prefix], beam_size=1, max_decoding_length=2, supersede_key=key
        )
        assert superseded(self._endless)
        assert not superseded(last)
