# SPDX-License-Identifier: Apache-2.0
"""Find a tritonserver and its libraries, and warn of known crashes of its release."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import is_loopback
from ct2_triton.serve.errors import ServerNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ct2_triton.serve.options import ServerOptions

SERVER_VARIABLE = "TRITONSERVER"
_IMAGE_FOLDER = Path("/opt/tritonserver")


@dataclass(frozen=True)
class ServerInstallation:
    """One tritonserver on this machine.

    Attributes:
        executable: The binary, links resolved.
        backends: Folder of its backends; it may not exist.
        python_stubs: Folder of Python backend stubs by Python version (separate in the
            nvidia-pytriton wheel); it may not exist.
        caches: Folder of cache implementations; it may not exist.
    """

    executable: Path
    backends: Path
    python_stubs: Path
    caches: Path


def find_server(executable: Path | None = None) -> ServerInstallation:
    """Find a tritonserver, unless one is named.

    It is the one in the variable TRITONSERVER, on PATH, in /opt/tritonserver or in the wheel
    nvidia-pytriton, in this order. The wheel is not imported.
    """
    named = executable or _named_by_variable()
    if named is not None:
        if not os.access(named, os.X_OK) or named.is_dir():
            raise ServerNotFoundError(f"{named} is not an executable tritonserver")
        return _installation(named)
    for candidate in _usual_places():
        if os.access(candidate, os.X_OK):
            return _installation(candidate)
    raise ServerNotFoundError(
        "no tritonserver on PATH, in /opt/tritonserver or from the wheel nvidia-pytriton: "
        f"'pip install ct2-triton[server]', or set {SERVER_VARIABLE} to the binary"
    )


def _named_by_variable() -> Path | None:
    value = os.environ.get(SERVER_VARIABLE)
    return Path(value) if value else None


def _usual_places() -> Iterator[Path]:
    on_path = shutil.which("tritonserver")
    if on_path:
        yield Path(on_path)
    yield _IMAGE_FOLDER / "bin" / "tritonserver"
    wheel = importlib.util.find_spec("pytriton")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "tritonserver" / "bin" / "tritonserver"


def _installation(executable: Path) -> ServerInstallation:
    resolved = executable.resolve()
    root = resolved.parent.parent
    return ServerInstallation(
        executable=resolved,
        backends=root / "backends",
        python_stubs=root / "python_backend_stubs",
        caches=root / "caches",
    )


@dataclass(frozen=True)
class ReleaseDefect:
    """A defect by which a client can crash a server.

    Attributes:
        port: The affected port: "http" or "grpc".
        fixed_in: The first version of tritonserver without it.
        release: NVIDIA's name of that release.
        effect: Text of the warning, with a placeholder for the version.
    """

    port: str
    fixed_in: tuple[int, ...]
    release: str
    effect: str


DEFECTS = (
    ReleaseDefect(
        "http",
        (2, 69),
        "26.05",
        "a client that reaches the HTTP port can crash tritonserver {version} by one request, as "
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
    ReleaseDefect(
        "grpc",
        (2, 59, 1),
        "25.07",
        "a client that reaches the gRPC port can crash tritonserver {version} by asking for "
        "classes of a text, as docs/security.md says: let only clients that you trust reach it",
    ),
)


def release_warnings(options: ServerOptions, version: str) -> list[str]:
    """Return a sentence for each defect that other machines can trigger on this server."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    return [
        defect.effect.format(version=version or "of this version")
        for defect in DEFECTS
        if not is_loopback(options.hosts[defect.port]) and numbers < defect.fixed_in
    ]
