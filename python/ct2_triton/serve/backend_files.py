# SPDX-License-Identifier: Apache-2.0
"""The files of our backend, and their installation into an existing server.

A wheel cannot contain links, and the library of CTranslate2 calls loads CTranslate2 under one fixed
name from its own folder, so the backend's folder is assembled on each machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
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

if TYPE_CHECKING:
    from collections.abc import Mapping

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
