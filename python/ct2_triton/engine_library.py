# SPDX-License-Identifier: Apache-2.0
"""Finds the CTranslate2 shared library inside the ``ctranslate2`` wheel, and opens it for the core.

The wheel keeps its library and a private libgomp in ``ctranslate2.libs`` beside the package. Both
the compiled core and the Triton backend use that one library; neither needs the Python module
``ctranslate2`` to be imported.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.errors import Ct2TritonError

if TYPE_CHECKING:
    from types import ModuleType


class EngineLibraryError(Ct2TritonError):
    """CTranslate2's library is missing or does not open: reinstall the ``ctranslate2`` wheel."""


@dataclass(frozen=True)
class EngineLibrary:
    """The files of one CTranslate2 wheel that a process has to open.

    Attributes:
        library: libctranslate2, under the mangled name the wheel gives it.
        dependencies: Private libraries beside it (libgomp), to be opened before it.
    """

    library: Path
    dependencies: tuple[Path, ...]


def find_engine_library(directory: Path | None = None) -> EngineLibrary:
    """Find CTranslate2's library without importing the package.

    Args:
        directory: Folder that holds the library; None for the installed wheel's.

    Returns:
        The library and what it needs.

    Raises:
        EngineLibraryError: If there is no such folder or no library in it.
    """
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


def load_core() -> ModuleType:
    """Open CTranslate2's library for everyone in the process, then import the compiled core.

    The core carries no dependency entry for CTranslate2 (the library's file name differs from
    release to release), so its symbols must be in the process's global scope.

    Returns:
        The module ``ct2_triton._core``.

    Raises:
        EngineLibraryError: If CTranslate2's library cannot be found or opened.
        ImportError: If the package was installed without its compiled core.
    """
    engine = find_engine_library()
    try:
        # By name already loaded, libgomp is found even by releases that carry no run path.
        for dependency in engine.dependencies:
            ctypes.CDLL(str(dependency))
        ctypes.CDLL(str(engine.library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise EngineLibraryError(f"cannot open CTranslate2's library: {error}") from error
    return importlib.import_module("ct2_triton._core")


def _wheel_library_folder() -> Path:
    spec = importlib.util.find_spec("ctranslate2")
    if spec is None or spec.origin is None:
        raise EngineLibraryError("the package ctranslate2 is missing: 'pip install ctranslate2'")
    return Path(spec.origin).parent.parent / "ctranslate2.libs"
