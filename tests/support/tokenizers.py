# SPDX-License-Identifier: Apache-2.0
"""Tokenizer folders of the tiny checkpoints, as ct2-prepare writes them, without a conversion."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ct2_triton.prepare import shipped
from ct2_triton.prepare.checkpoint import Checkpoint
from ct2_triton.prepare.conversion import copy_tokenizer
from ct2_triton.prepare.families import recognise
from ct2_triton.prepare.rules import build_rules
from ct2_triton.prepare.tokenizers import load_tokenizer
from ct2_triton.prepared_model import LANGUAGES_NAME, ModelSource

if TYPE_CHECKING:
    from pathlib import Path


def write_tokenizer(source: Path, folder: Path) -> Path:
    """Writes the tokenizer folder that a checkpoint's prepared model would have."""
    checkpoint = Checkpoint(source, ModelSource(id=source.name))
    family = recognise(checkpoint)
    tokenizer = load_tokenizer(source)
    vocabulary = family.vocabulary(tokenizer, checkpoint.config)
    rules = build_rules(family, checkpoint, tokenizer, vocabulary)
    folder.mkdir(parents=True)
    copy_tokenizer(checkpoint, folder, tokenizer, has_added=bool(rules.added_tokens))
    rules.write(folder)
    return folder


def write_demo_tokenizer(folder: Path) -> Path:
    """Writes the tokenizer folder of the demo model."""
    folder.mkdir(parents=True)
    copy_tokenizer(shipped.checkpoint(), folder)
    shutil.copy(shipped.FOLDER / LANGUAGES_NAME, folder)
    return folder
