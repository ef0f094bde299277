# SPDX-License-Identifier: Apache-2.0
"""Checks that the packages a preparation needs are there, in versions that work together."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from ct2_triton.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_INSTALL = "pip install 'ct2-triton[convert]'"
_INSTALL_WRITING = "pip install 'ct2-triton[client]'"
_OLDEST_TRANSFORMERS_4 = 57
_NEEDED = (
    "ctranslate2",
    "filelock",
    "huggingface_hub",
    "langcodes",
    "protobuf",
    "regex",
    "sentencepiece",
    "tokenizers",
    "torch",
    "transformers",
    "tritonclient",
)
_NEEDED_FOR_WRITING = ("filelock", "protobuf", "tritonclient")
_NEEDED_FOR_SHORTLISTS = ("langcodes", "regex", "sentencepiece")


def check_environment() -> dict[str, str]:
    """Looks the packages up, without importing them.

    Returns:
        Version of each package.

    Raises:
        MissingPackageError: One is missing, or transformers is older than 4.57 or of version 5,
            which gives other ids for NLLB and mBART-50 texts that end in a space, and writes
            tokenizer folders that version 4 cannot read.
    """
    versions = _versions(_NEEDED, _INSTALL)
    transformers = versions["transformers"]
    major, minor = map(int, transformers.split(".")[:2])
    if major != 4 or minor < _OLDEST_TRANSFORMERS_4:
        raise MissingPackageError(
            f"ct2-prepare works with transformers 4.{_OLDEST_TRANSFORMERS_4} and later releases "
            f"of version 4, and found {transformers}; {_INSTALL}"
        )
    return versions


def check_writing() -> None:
    """Looks up what writing the Triton configuration of the shipped model needs.

    Raises:
        MissingPackageError: A package is missing.
    """
    _versions(_NEEDED_FOR_WRITING, _INSTALL_WRITING)


def check_shortlist() -> None:
    """Looks up what a vocabulary shortlist of the shipped model needs beyond that.

    Raises:
        MissingPackageError: A package is missing.
    """
    _versions(_NEEDED_FOR_SHORTLISTS, _INSTALL)


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
