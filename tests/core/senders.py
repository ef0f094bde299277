# SPDX-License-Identifier: Apache-2.0
"""Clients in threads, and workers that are held until a test has made its moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.engine_truth import END
from ct2_triton import _core

Rows = list[list[int]]
LONG = {"beam_size": 1, "min_decoding_length": 120, "max_decoding_length": 120}
SHORT = {"beam_size": 1, "max_decoding_length": 3}
SUPERSEDED = "superseded by a newer request with the same supersede_key"
_LIMIT_S = 120.0  # for what must happen; a test that fails need not wait for ever


class Sender(threading.Thread):
    """A client that waits for its rows."""

    def __init__(
        self, translator: Any, rows: Rows, options: Any, key: str = "", **more: Any
    ) -> None:
        super().__init__(daemon=True)
        self._work = lambda: translator.translate(
            rows, parameters=options, supersede_key=key, **more
        )
        self.answers: Any = None
        self.error: _core.Error | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answers = self._work()
        except _core.Error as error:
            self.error = error

    def ended(self) -> Sender:
        """Waits for the end."""
        self.join(_LIMIT_S)
        assert not self.is_alive(), "no answer came"
        return self

    def superseded(self) -> bool:
        """Waits for the end; whether it was this one."""
        error = self.ended().error
        if error is None:
            return False
        assert (str(error), error.code) == (SUPERSEDED, "cancelled")
        return True


def rows_of(count: int, first: int = 50) -> Rows:
    """Rows of which no two are equal."""
    return [[300, first + i, 60, END] for i in range(count)]


@contextmanager
def gate(held_at: int = 0) -> Iterator[Any]:
    """A gate for `translate`, open at the end whatever happens."""
    made = _core.Gate(held_at)
    try:
        yield made
    finally:
        made.open()


@contextmanager
def worker_held(translator: Any) -> Iterator[None]:
    """A worker has taken a row and is held: of a model with one, nothing runs meanwhile."""
    with gate() as closed:
        sender = Sender(translator, [[300, 40, 60, END]], SHORT, gate=closed)
        closed.wait()
        yield
    assert sender.ended().answers is not None
