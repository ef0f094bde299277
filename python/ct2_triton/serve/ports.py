# SPDX-License-Identifier: Apache-2.0
"""Ports: free ones from the kernel, and a check that the wanted ones are free."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import TYPE_CHECKING, NamedTuple

from ct2_triton.serve.errors import PortInUseError

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def find_free_ports(host: str) -> Ports:
    """Ask the kernel for three free ports. Another process may take them before they are used."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_bound_socket(host, 0)) for _ in range(3)]
        return Ports(*(bound.getsockname()[1] for bound in sockets))


def check_free(hosts: Mapping[str, str], ports: Ports) -> None:
    """Check that each port can be bound, and no two want the same."""
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
