# SPDX-License-Identifier: Apache-2.0
"""The files of our backend, their installation into an existing server, and the backends folder.

A wheel cannot contain links, and the library of CTranslate2 calls loads CTranslate2 under one fixed
name from its own folder, so the backend's folder is assembled on each machine. The backends folder
of a tritonserver contains links to our backend, to every backend of the server, and to the Python
backend's stub for the running interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import ct2_triton
from ct2_triton.engine_library import (
    EngineLibrary,
    EngineLibraryError,
    find_engine_library,
    gpu_images,
)
from ct2_triton.serve.errors import BackendFolderError, PluginMissingError
from ct2_triton.shared_files import linked_folder, user_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.serve.installation import ServerInstallation

BACKEND_NAME = "ctranslate2"
PLUGIN_NAME = "libtriton_ctranslate2.so"
CALLS_NAME = "libct2triton_calls.so"  # linked to CTranslate2; the plugin opens it
PLUGIN_VARIABLE = "CT2_TRITON_PLUGIN"
# In both libraries, because the plugin refuses a library of calls of another build.
_BUILD = re.compile(rb"ct2-triton [0-9.]+, build [0-9a-f]{12}")
# Prints why the plugin would refuse the library of calls, or the engine's version.
_OPEN_CALLS = """
import ctypes, sys
complaint = ctypes.create_string_buffer(1024)
library = ctypes.CDLL(sys.argv[1])
library.ct2triton_open_calls.restype = ctypes.c_void_p
if not library.ct2triton_open_calls(sys.argv[2].encode(), complaint, len(complaint)):
    sys.exit(complaint.value.decode())
"""


@dataclass(frozen=True)
class BackendFiles:
    """The plugin and CTranslate2.

    Attributes:
        plugin: libtriton_ctranslate2.so. libct2triton_calls.so is in the same folder.
        engine: CTranslate2's library with its dependencies.
    """

    plugin: Path
    engine: EngineLibrary

    @property
    def calls(self) -> Path:
        """The library of CTranslate2 calls."""
        return self.plugin.with_name(CALLS_NAME)

    def by_name(self) -> dict[str, Path]:
        """Return the file for each name in the backend's folder."""
        names = {PLUGIN_NAME: self.plugin, CALLS_NAME: self.calls}
        return {**names, **gpu_images(self.plugin.parent), **self.engine.links()}


def find_backend_files(
    plugin: Path | None = None, engine_directory: Path | None = None
) -> BackendFiles:
    """Find the plugin of this package and the engine of the ``ctranslate2`` wheel.

    Args:
        plugin: Another build of the plugin; None: the one that the variable CT2_TRITON_PLUGIN
            names, else the installed one.
        engine_directory: Folder with another CTranslate2 library; None: the installed wheel's.

    Returns:
        The files.

    Raises:
        PluginMissingError: If there is no plugin, or no library of calls next to it.
        EngineLibraryError: If there is no CTranslate2 library.
    """
    files = BackendFiles(plugin or _find_plugin(), find_engine_library(engine_directory))
    if not files.calls.is_file():
        raise PluginMissingError(
            f"{files.calls} is missing: it belongs to the Triton backend {files.plugin.name}"
        )
    return files


def check_calls(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Open the library of calls as the plugin does, in a child process."""
    build = _BUILD.search((folder / PLUGIN_NAME).read_bytes())
    arguments = [sys.executable, "-I", "-c", _OPEN_CALLS, str(folder / CALLS_NAME)]
    result = subprocess.run(
        [*arguments, build[0].decode() if build else "an unknown build"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode == 0:
        return
    said = result.stderr.strip().splitlines() or [f"it ends with status {result.returncode}"]
    raise EngineLibraryError(f"CTranslate2 cannot be used by the backend in {folder}: {said[-1]}")


def install_backend(backends_directory: Path, files: BackendFiles, *, replace: bool) -> Path:
    """Copy a self-contained backend into a folder such as /opt/tritonserver/backends."""
    target = backends_directory / BACKEND_NAME
    if target.exists() and not replace:
        raise BackendFolderError(f"{target} is there already: replace it with --force")
    try:
        backends_directory.mkdir(parents=True, exist_ok=True)
        _copy_and_rename(files, target)
    except OSError as error:
        raise BackendFolderError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def _copy_and_rename(files: BackendFiles, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{BACKEND_NAME}-", dir=target.parent) as temporary:
        new, old = Path(temporary) / "new", Path(temporary) / "old"
        new.mkdir()
        for name, source in files.by_name().items():
            shutil.copyfile(source, new / name)
            (new / name).chmod(0o755)
        if target.exists():
            target.rename(old)
        new.rename(target)


def _find_plugin() -> Path:
    value = os.environ.get(PLUGIN_VARIABLE)
    if value:
        named = Path(value)
        if not named.is_file():
            raise PluginMissingError(f"{PLUGIN_VARIABLE} names {named}, which is not there")
        return named.resolve()
    # An editable install has sources and built files in two folders, hence the loop.
    for folder in ct2_triton.__path__:
        candidate = Path(folder) / "backends" / BACKEND_NAME / PLUGIN_NAME
        if candidate.is_file():
            return candidate
    raise PluginMissingError(
        "this installation of ct2-triton has no Triton backend (it was installed with "
        "CT2TRITON_BUILD_PLUGIN=OFF, or not on Linux x86-64): "
        "'pip install --force-reinstall --no-deps ct2-triton' on Linux x86-64 with a C++ compiler"
    )


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
