# SPDX-License-Identifier: Apache-2.0
"""The files that make up our backend, and the command that copies them into a server of one's own.

A wheel cannot carry links, and the plugin asks the loader for CTranslate2 under one fixed name
beside itself; so the backend's folder is put together on the machine it runs on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import ct2_triton
from ct2_triton.engine_library import EngineLibrary, find_engine_library
from ct2_triton.serve.errors import BackendFolderError, PluginMissingError

BACKEND_NAME = "ctranslate2"
PLUGIN_NAME = "libtriton_ctranslate2.so"
GPU_IMAGES_NAME = "gpu_kernels.bin"  # as backend/src/engine/compute/gpu/gpu_place.cc asks for it
PLUGIN_VARIABLE = "CT2_TRITON_PLUGIN"


@dataclass(frozen=True)
class BackendFiles:
    """The plugin and the engine it runs on.

    Attributes:
        plugin: libtriton_ctranslate2.so.
        engine: CTranslate2's library with what it needs.
    """

    plugin: Path
    engine: EngineLibrary

    def by_name(self) -> dict[str, Path]:
        """List the files of the backend's folder.

        Returns:
            File name in the folder, to the file it stands for.
        """
        images = self.plugin.with_name(GPU_IMAGES_NAME)
        kernels = {GPU_IMAGES_NAME: images} if images.is_file() else {}
        return {PLUGIN_NAME: self.plugin, **kernels, **self.engine.links()}


def find_backend_files(
    plugin: Path | None = None, engine_directory: Path | None = None
) -> BackendFiles:
    """Find the plugin of this package and the engine of the ``ctranslate2`` wheel.

    Args:
        plugin: Another build of the plugin; None for the variable CT2_TRITON_PLUGIN, else the
            one installed with the package.
        engine_directory: Folder with another CTranslate2 library; None for the installed wheel's.

    Returns:
        The files.

    Raises:
        PluginMissingError: If there is no plugin.
        EngineLibraryError: If there is no CTranslate2 library.
    """
    return BackendFiles(plugin or _find_plugin(), find_engine_library(engine_directory))


def install_backend(backends_directory: Path, files: BackendFiles, *, replace: bool) -> Path:
    """Copy a self-contained backend into the backends folder of a server.

    Args:
        backends_directory: Folder of backends, such as /opt/tritonserver/backends.
        files: What to copy.
        replace: Whether a backend that is already there may be replaced.

    Returns:
        The backend's folder.

    Raises:
        BackendFolderError: If the folder is there already, or cannot be written.
    """
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
    # An editable install keeps sources and built files in two folders, hence the loop.
    for folder in ct2_triton.__path__:
        candidate = Path(folder) / "backends" / BACKEND_NAME / PLUGIN_NAME
        if candidate.is_file():
            return candidate
    raise PluginMissingError(
        "this installation of ct2-triton has no Triton backend (it was installed with "
        "CT2TRITON_BUILD_PLUGIN=OFF, or not on Linux x86-64): "
        "'pip install --force-reinstall --no-deps ct2-triton' on Linux x86-64 with a C++ compiler"
    )
