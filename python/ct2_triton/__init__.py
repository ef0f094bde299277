# SPDX-License-Identifier: Apache-2.0
"""Serve CTranslate2 translation models with Triton: prepare, serve, translate.

Importing the package is quick and needs neither the compiled parts nor any extra. The compiled
core is reached as ``from ct2_triton import _core``: that attribute is resolved on first use,
because CTranslate2's library has to be found before the core is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

# The one place of the version: pyproject.toml and CMake read it from this line.
__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """Resolve ``_core``, finding CTranslate2's library first."""
    if name != "_core":
        raise AttributeError(f"module 'ct2_triton' has no attribute {name!r}")
    from ct2_triton.engine_library import load_core

    return load_core()
