# SPDX-License-Identifier: Apache-2.0
"""What a server is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from ct2_triton.arguments import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.serve.ports import Ports


@dataclass(frozen=True)
class ServerOptions:
    """What a server is started with.

    Attributes:
        model_repositories: Folders of models.
        host: Address that the ports are bound to.
        http_host: Another address for HTTP; None for the same.
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
        """Tell whether the further arguments have a flag.

        Args:
            flag: The flag with its dashes.

        Returns:
            True if it is there, with or without a value.
        """
        return any(argument.split("=")[0] == flag for argument in self.server_arguments)
