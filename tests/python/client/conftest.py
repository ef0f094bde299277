# SPDX-License-Identifier: Apache-2.0
"""Prepared tokenizers of every family."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from support.prepared import prepare_tiny

TokenizerFolder = Callable[[str], Path]


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> TokenizerFolder:
    """A function that gives the tokenizer folder of a family's tiny model, as ct2-prepare makes it.

    The folder lies in `<repository>/<family>/tokenizer`.
    """
    repository = tmp_path_factory.mktemp("prepared")

    @cache
    def folder(family: str) -> Path:
        return prepare_tiny(family, repository, family).tokenizer_folder

    return folder
