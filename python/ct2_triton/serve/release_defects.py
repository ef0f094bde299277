# SPDX-License-Identifier: Apache-2.0
"""What is known to end tritonservers of some releases. docs/security.md has the table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.arguments import is_loopback

if TYPE_CHECKING:
    from ct2_triton.serve.options import ServerOptions


@dataclass(frozen=True)
class ReleaseDefect:
    """A way to end a server from outside.

    Attributes:
        port: Where it comes from: "http" or "grpc".
        fixed_in: The first version of tritonserver without it.
        release: The same as NVIDIA names its releases.
        effect: What is said of it, with a place for the version.
    """

    port: str
    fixed_in: tuple[int, int]
    release: str
    effect: str


DEFECTS = (
    ReleaseDefect(
        "http",
        (2, 69),
        "26.05",
        "whoever reaches the HTTP port can end tritonserver {version} with one request, as "
        "docs/security.md says: keep HTTP to this machine with --http-host 127.0.0.1, and let "
        "others use gRPC",
    ),
    ReleaseDefect(
        "grpc",
        (2, 57),
        "25.04",
        "a client that cancels a gRPC call in the moment in which it ends can end tritonserver "
        "{version}, as docs/security.md says: let clients supersede requests, not cancel them",
    ),
)


def release_warnings(options: ServerOptions, version: str) -> list[str]:
    """Say what requests from other machines do to this server, a sentence for each defect."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return [
        defect.effect.format(version=version or "of this version")
        for defect in DEFECTS
        if not is_loopback(options.hosts[defect.port]) and numbers < defect.fixed_in
    ]
