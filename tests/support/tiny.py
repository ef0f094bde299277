# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints and CTranslate2 models, made once and kept in build/ by their recipe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import tiny_models
from support.made_once import made_once
from tiny_models import TinyOptions

ROOT = Path(__file__).resolve().parents[2]
_CACHE = ROOT / "build" / "test-models"


def tiny_checkpoint(family: str, options: TinyOptions | None = None) -> Path:
    """A Hugging Face checkpoint of a family; read it, do not change it."""
    options = options or TinyOptions()
    pinned = _pinned("transformers")
    key = _key(family, repr(options), pinned)

    def make(folder: Path) -> Path:
        assert version("transformers") == pinned, f"made with transformers {pinned} alone"
        return tiny_models.make(family, folder, options)

    return _cached(f"{family}-{key}", make)


def tiny_engine_model(
    family: str, options: TinyOptions | None = None, quantization: str | None = None
) -> Path:
    """The CTranslate2 model of that checkpoint; read it, do not change it."""
    checkpoint = tiny_checkpoint(family, options)
    name = f"{checkpoint.name}-{quantization or 'float32'}-{version('ctranslate2')}"
    return _cached(name, lambda folder: tiny_models.convert(checkpoint, folder, quantization))


def _pinned(package: str) -> str:
    """The version of a package in the main environment; another run finds what this one made."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(pin for pin in pins if pin.startswith(f"{package}==")).split("==")[1]


def _key(*parts: str) -> str:
    digest = hashlib.sha256(repr(parts).encode())
    for source in sorted((ROOT / "tests" / "tiny").glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _cached(name: str, make: Callable[[Path], object]) -> Path:
    return made_once(_CACHE / name, make)
