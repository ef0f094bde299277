# SPDX-License-Identifier: Apache-2.0
"""Find the CTranslate2 shared library in the ``ctranslate2`` wheel, and open it for the core.

The wheel has its library and a private libgomp in ``ctranslate2.libs`` next to the package. Both
the compiled core and the Triton backend use that library, without importing the Python module
``ctranslate2``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.errors import Ct2TritonError
from ct2_triton.shared_files import linked_folder, user_cache

if TYPE_CHECKING:
    from types import ModuleType

_CORE = "ct2_triton._core"
# Selects another build of the core, as CT2_TRITON_PLUGIN selects one of the backend.
CORE_VARIABLE = "CT2_TRITON_CORE"
# The name that the core and the Triton backend ask the loader for.
ENGINE_NAME = "libctranslate2.so.4"
# As backend/src/engine/compute/gpu/gpu_place.cc asks for it, beside the core or the backend.
GPU_IMAGES_NAME = "gpu_kernels.bin"
# Without it, a second thread could get a partially initialized module.
_loading = threading.Lock()


class EngineLibraryError(Ct2TritonError):
    """CTranslate2's library is missing or does not open: reinstall the ``ctranslate2`` wheel."""


@dataclass(frozen=True)
class EngineLibrary:
    """The shared libraries of one CTranslate2 wheel.

    Attributes:
        library: libctranslate2, with the mangled name that it has in the wheel.
        dependencies: Private libraries that it loads from its own folder (libgomp).
    """

    library: Path
    dependencies: tuple[Path, ...]

    def links(self) -> dict[str, Path]:
        """Return the files by the names under which they are loaded, all from one folder."""
        return {ENGINE_NAME: self.library, **{path.name: path for path in self.dependencies}}


def find_engine_library(directory: Path | None = None) -> EngineLibrary:
    """Find CTranslate2's library, in a folder or in the wheel, without importing it."""
    folder = directory or _wheel_library_folder()
    libraries = sorted(folder.glob("libctranslate2*.so*"))
    if not libraries:
        raise EngineLibraryError(
            f"no libctranslate2 in {folder}: install a Linux wheel with 'pip install ctranslate2'"
        )
    if len(libraries) > 1:
        raise EngineLibraryError(
            f"{len(libraries)} CTranslate2 libraries in {folder}: "
            "reinstall with 'pip install --force-reinstall ctranslate2'"
        )
    return EngineLibrary(libraries[0], tuple(sorted(folder.glob("libgomp*.so*"))))


def gpu_images(folder: Path) -> dict[str, Path]:
    """Return the files of GPU kernels in a folder, by name."""
    images = folder / GPU_IMAGES_NAME
    return {GPU_IMAGES_NAME: images} if images.is_file() else {}


def load_core() -> ModuleType:
    """Import the compiled core from a folder with a link to CTranslate2's library.

    The library is not opened in the global scope of the process. It contains its own MKL and
    OpenMP, and other extensions that have theirs (torch) would call the wrong copy and crash.

    Returns:
        The module ``ct2_triton._core``: the build that the variable CT2_TRITON_CORE names, or the
        installed one.

    Raises:
        EngineLibraryError: If CTranslate2's library cannot be found or opened.
        ImportError: If the package was installed without its compiled core, or CT2_TRITON_CORE
            names a file that is not there.
    """
    with _loading:
        if _CORE not in sys.modules:
            sys.modules[_CORE] = _initialise_core()
        return sys.modules[_CORE]


def _initialise_core() -> ModuleType:
    binary = _find_core()
    images = gpu_images(binary.parent / "backends" / "ctranslate2")
    links = {binary.name: binary, **find_engine_library().links(), **images}
    try:
        path = linked_folder(user_cache() / "core", links) / binary.name
        loader = importlib.machinery.ExtensionFileLoader(_CORE, str(path))
        core_spec = importlib.util.spec_from_file_location(_CORE, path, loader=loader)
        assert core_spec is not None  # noqa: S101
        core = importlib.util.module_from_spec(core_spec)
    except (OSError, ImportError) as error:
        raise EngineLibraryError(f"cannot open CTranslate2's library: {error}") from error
    loader.exec_module(core)
    return core


def _find_core() -> Path:
    value = os.environ.get(CORE_VARIABLE)
    if value:
        named = Path(value)
        if not named.is_file():
            raise ImportError(f"{CORE_VARIABLE} names {named}, which is not there", name=_CORE)
        return named.resolve()
    spec = importlib.util.find_spec(_CORE)
    if spec is None or spec.origin is None:
        raise ImportError("ct2-triton was installed without its compiled core", name=_CORE)
    return Path(spec.origin)


def _wheel_library_folder() -> Path:
    spec = importlib.util.find_spec("ctranslate2")
    if spec is None or spec.origin is None:
        raise EngineLibraryError("the package ctranslate2 is missing: 'pip install ctranslate2'")
    return Path(spec.origin).parent.parent / "ctranslate2.libs"
