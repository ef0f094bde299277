# SPDX-License-Identifier: Apache-2.0
"""One tritonserver with our backend, and its restarts after crashes."""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ct2_triton.restarts import RestartLimit
from ct2_triton.serve.backend_files import BACKEND_NAME, assemble, check_calls, find_backend_files
from ct2_triton.serve.command import check_server_arguments, server_command, server_environment
from ct2_triton.serve.errors import ServerStartError
from ct2_triton.serve.http_probe import HttpProbe, ModelState
from ct2_triton.serve.installation import find_server
from ct2_triton.serve.model_configs import mapped_to_cpu, read_model_configs, tenant_headers
from ct2_triton.serve.options import Ports, check_free, connect_address, find_free_ports, in_url
from ct2_triton.serve.process import LoggedProcess
from ct2_triton.serve.server_log import lines_that_matter

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from typing_extensions import Self

    from ct2_triton.serve.options import ServerOptions

_LOG = logging.getLogger(__name__)
_POLL_INTERVAL_S = 0.05
# In a tritonserver built without metrics, nothing listens on that port.
_METRICS_TIMEOUT_S = 5.0
_FREE_PORT_ATTEMPTS = 3


class TritonServer:
    """One tritonserver with our backend. It ends when this process ends, however that happens.

    Use it as a context manager, or call ``start`` and ``stop``::

        with TritonServer(ServerOptions([Path("model_repository")])) as server:
            client = TranslationClient(server.grpc_url, "nllb-200-distilled-600M")
    """

    def __init__(self, options: ServerOptions) -> None:
        """Find the server and our backend, and assemble the backend folder; start nothing.

        Args:
            options: What to start it with.

        Raises:
            ServerNotFoundError: If there is no tritonserver.
            PluginMissingError: If the package was installed without the backend.
            EngineLibraryError: If there is no CTranslate2 library.
            BackendFolderError: If the backend folder cannot be assembled.
            ServeError: If the further arguments contradict the options.
        """
        check_server_arguments(options)
        self.options = mapped_to_cpu(options, self)
        self.installation = find_server(options.executable)
        files = find_backend_files(options.plugin, options.engine_directory)
        self._folder = assemble(self.installation, files, options.cache)
        self._id = f"ct2-triton-{os.getpid()}-{secrets.token_hex(4)}"
        self._ports = options.ports or Ports(0, 0, 0)
        self._process: LoggedProcess | None = None

    def __enter__(self) -> Self:
        """Start the server and wait until it is ready.

        Returns:
            This server.
        """
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    @property
    def ports(self) -> Ports:
        """The ports in use; zeros before a start with free ports."""
        return self._ports

    @property
    def grpc_url(self) -> str:
        """Address for gRPC clients: ``host:port``, no scheme."""
        return f"{in_url(self.options.host)}:{self._ports.grpc}"

    @property
    def http_url(self) -> str:
        """Address for HTTP clients, with scheme."""
        return f"http://{in_url(self.options.hosts['http'])}:{self._ports.http}"

    @property
    def metrics_url(self) -> str:
        """Address of the Prometheus text."""
        return f"http://{in_url(self.options.host)}:{self._ports.metrics}/metrics"

    @property
    def process(self) -> LoggedProcess:
        """The server's process.

        Raises:
            ServerStartError: If it was never started.
        """
        if self._process is None:
            raise ServerStartError("the server has not been started")
        return self._process

    def was_started(self) -> bool:
        """Return whether there is a process, running or ended.

        Returns:
            False before the first start.
        """
        return self._process is not None

    def is_alive(self) -> bool:
        """Return whether the process runs.

        Returns:
            False before the start and after the end.
        """
        return self._process is not None and self._process.exit_code is None

    def is_ready(self) -> bool:
        """Return whether the server reports that it and its models are ready.

        Returns:
            False also when it does not run.
        """
        return self.is_alive() and self._probe().is_ready()

    def log_text(self) -> str:
        """Return the newest lines of the server's log.

        Returns:
            At most 5000 lines.
        """
        return "".join(self.process.log_lines())

    def version(self) -> str:
        """Ask the server for its version.

        Returns:
            Numbers with dots, such as 2.51.0; empty while nothing answers.
        """
        return self._probe().server_version()

    def model_states(self) -> list[ModelState]:
        """Ask the server for its index of models.

        Returns:
            One entry per model version.
        """
        return self._probe().model_states()

    def failure_text(self) -> str:
        """Return how the server ended, with the relevant lines of its log.

        Returns:
            One line, and one more per error in the log.
        """
        exit_code = self.process.exit_code
        if exit_code is not None and exit_code < 0:
            how = f"was ended by {signal.Signals(-exit_code).name}"
        else:
            how = f"ended with status {exit_code}"
        return f"tritonserver {how}{self._log_excerpt()}"

    def start(self, timeout_s: float = 300.0) -> None:
        """Start the server and wait until it answers and all models have been tried.

        Models that could not be loaded do not fail the start if ``--exit-on-error=false`` was
        given; ``model_states`` reports them.

        Args:
            timeout_s: Seconds to wait; large models need more.

        Raises:
            PortInUseError: If a wanted port is taken.
            EngineLibraryError: If CTranslate2 does not open, or does not fit.
            ServerStartError: If the server ends, or does not answer in time.
        """
        environment = server_environment(self.options, self._folder)
        check_calls(self._folder.backends / BACKEND_NAME, environment)
        attempts = 1 if self.options.ports else _FREE_PORT_ATTEMPTS
        while True:
            attempts -= 1
            self._launch()
            try:
                self._wait_until_ready(timeout_s)
            except BaseException:
                self.stop()
                # Between asking for a free port and using it, another process may have taken it.
                if attempts and "Address already in use" in self.log_text():
                    continue
                raise
            return

    def restart(self, timeout_s: float = 300.0) -> None:
        """Restart a server that has ended, on the same ports.

        Args:
            timeout_s: Seconds to wait until all models have been tried.

        Raises:
            PortInUseError: If another process has taken a port.
            ServerStartError: If the server ends, or does not answer in time.
        """
        self.options = replace(self.options, ports=self._ports)
        self.start(timeout_s)

    def stop(self, timeout_s: float = 60.0) -> int | None:
        """Terminate the server, after a time kill it. Do nothing if it has ended.

        Args:
            timeout_s: Seconds for requests in progress to finish.

        Returns:
            Its exit code; None if it was never started.
        """
        return None if self._process is None else self._process.stop(timeout_s)

    def _probe(self) -> HttpProbe:
        return HttpProbe(connect_address(self.options.hosts["http"]), self._ports.http)

    def _launch(self) -> None:
        self._ports = self.options.ports or find_free_ports(self.options.host)
        check_free(self.options.hosts, self._ports)
        configs = read_model_configs(self.options.model_repositories)
        command = server_command(
            self.options,
            self.installation,
            self._folder,
            self._ports,
            self._id,
            tenant_headers(configs),
        )
        environment = server_environment(self.options, self._folder)
        _LOG.debug("starts %s", shlex.join(command))
        self._process = LoggedProcess(command, environment, self.options.log)

    def _wait_until_ready(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        probe = self._probe()
        while time.monotonic() < deadline:
            if not self.is_alive():
                raise ServerStartError(self.failure_text())
            # It answers only after all models have been tried. Its name shows that it is ours.
            if probe.server_id() == self._id:
                self._wait_for_metrics()
                return
            time.sleep(_POLL_INTERVAL_S)
        raise ServerStartError(
            f"tritonserver did not answer within {timeout_s:g} s{self._log_excerpt()}"
        )

    def _wait_for_metrics(self) -> None:
        """Wait for the metrics port, which opens last, unless metrics arguments are given."""
        if self.options.has_argument("--allow-metrics"):
            return
        probe = HttpProbe(connect_address(self.options.hosts["metrics"]), self._ports.metrics)
        deadline = time.monotonic() + _METRICS_TIMEOUT_S
        while not probe.answers() and self.is_alive() and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)

    def _log_excerpt(self) -> str:
        log = self.process.log_lines()
        lines = lines_that_matter(log) or [line.rstrip() for line in log[-10:]]
        return "".join(f"\n  {line}" for line in lines)


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
