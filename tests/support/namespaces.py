# SPDX-License-Identifier: Apache-2.0
"""Network namespaces as machines, with links between them that can be cut."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.debian_packages import debian_command

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Namespace:
    """A network of its own: its addresses and ports are not those of this machine."""

    name: str

    @property
    def file(self) -> Path:
        """What `nsenter --net=` takes."""
        return Path("/var/run/netns") / self.name

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """What this thread does, and the programs that it starts, use this network."""
        with Path("/proc/thread-self/ns/net").open() as before, self.file.open() as mine:
            _enter(mine.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())


def _enter(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


@dataclass(frozen=True)
class Link:
    """A cable: `near` is the address of the hub's end, `far` of the other."""

    hub: Namespace
    device: str
    near: str
    far: str

    def cut(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._set("down")

    def join(self) -> None:
        """It is there again."""
        self._set("up")

    def _set(self, state: str) -> None:
        _ip("-n", self.hub.name, "link", "set", self.device, state)


class Network:
    """A hub, and machines that are linked to it alone."""

    def __init__(self, *machines: str) -> None:
        """Names of the machines; 10.77.N.1 and 10.77.N.2 are the ends of the link to the Nth."""
        self._names = machines

    def __enter__(self) -> Network:
        """Make it. Skips where this process may not."""
        if os.geteuid() != 0:
            pytest.skip("network namespaces need root")
        prefix = f"ct2-{os.getpid()}"
        self.hub = _made(f"{prefix}-hub")
        self.machines: dict[str, Namespace] = {}
        self.links: dict[str, Link] = {}
        for number, name in enumerate(self._names, start=1):
            machine = self.machines[name] = _made(f"{prefix}-{name}")
            link = Link(self.hub, f"to-{name}", f"10.77.{number}.1", f"10.77.{number}.2")
            peer = ["peer", "name", "wire", "netns", machine.name]
            _ip("-n", self.hub.name, "link", "add", link.device, "type", "veth", *peer)
            _ip("-n", self.hub.name, "address", "add", f"{link.near}/24", "dev", link.device)
            _ip("-n", machine.name, "address", "add", f"{link.far}/24", "dev", "wire")
            _ip("-n", machine.name, "link", "set", "wire", "up")
            link.join()
            self.links[name] = link
        return self

    def __exit__(self, *_: object) -> None:
        """Delete it."""
        for namespace in (self.hub, *self.machines.values()):
            _ip("netns", "delete", namespace.name)


@contextlib.contextmanager
def own_network(name: str) -> Iterator[Namespace]:
    """One with nothing but the loopback."""
    made = _made(f"ct2-{os.getpid()}-{name}")
    try:
        yield made
    finally:
        _ip("netns", "delete", made.name)


def _made(name: str) -> Namespace:
    result = _ip("netns", "add", name, check=False)
    if result.returncode:  # as in a container that was given no further rights
        pytest.skip(f"no network namespace can be made here: {result.stderr.strip()}")
    _ip("-n", name, "link", "set", "lo", "up")
    return Namespace(name)


def _ip(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [debian_command("ip", "iproute2"), *arguments]
    return subprocess.run(command, check=check, capture_output=True, text=True)
