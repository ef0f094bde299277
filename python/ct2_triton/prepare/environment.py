# SPDX-License-Identifier: Apache-2.0
"""Checks that the packages a preparation needs are there, in versions that work together."""

from __future__ import annotations

from importlib import metadata

from ct2_triton.errors import MissingPackageError

_INSTALL = "pip install 'ct2-triton[convert]'"
_OLDEST_TRANSFORMERS_4 = 57
_NEEDED = (
    "ctranslate2",
    "huggingface_hub",
    "langcodes",
    "protobuf",
    "sentencepiece",
    "tokenizers",
    "torch",
    "transformers",
    "tritonclient",
)


def check_environment() -> dict[str, str]:
    """Looks the packages up, without importing them.

    Returns:
        Version of each package.

    Raises:
        MissingPackageError: One is missing, or transformers is older than 4.57 or of version 5,
            which gives other ids for NLLB and mBART-50 texts that end in a space, and writes
            tokenizer folders that version 4 cannot read.
    """
    versions = {name: _version(name) for name in _NEEDED}
    missing = [name for name, version in versions.items() if not version]
    if missing:
        raise MissingPackageError(f"not installed: {', '.join(missing)}; {_INSTALL}")
    transformers = versions["transformers"]
    major, minor = map(int, transformers.split(".")[:2])
    if major != 4 or minor < _OLDEST_TRANSFORMERS_4:
        raise MissingPackageError(
            f"ct2-prepare works with transformers 4.{_OLDEST_TRANSFORMERS_4} and later releases "
            f"of version 4, and found {transformers}; {_INSTALL}"
        )
    return versions


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
