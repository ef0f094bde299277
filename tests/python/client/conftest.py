# SPDX-License-Identifier: Apache-2.0
"""Prepared tokenizers of every family."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import Tokenizer, TranslationClient
from support.fault_server import FaultServer, serving
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


@pytest.fixture
def tokenizer(tokenizer_folder: TokenizerFolder) -> Tokenizer:
    return Tokenizer(tokenizer_folder("nllb"))


@asynccontextmanager
async def client_of(
    server: FaultServer, tokenizer: Tokenizer, **settings: Any
) -> AsyncIterator[TranslationClient]:
    """Serves, and gives a client of it."""
    async with (
        serving(server) as url,
        TranslationClient(url, "m", tokenizer=tokenizer, **settings) as client,
    ):
        yield client
