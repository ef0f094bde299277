# SPDX-License-Identifier: Apache-2.0
"""A model with a vocabulary shortlist: who uses it, and what the server counts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.vocabulary_lists import entry, write_lists
from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadFailure, LoadModel
from server.helpers import END, Connection, Ids, Reference, sentences
from support.metrics import scrape
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 12}
ALWAYS = range(20, 60)
LISTED = ("deu_Latn", "fra_Latn")


@pytest.fixture
def mapped_model(nllb_engine_model: Path, reference: Reference, tmp_path: Path) -> Path:
    folder = tmp_path / "mapped"
    shutil.copytree(nllb_engine_model, folder)
    tokens = [*reference.tokens(list(ALWAYS)), *LISTED, "</s>"]
    (folder / "vmap.txt").write_text("\t" + " ".join(tokens) + "\n", encoding="utf-8")
    return folder


def config(reference: Reference, **values: Any) -> str:
    languages = [reference.id(code) for code in LISTED]
    return configs.plain(use_vmap=True, vmap_prefix_ids=languages, **LIMIT, **values)


def counts(server: TritonServer, model: str) -> dict[str, int]:
    """Rows of a model by whether they used the map; nothing where it has none."""
    found = scrape(server, model).values
    return {key[1]: int(rows) for key, rows in found.items() if key[0] == "ct2_vmap_rows_total"}


def expected(mapped: Path, reference: Reference, rows: list[tuple[Ids, Ids]]) -> list[Ids]:
    """By CTranslate2, each row with a translator of its own."""
    answers = []
    for row, prefix in rows:
        listed = reference.vocabulary[prefix[0]] in LISTED
        truth = Reference(mapped) if listed else reference
        answers.append(truth.translate(row, prefix, use_vmap=listed, **LIMIT))
    return answers


@pytest.mark.parametrize("beam_size", [1, 3])
def test_rows_of_other_languages_have_the_whole_vocabulary(
    load: LoadModel,
    connection: Connection,
    reference: Reference,
    mapped_model: Path,
    beam_size: int,
) -> None:
    """Alone, and in the company of the others."""
    model = load(config(reference, beam_size=beam_size), engine_model=mapped_model)
    rows = sentences(reference, 12)
    whole = [reference.translate(row, prefix, beam_size=beam_size, **LIMIT) for row, prefix in rows]
    alone = [connection.translate(model, row, prefix) for row, prefix in rows]
    candidates = {*ALWAYS, *map(reference.id, LISTED), 0, END, 3}
    for answer, full, (_, prefix) in zip(alone, whole, rows, strict=True):
        if reference.vocabulary[prefix[0]] in LISTED:
            assert set(answer) <= candidates
            assert answer != full
        else:
            assert answer == full
    pending = [connection.start(model, [row], [prefix]) for row, prefix in rows]
    together = [p.get_result().as_numpy("OUTPUT_IDS")[0].tolist() for p in pending]
    assert together == alone


def test_the_answers_are_those_of_ctranslate2(
    load: LoadModel, connection: Connection, reference: Reference, mapped_model: Path
) -> None:
    model = load(config(reference, beam_size=2), engine_model=mapped_model)
    rows = sentences(reference, 6, seed=11)
    answers = [connection.translate(model, row, prefix) for row, prefix in rows]
    assert answers == expected(mapped_model, reference, rows)


def test_the_server_counts_rows_with_and_without(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    reference: Reference,
    mapped_model: Path,
) -> None:
    model = load(config(reference, pad_id=1), "counted", engine_model=mapped_model)
    assert counts(server, model) == {"used": 0, "unused": 0}
    rows = sentences(reference, 8)  # two of each language
    short = [[*row[:2], END] for row, _ in rows]
    connection.infer(model, short, [prefix for _, prefix in rows])
    for row, prefix in rows:
        connection.translate(model, row, prefix)
    for row, prefix in rows[:3]:
        connection.translate(model, row, prefix, use_vmap=False)
    connection.infer(model, [[END]], [rows[0][1]])  # nothing to translate
    connection.refusal(model, [[-1]], [rows[0][1]])
    wait_until(lambda: sum(counts(server, model).values()) == 19)
    assert counts(server, model) == {"used": 8, "unused": 11}
    connection.raw.load_model(model)
    assert counts(server, model) == {"used": 8, "unused": 11}


def test_rows_have_the_list_of_their_language(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    reference: Reference,
    nllb_engine_model: Path,
    tmp_path: Path,
) -> None:
    """Two languages with lists of their own, two without: alone, together, and counted."""
    lists = dict(zip(LISTED, (range(20, 60), range(50, 120)), strict=True))
    listed = tmp_path / "listed"
    shutil.copytree(nllb_engine_model, listed)
    write_lists(
        listed,
        [entry(code, list(ids), prefix_id=reference.id(code)) for code, ids in lists.items()],
    )
    truths = {}
    for code, ids in lists.items():
        copy = tmp_path / code
        shutil.copytree(nllb_engine_model, copy)
        line = "\t" + " ".join([*reference.tokens(list(ids)), code]) + "\n"
        (copy / "vmap.txt").write_text(line, encoding="utf-8")
        truths[code] = Reference(copy)
    model = load(configs.plain(use_vmap=True, **LIMIT), "lists", engine_model=listed)
    rows = sentences(reference, 16)
    answers = [
        truths.get(reference.vocabulary[prefix[0]], reference).translate(
            row, prefix, use_vmap=True, **LIMIT
        )
        for row, prefix in rows
    ]
    assert [connection.translate(model, row, prefix) for row, prefix in rows] == answers
    pending = [connection.start(model, [row], [prefix]) for row, prefix in rows]
    together = [p.get_result().as_numpy("OUTPUT_IDS")[0].tolist() for p in pending]
    assert together == answers
    wait_until(lambda: sum(counts(server, model).values()) == 32)
    assert counts(server, model) == {"used": 16, "unused": 16}
    text = connection.refusal(model, [rows[0][0]], [rows[0][1]], beam_size=30)
    assert "that shortlists.json has for deu_Latn" in text
    assert connection.translate(model, *rows[0]) == answers[0]


def test_a_model_without_a_map_has_no_counter(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(use_vmap=True, **LIMIT), "unmapped")
    row, prefix = sentences(reference, 1)[0]
    assert connection.translate(model, row, prefix) == reference.translate(row, prefix, **LIMIT)
    assert counts(server, model) == {}


def test_a_map_too_small_for_the_beam_is_refused_at_load(
    load_failure: LoadFailure, reference: Reference, mapped_model: Path
) -> None:
    text = load_failure(config(reference, beam_size=30), engine_model=mapped_model)
    assert "parameter beam_size: value 30 needs more candidates than the 43 that vmap.txt" in text
