# SPDX-License-Identifier: Apache-2.0
"""Restart a tritonserver after a crash."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

from ct2_triton.interrupts import RestartLimit
from ct2_triton.serve.errors import ServerStartError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from ct2_triton.serve.server import TritonServer

_LOG = logging.getLogger(__name__)
_SIGNAL_STATUS = 128  # a shell's exit status for a signal, minus the signal
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Supervisor:
    """Serves until the server is stopped, and restarts it after a crash.

    A crash is an end by a signal that this process did not send. The server keeps its addresses, so
    clients that retry lose nothing.
    """

    def __init__(self, server: TritonServer, *, start_timeout_s: float, most_restarts: int) -> None:
        """Keep the server; start nothing. `most_restarts` are allowed within 60 seconds."""
        self._server = server
        self._start_timeout_s = start_timeout_s
        self._restarts = RestartLimit(most_restarts)
        self._stopped = False

    def run(self, on_ready: Callable[[], None]) -> int:
        """Serve until SIGTERM or SIGINT, which are passed on to a server that is ready.

        Returns the exit status of the stopped server. Raises ServerStartError if the first start
        fails, or the server ends by itself and is not restarted.
        """
        try:
            self._server.start(self._start_timeout_s)
            exit_code = self._watch(on_ready)
            while not self._stopped:
                self._report_crash()
                exit_code = self._start_again()
            return exit_code if exit_code >= 0 else _SIGNAL_STATUS - exit_code
        finally:
            self._server.stop()

    def _watch(self, on_ready: Callable[[], None]) -> int:
        """Wait until the server ends; pass on signals of this process."""
        before = {number: signal.signal(number, self._forward) for number in _SIGNALS}
        try:
            on_ready()
            return self._server.process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, signal_number: int, _frame: FrameType | None) -> None:
        self._stopped = True
        self._server.process.send_signal(signal_number)

    def _report_crash(self) -> None:
        """Log the end of the server, or raise it if it is final."""
        exit_code = self._server.process.wait()
        if exit_code >= 0 or not self._restarts.try_one():
            raise ServerStartError(self._server.failure_text())
        _LOG.error(
            f"tritonserver was ended by {signal.Signals(-exit_code).name}; it is started again "
            f"(restart {len(self._restarts)} of at most {self._restarts.most} a minute)"
        )

    def _start_again(self) -> int:
        try:
            self._server.restart(self._start_timeout_s)
        except ServerStartError:
            exit_code = self._server.process.wait()
            if exit_code >= 0:
                raise
            return exit_code
        return self._watch(lambda: _LOG.warning("tritonserver is ready again"))
