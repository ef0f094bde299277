# SPDX-License-Identifier: Apache-2.0
"""The options of a server, its addresses and ports, and free ports."""

from __future__ import annotations

import contextlib
import errno
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TextIO

from ct2_triton.arguments import is_loopback
from ct2_triton.serve.errors import PortInUseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class ServerOptions:
    """The options of a server.

    Attributes:
        model_repositories: Folders of models.
        host: Address that the ports are bound to.
        http_host: Another address for HTTP; None for the same.
        ports: The ports, or None for free ones.
        server_arguments: Further arguments of tritonserver.
        environment: Variables added to this process's for the server.
        log: Where the server's log is written line by line; None: only its newest lines are kept in
            memory.
        plugin: Another build of our backend; None for the installed one.
        engine_directory: Folder with another CTranslate2 library; None for the installed wheel's.
        executable: The tritonserver; None to search.
        cache: Where the backend folder is assembled; None for the user's cache.
    """

    model_repositories: Sequence[Path]
    host: str = "127.0.0.1"
    http_host: str | None = None
    ports: Ports | None = None
    server_arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    log: TextIO | None = None
    plugin: Path | None = None
    engine_directory: Path | None = None
    executable: Path | None = None
    cache: Path | None = None

    @property
    def hosts(self) -> dict[str, str]:
        """The address of each port: http, grpc, metrics."""
        return {"http": self.http_host or self.host, "grpc": self.host, "metrics": self.host}

    @property
    def is_local(self) -> bool:
        """Whether the ports can be reached from this machine only."""
        return all(is_loopback(host) for host in self.hosts.values())

    def has_argument(self, flag: str) -> bool:
        """Return whether the further arguments have a flag.

        Args:
            flag: The flag with its dashes.

        Returns:
            True if it is there, with or without a value.
        """
        return any(argument.split("=")[0] == flag for argument in self.server_arguments)


# 0.0.0.0 and :: are addresses to listen on, not to connect to.
_LISTEN_TO_CONNECT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


class Ports(NamedTuple):
    """The three ports of a server.

    Attributes:
        http: KServe v2 over HTTP.
        grpc: KServe v2 over gRPC.
        metrics: Prometheus text.
    """

    http: int = 8000
    grpc: int = 8001
    metrics: int = 8002


def connect_address(host: str) -> str:
    """Return the address to connect to for a server that listens on a host."""
    return _LISTEN_TO_CONNECT.get(host, host)


def in_url(host: str) -> str:
    """Return `connect_address` for a URL: an IPv6 address is in brackets."""
    address = connect_address(host)
    return f"[{address}]" if ":" in address else address


def find_free_ports(host: str) -> Ports:
    """Ask the kernel for three free ports. Another process may take them before they are used."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_bound_socket(host, 0)) for _ in range(3)]
        return Ports(*(bound.getsockname()[1] for bound in sockets))


def check_free(hosts: Mapping[str, str], ports: Ports) -> None:
    """Check that each port can be bound, and that they differ."""
    names: dict[tuple[str, int], str] = {}
    for name, port in ports._asdict().items():
        host = hosts[name]
        other = names.setdefault((host, port), name)
        if other != name:
            raise PortInUseError(f"{other} and {name} cannot share port {port} of {host}")
        try:
            _bound_socket(host, port).close()
        except OSError as error:
            raise PortInUseError(
                f"cannot use port {port} of {host} for {name}: {error.strerror}; "
                f"choose another with --{name}-port, or take --free-ports"
            ) from error


def _bound_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        # As the server does: a port in TIME_WAIT is free.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise PortInUseError(
                f"cannot listen on {host}: {error.strerror}; --host and --http-host take an "
                "address of this machine"
            ) from error
        raise
    return bound
