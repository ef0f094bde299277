# SPDX-License-Identifier: Apache-2.0
"""Assemble the backends folder of a tritonserver.

It contains links to our backend, to every backend of the server, and to the Python backend's stub
for the running interpreter.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.linked_folder import linked_folder, user_cache
from ct2_triton.serve.backend_files import BACKEND_NAME
from ct2_triton.serve.errors import BackendFolderError

if TYPE_CHECKING:
    from ct2_triton.serve.backend_files import BackendFiles
    from ct2_triton.serve.installation import ServerInstallation

_STUB_NAME = "triton_python_backend_stub"


@dataclass(frozen=True)
class BackendFolder:
    """An assembled folder.

    Attributes:
        backends: Value of --backend-directory.
        libraries: Folder for the loader's search path with this Python's shared library, for the
            stub. It does not exist if the stub does not need it.
    """

    backends: Path
    libraries: Path


def assemble(
    installation: ServerInstallation, files: BackendFiles, cache: Path | None = None
) -> BackendFolder:
    """Return the folder of the server's backends and ours, assembled if necessary."""
    links = _wanted_links(installation, files)
    try:
        folder = linked_folder((cache or user_cache()) / "backends", links)
    except OSError as error:
        raise BackendFolderError(
            f"cannot assemble the backend folder: {error}; "
            "XDG_CACHE_HOME may name a folder that can be written"
        ) from error
    return BackendFolder(folder / "backends", folder / "lib")


def _wanted_links(installation: ServerInstallation, files: BackendFiles) -> dict[str, Path]:
    """Return the target of each link by its relative path in the folder."""
    links = {}
    if installation.backends.is_dir():
        for backend in sorted(installation.backends.iterdir()):
            if backend.is_dir() and backend.name != BACKEND_NAME:
                links[f"backends/{backend.name}"] = backend
    python_links = _python_backend_links(installation)
    if python_links:
        del links["backends/python"]
        links.update(python_links)
    for name, source in files.by_name().items():
        links[f"backends/{BACKEND_NAME}/{name}"] = source.absolute()
    return links


def _python_backend_links(installation: ServerInstallation) -> dict[str, Path]:
    """Return links for a server whose Python stubs are not in the Python backend's folder."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = installation.python_stubs / version / _STUB_NAME
    backend = installation.backends / "python"
    if not stub.is_file() or not backend.is_dir() or (backend / _STUB_NAME).exists():
        return {}
    links = {
        f"backends/python/{entry.name}": entry
        for entry in sorted(backend.iterdir())
        if entry.is_file()
    }
    links[f"backends/python/{_STUB_NAME}"] = stub
    name = f"libpython{version}.so.1.0"
    library = Path(sysconfig.get_config_var("LIBDIR") or "/nowhere") / name
    if library.is_file():
        links[f"lib/{name}"] = library
    return links
