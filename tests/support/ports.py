# SPDX-License-Identifier: Apache-2.0
"""Ports that nobody else takes between two uses: not the kernel, and not another test process."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ct2_triton.serve import Ports

# Below those that the kernel gives to whoever asks for any.
_RANGE = range(20_000, 32_768)


@cache
def _unused() -> Iterator[int]:
    """Each once. This process holds a lock on it, a byte of a file, as long as it lives."""
    locks = (Path(tempfile.gettempdir()) / f"ct2-triton-test-ports-{os.getuid()}").open("ab")
    for port in _RANGE:
        try:
            fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        yield port


def free_port() -> int:
    """One that is this process's own, and on which nothing listens yet."""
    return next(_unused())


def free_ports() -> Ports:
    """Three for a server."""
    return Ports(free_port(), free_port(), free_port())
