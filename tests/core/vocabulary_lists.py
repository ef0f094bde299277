# SPDX-License-Identifier: Apache-2.0
"""A model with a vocabulary list for each of some languages, and CTranslate2 with each list alone.

The truth of a list is a copy of the model with that list as its vmap.txt.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from core.engine_truth import END, EngineTruth, Row

SPECIAL = {0, END, 3}
"""What CTranslate2 itself makes candidates: unknown, end and start token."""


@dataclass(frozen=True)
class ListedModel:
    """A model whose languages have lists.

    Attributes:
        directory: Its files, with shortlists.json.
        lists: The ids of each list, by the id of its language in a prefix.
        folder: Where copies are written.
    """

    directory: Path
    lists: dict[int, Row]
    folder: Path

    @cached_property
    def whole(self) -> EngineTruth:
        """CTranslate2 with the whole vocabulary: it does not know the file."""
        return EngineTruth(self.directory)

    @cached_property
    def mapped(self) -> dict[int, Path]:
        """The copy of each language."""
        return {language: self._copy(language) for language in self.lists}

    def _copy(self, language: int) -> Path:
        copy = self.folder / f"vmap-{language}"
        shutil.copytree(self.directory, copy, ignore=shutil.ignore_patterns("shortlists.json"))
        tokens = " ".join(self.whole.tokens([*self.lists[language], language]))
        (copy / "vmap.txt").write_text(f"\t{tokens}\n", encoding="utf-8")
        return copy

    @cached_property
    def truths(self) -> dict[int, EngineTruth]:
        """CTranslate2 on each of them: a translator for each set of candidates."""
        return {language: EngineTruth(copy) for language, copy in self.mapped.items()}

    def truth(self, source: Row, prefix: Row, **options: Any) -> list[Row]:
        """What CTranslate2 answers to one row, with the list of its language if it has one."""
        truth = self.truths.get(prefix[0]) if prefix else None
        if truth is None:
            return self.whole.hypotheses(source, prefix, **options)
        return truth.hypotheses(source, prefix, use_vmap=True, **options)

    def allowed(self, prefix: Row) -> set[int]:
        """The ids that an answer in the language of a prefix may have."""
        return {*self.lists[prefix[0]], *SPECIAL, prefix[0]}


def entry(language: str, tokens: Any, **names: Any) -> dict[str, Any]:
    """One list, as shortlists.json has it."""
    return {"language": language, **names, "tokens": tokens}


def write_lists(directory: Path, entries: list[dict[str, Any]]) -> None:
    """Write shortlists.json."""
    text = json.dumps({"lists": entries})
    (directory / "shortlists.json").write_text(text, encoding="utf-8")


def listed_model(plain: Path, folder: Path, lists: dict[int, Row]) -> ListedModel:
    """Copy a model, and give it lists."""
    directory = folder / "listed"
    shutil.copytree(plain, directory)
    entries = [entry(f"language {i}", lists[i], prefix_id=i) for i in lists]
    write_lists(directory, entries)
    return ListedModel(directory, lists, folder)
