# SPDX-License-Identifier: Apache-2.0
"""The files of a vocabulary shortlist: vmap.txt for all languages, or shortlists.json for each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MAP_NAME = "vmap.txt"
LISTS_NAME = "shortlists.json"


def write_map(tokens: Iterable[str], model: Path) -> None:
    """Write vmap.txt, which CTranslate2 reads: candidates for every source."""
    (model / MAP_NAME).write_text("\t" + " ".join(tokens) + "\n", encoding="utf-8")


def write_lists(lists: Sequence[dict[str, Any]], model: Path) -> None:
    """Write shortlists.json, which the backend reads.

    Each list has `language`, `prefix_id` or `source_id`, and `tokens` (ids).
    """
    (model / LISTS_NAME).write_text(json.dumps({"lists": lists}) + "\n", encoding="utf-8")


def read_lists(model: Path) -> dict[str, list[int]]:
    """Read the ids of each list of shortlists.json by language; empty without the file."""
    file = model / LISTS_NAME
    if not file.is_file():
        return {}
    lists = json.loads(file.read_text(encoding="utf-8"))["lists"]
    return {entry["language"]: entry["tokens"] for entry in lists}


def link_with_map(tokens: Iterable[str], model: Path, folder: Path) -> Path:
    """Fill an empty folder with links to a model's files, and other candidates for every source."""
    for file in model.iterdir():
        if file.name not in (LISTS_NAME, MAP_NAME):
            (folder / file.name).symlink_to(file.resolve())
    write_map(tokens, folder)
    return folder
