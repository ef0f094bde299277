# SPDX-License-Identifier: Apache-2.0
"""Addresses to listen on: who reaches them, and how this machine does."""

from __future__ import annotations

import ipaddress

# 0.0.0.0 and :: are addresses to listen on, not to connect to.
_LISTEN_TO_CONNECT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


def connect_address(host: str) -> str:
    """Give the address at which this machine reaches a server that listens on a host."""
    return _LISTEN_TO_CONNECT.get(host, host)


def in_url(host: str) -> str:
    """Give `connect_address` as it stands in a URL: one of IPv6 in brackets."""
    address = connect_address(host)
    return f"[{address}]" if ":" in address else address


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only; no for names not known."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
