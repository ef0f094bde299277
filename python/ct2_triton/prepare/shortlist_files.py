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
    """Write vmap.txt, which CTranslate2 reads: candidates for every source.

    Args:
        tokens: The candidates.
        model: Folder of CTranslate2 files.
    """
    (model / MAP_NAME).write_text("\t" + " ".join(tokens) + "\n", encoding="utf-8")


def write_lists(lists: Sequence[dict[str, Any]], model: Path) -> None:
    """Write shortlists.json, which the backend reads.

    Args:
        lists: Of each language `language`, `prefix_id` or `source_id`, and `tokens` (ids).
        model: Folder of CTranslate2 files.
    """
    (model / LISTS_NAME).write_text(json.dumps({"lists": lists}) + "\n", encoding="utf-8")


def read_lists(model: Path) -> dict[str, list[int]]:
    """Read shortlists.json.

    Args:
        model: Folder of CTranslate2 files.

    Returns:
        The ids of each list, by the code of its language; empty where there is no such file.
    """
    file = model / LISTS_NAME
    if not file.is_file():
        return {}
    lists = json.loads(file.read_text(encoding="utf-8"))["lists"]
    return {entry["language"]: entry["tokens"] for entry in lists}


def link_with_map(tokens: Iterable[str], model: Path, folder: Path) -> Path:
    """Make a folder of links to a model's files, with other candidates for every source.

    Args:
        tokens: The candidates.
        model: Folder of the CTranslate2 files.
        folder: Where to write; it exists and is empty.

    Returns:
        The folder.
    """
    for file in model.iterdir():
        if file.name not in (LISTS_NAME, MAP_NAME):
            (folder / file.name).symlink_to(file.resolve())
    write_map(tokens, folder)
    return folder
