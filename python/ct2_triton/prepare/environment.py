# SPDX-License-Identifier: Apache-2.0
"""Check that the packages of a preparation are installed, in compatible versions."""

from __future__ import annotations

import itertools
from importlib import metadata
from typing import TYPE_CHECKING

from ct2_triton.errors import MissingPackageError
from ct2_triton.prepare.checkpoint import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_INSTALL = "pip install 'ct2-triton[convert]'"
_INSTALL_PREPARE = "pip install 'ct2-triton[prepare]'"
_OR_CONVERT = ", or 'ct2-triton[convert]' for a Hugging Face checkpoint"
_CPU_BUILD = (
    "; that brings PyTorch's CUDA build of several GB unless PIP_EXTRA_INDEX_URL names PyTorch's "
    "CPU index"
)
_OLDEST_TRANSFORMERS, _NEXT_TRANSFORMERS = (4, 57, 6), (6,)
_OLDEST_TORCH_FOR_PICKLES = (2, 6)
# Families for which earlier converters cannot read the tokenizer or config of transformers 5.
_CONVERTED_SINCE_4_7 = ("nllb", "m2m100", "mbart25")
# Packages that every preparation needs, even of a converted model.
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
    """Check the packages that every preparation needs, without importing them."""
    return _versions(_NEEDED, _INSTALL_PREPARE + _OR_CONVERT)


def check_conversion(kind: Kind) -> dict[str, str]:
    """Check the further packages for a kind of model, without importing them.

    Raises MissingPackageError if transformers is older or newer than supported, or PyTorch is too
    old to read a pickle safely.
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
    """Refuse a PyTorch with which a pickle can run code despite `weights_only` (CVE-2025-32434)."""
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
    """Check that the installed CTranslate2's converter supports the installed transformers."""
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
    """Check the packages for a vocabulary shortlist of the shipped model."""
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
