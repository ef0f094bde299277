# SPDX-License-Identifier: Apache-2.0
"""What a server is started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.serve.ports import Ports

# 0.0.0.0 and :: are addresses to listen on, not to connect to.
_LISTEN_TO_CONNECT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


@dataclass(frozen=True)
class ServerOptions:
    """What a server is started with.

    Attributes:
        model_repositories: Folders of models.
        host: Address that all three ports are bound to.
        ports: The ports, or None for free ones.
        server_arguments: Further arguments of tritonserver.
        environment: Variables added to this process's for the server.
        log: Where the server's log goes line by line; None to keep its newest lines in memory only.
        plugin: Another build of our backend; None for the installed one.
        engine_directory: Folder with another CTranslate2 library; None for the installed wheel's.
        executable: The tritonserver; None to search.
        cache: Where the backend folder is assembled; None for the user's cache.
    """

    model_repositories: Sequence[Path]
    host: str = "127.0.0.1"
    ports: Ports | None = None
    server_arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    log: TextIO | None = None
    plugin: Path | None = None
    engine_directory: Path | None = None
    executable: Path | None = None
    cache: Path | None = None

    @property
    def connect_host(self) -> str:
        """Address at which this machine reaches the server."""
        return _LISTEN_TO_CONNECT.get(self.host, self.host)

    @property
    def url_host(self) -> str:
        """The same, as it stands in a URL."""
        host = self.connect_host
        return f"[{host}]" if ":" in host else host

    @property
    def is_local(self) -> bool:
        """Whether the ports can be reached from this machine only."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def has_argument(self, flag: str) -> bool:
        """Whether the further arguments have a flag.

        Args:
            flag: The flag with its dashes.

        Returns:
            True if it is there, with or without a value.
        """
        return any(argument.split("=")[0] == flag for argument in self.server_arguments)
