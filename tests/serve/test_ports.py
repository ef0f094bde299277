# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from ct2_triton.serve import ServerOptions
from ct2_triton.serve.errors import PortInUseError
from ct2_triton.serve.options import Ports, check_free, find_free_ports
from support.ports import free_ports


def _hosts(host: str) -> dict[str, str]:
    return ServerOptions([], host=host).hosts


def test_free_ports_are_three_and_free() -> None:
    """Another process may take one before it is looked at."""
    for _ in range(20):
        ports = find_free_ports("127.0.0.1")
        assert len(set(ports)) == 3
        with suppress(PortInUseError):
            check_free(_hosts("127.0.0.1"), ports)
            return
    raise AssertionError("never free")


def test_a_taken_port_is_named_with_its_flag() -> None:
    http, grpc, metrics = free_ports()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", grpc))
        taken.listen()
        with pytest.raises(PortInUseError, match=rf"port {grpc} .* --grpc-port, or take --free"):
            check_free(_hosts("127.0.0.1"), Ports(http, grpc, metrics))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(PortInUseError, match=r"listen on 192\.0\.2\.1: .* --host"):
        check_free(_hosts("192.0.2.1"), Ports())


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(PortInUseError, match="listen on no such host: .* --host"):
        find_free_ports("no such host")


def test_two_protocols_cannot_share_a_port() -> None:
    http, grpc, _ = free_ports()
    with pytest.raises(PortInUseError, match=f"grpc and metrics cannot share port {grpc}"):
        check_free(_hosts("127.0.0.1"), Ports(http, grpc, grpc))


def test_http_may_have_an_address_of_its_own() -> None:
    ports = free_ports()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports.http))
        taken.listen()
        check_free({**_hosts("127.0.0.1"), "http": "127.0.0.2"}, ports)
        with pytest.raises(PortInUseError, match=f"port {ports.http} of 127.0.0.1 for http"):
            check_free(_hosts("127.0.0.1"), ports)
