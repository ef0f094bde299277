# SPDX-License-Identifier: Apache-2.0
"""Checks that the packages a preparation needs are there, in versions that work together."""

from __future__ import annotations

import itertools
from importlib import metadata
from typing import TYPE_CHECKING

from ct2_triton.errors import MissingPackageError
from ct2_triton.prepare.layout import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_INSTALL = "pip install 'ct2-triton[convert]'"
_INSTALL_PREPARE = "pip install 'ct2-triton[prepare]'"
_CPU_BUILD = (
    "; that brings PyTorch's CUDA build of several GB unless PIP_EXTRA_INDEX_URL names PyTorch's "
    "CPU index"
)
_OLDEST_TRANSFORMERS, _NEXT_TRANSFORMERS = (4, 57, 6), (6,)
_OLDEST_TORCH_FOR_PICKLES = (2, 6)
# Families whose tokenizer or config of transformers 5 earlier converters cannot read.
_CONVERTED_SINCE_4_7 = ("nllb", "m2m100", "mbart25")
# What every preparation needs, a model that is converted already too.
_NEEDED = (
    "ctranslate2",
    "huggingface_hub",
    "langcodes",
    "language_data",
    "protobuf",
    "regex",
    "sentencepiece",
    "tokenizers",
)
_NEEDED_TO_CONVERT = {
    Kind.TRANSFORMERS: ("torch", "transformers"),
    Kind.OPENNMT_PY: ("torch",),
}
_NEEDED_FOR_SHORTLISTS = ("langcodes", "regex")


def check_environment() -> dict[str, str]:
    """Look up, without importing them, the packages that every preparation needs."""
    return _versions(_NEEDED, _INSTALL_PREPARE)


def check_conversion(kind: Kind) -> dict[str, str]:
    """Look up, without importing it, what the conversion of a kind of model needs beyond that.

    MissingPackageError where transformers is older or newer than what is supported, or PyTorch is
    too old for a pickle.
    """
    try:
        versions = _versions(_NEEDED_TO_CONVERT.get(kind, ()), _INSTALL + _CPU_BUILD)
    except MissingPackageError as error:
        raise MissingPackageError(
            f"this is a {kind.value}, whose conversion needs more: {error}"
        ) from error
    if "transformers" in versions:
        _check_transformers(versions["transformers"])
    if kind is Kind.OPENNMT_PY:
        _check_torch(versions["torch"])
    return versions


def _check_torch(found: str) -> None:
    """Refuse a PyTorch whose `weights_only` lets a pickle run code (CVE-2025-32434)."""
    if _numbers(found) < _OLDEST_TORCH_FOR_PICKLES:
        raise MissingPackageError(
            f"this is a {Kind.OPENNMT_PY.value}, a pickle that PyTorch reads safely from 2.6 on, "
            f"and the installed PyTorch is {found}; {_INSTALL}{_CPU_BUILD}"
        )


def _check_transformers(found: str) -> None:
    if not _OLDEST_TRANSFORMERS <= _numbers(found) < _NEXT_TRANSFORMERS:
        raise MissingPackageError(
            f"ct2-prepare works with transformers 4.57.6 and later, up to version 5, and found "
            f"{found}; {_INSTALL}"
        )


def check_pair(family: str, title: str, versions: Mapping[str, str]) -> None:
    """Check that the converter of the installed CTranslate2 knows the installed transformers."""
    engine, found = versions["ctranslate2"], versions["transformers"]
    if family not in _CONVERTED_SINCE_4_7 or _numbers(found) < (5,) or _numbers(engine) >= (4, 7):
        return
    raise MissingPackageError(
        f"CTranslate2 {engine} cannot convert {title} with transformers {found}; install "
        "'ctranslate2>=4.7', or 'transformers<5'"
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: `5.0.0rc1` is (5, 0)."""
    parts = itertools.takewhile(str.isdigit, version.split("."))
    return tuple(map(int, parts))


def check_shortlist() -> None:
    """Look up what a vocabulary shortlist of the shipped model needs."""
    _versions(_NEEDED_FOR_SHORTLISTS, _INSTALL_PREPARE)


def _versions(packages: Iterable[str], install: str) -> dict[str, str]:
    versions = {name: _version(name) for name in packages}
    missing = [name for name, version in versions.items() if not version]
    if missing:
        raise MissingPackageError(f"not installed: {', '.join(missing)}; {install}")
    return versions


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
