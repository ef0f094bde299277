# SPDX-License-Identifier: Apache-2.0
"""Addresses to listen on: who reaches them, and how this machine does."""

from __future__ import annotations

import ipaddress

# 0.0.0.0 and :: are addresses to listen on, not to connect to.
_LISTEN_TO_CONNECT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


def connect_address(host: str) -> str:
    """Give the address at which this machine reaches a server.

    Args:
        host: Address that the server listens on.

    Returns:
        An address to connect to.
    """
    return _LISTEN_TO_CONNECT.get(host, host)


def in_url(host: str) -> str:
    """Give the address at which this machine reaches a server, as it stands in a URL.

    Args:
        host: Address that the server listens on.

    Returns:
        The address, in brackets if it is one of IPv6.
    """
    address = connect_address(host)
    return f"[{address}]" if ":" in address else address


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only.

    Args:
        host: Address to listen on, or its name.

    Returns:
        False also for names that are not known.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
