# SPDX-License-Identifier: Apache-2.0
"""The command line and the environment of a tritonserver."""

from __future__ import annotations

import os
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.serve.errors import ServeError
from ct2_triton.serve.machine import count_gpus, cublas_wheel_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.serve.backend_files import BackendFolder
    from ct2_triton.serve.installation import ServerInstallation
    from ct2_triton.serve.options import Ports, ServerOptions

# Flags of tritonserver that are set from the options, and how to set them.
_OURS = {
    "--id": "ct2-serve recognizes the server by it",
    "--model-repository": "use ct2-serve's --model-repository",
    "--model-store": "use ct2-serve's --model-repository",
    "--backend-directory": "ct2-serve assembles the backends of the server and its own",
    "--http-address": "use ct2-serve's --http-host",
    "--grpc-address": "use ct2-serve's --host",
    "--metrics-address": "use ct2-serve's --host",
    "--http-port": "use ct2-serve's --http-port",
    "--grpc-port": "use ct2-serve's --grpc-port",
    "--metrics-port": "use ct2-serve's --metrics-port",
    "--allow-http": "ct2-serve asks over HTTP whether the server is ready",
}


# A client that is silent for 40 s is disconnected, and its calls end.
# Clients may ping as often as ours does, and while they are idle.
_KEEPALIVE = {
    "--grpc-keepalive-time": 30_000,
    "--grpc-keepalive-timeout": 10_000,
    "--grpc-keepalive-permit-without-calls": 1,
    "--grpc-http2-max-pings-without-data": 0,  # no limit: else a client pings only twice
    "--grpc-http2-min-recv-ping-interval-without-data": 4_000,
}
_CLOSED_APIS = "shared-memory,logging,trace"
_FORWARDING_FLAGS = ("--grpc-header-forward-pattern", "--http-header-forward-pattern")
_RESTRICTING_FLAGS = ("--http-restricted-api", "--grpc-restricted-protocol")


def check_server_arguments(options: ServerOptions) -> None:
    """Refuse further arguments that contradict the options."""
    for flag, reason in _OURS.items():
        if options.has_argument(flag):
            raise ServeError(f"{flag} cannot be passed on to tritonserver: {reason}")


def exposure_warnings(options: ServerOptions) -> list[str]:
    """Return a sentence for each API that the arguments open to everyone who reaches the ports.

    There are none for a server that only this machine can reach.
    """
    explicit = re.search(r"--model-control-mode[= ]explicit", " ".join(options.server_arguments))
    restricted = all(options.has_argument(flag) for flag in _RESTRICTING_FLAGS)
    if options.is_local or not explicit or restricted:
        return []
    return [
        f"with --model-control-mode=explicit, clients that reach a port of {options.host} can load "
        "models, and so run code on this machine: restrict it, as docs/security.md says"
    ]


def server_command(
    options: ServerOptions,
    installation: ServerInstallation,
    folder: BackendFolder,
    ports: Ports,
    server_id: str,
    tenant_headers: Sequence[str] = (),
) -> list[str]:
    """Build the command line; the server hands those headers to its models."""
    command = [str(installation.executable), f"--id={server_id}"]
    command += [f"--model-repository={path.absolute()}" for path in options.model_repositories]
    command.append(f"--backend-directory={folder.backends}")
    for name, port in ports._asdict().items():
        command += [f"--{name}-address={options.hosts[name]}", f"--{name}-port={port}"]
    if installation.caches.is_dir() and not options.has_argument("--cache-directory"):
        command.append(f"--cache-directory={installation.caches}")
    if not options.has_argument("--allow-gpu-metrics") and count_gpus() == 0:
        command.append("--allow-gpu-metrics=false")
    command += [
        f"{flag}={value}" for flag, value in _KEEPALIVE.items() if not options.has_argument(flag)
    ]
    if tenant_headers:
        pattern = f"(?i)^({'|'.join(map(re.escape, tenant_headers))})$"
        command += [
            f"{flag}={pattern}" for flag in _FORWARDING_FLAGS if not options.has_argument(flag)
        ]
    return [*command, *closed_apis(options), *options.server_arguments]


def server_environment(options: ServerOptions, folder: BackendFolder) -> dict[str, str]:
    """Build the environment."""
    environment = dict(os.environ)
    # Spinning idle OpenMP threads slow down the working ones.
    environment.setdefault("OMP_WAIT_POLICY", "passive")
    # Python backend models run in the virtual environment that is first on PATH.
    _prepend(environment, "PATH", Path(sys.executable).parent)
    if folder.libraries.is_dir():
        _prepend(environment, "LD_LIBRARY_PATH", folder.libraries)
    cublas = cublas_wheel_folder()
    if cublas is not None:
        # Appended, so that libraries of the user or the system are found first.
        rest = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{rest}{os.pathsep}{cublas}" if rest else str(cublas)
    environment.update(options.environment)
    return environment


def closed_apis(options: ServerOptions) -> list[str]:
    """Return arguments that close unneeded APIs if other machines can reach the ports.

    They would allow clients to map shared memory of this machine, flood its log, or trace.
    Arguments that the user sets are skipped.
    """
    if options.is_local:
        return []
    key = f"{_CLOSED_APIS}:ct2-serve-closed={secrets.token_hex(16)}"  # kept secret
    return [f"{flag}={key}" for flag in _RESTRICTING_FLAGS if not options.has_argument(flag)]


def _prepend(environment: dict[str, str], variable: str, folder: Path) -> None:
    rest = environment.get(variable)
    environment[variable] = f"{folder}{os.pathsep}{rest}" if rest else str(folder)
