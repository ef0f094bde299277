# SPDX-License-Identifier: Apache-2.0
"""Models with a vmap.txt: the candidates of a call are few, and must suffice for the search."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, ragged_rows
from ct2_triton import _core

ALWAYS = range(20, 40)


@pytest.fixture(scope="module")
def mapped_model(tmp_path_factory: pytest.TempPathFactory, engine_model: Path) -> Path:
    """A model whose map has 20 tokens, and the end token, for every source."""
    directory = tmp_path_factory.mktemp("mapped") / "model"
    shutil.copytree(engine_model, directory)
    vocabulary = EngineTruth(engine_model).vocabulary
    tokens = [vocabulary[i] for i in ALWAYS]
    rules = ["\t" + " ".join(tokens), f"{vocabulary[50]}\t{vocabulary[51]} {vocabulary[52]}"]
    (directory / "vmap.txt").write_text("\n".join(rules) + "\n", encoding="utf-8")
    return directory


@pytest.fixture
def mapped(mapped_model: Path) -> Any:
    return _core.Translator(str(mapped_model), {"compute_type": "float32", "use_vmap": "true"})


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_row_gives_what_ctranslate2_gives(
    mapped: Any, mapped_model: Path, beam_size: int
) -> None:
    truth = EngineTruth(mapped_model)
    sources, prefixes = ragged_rows(truth, 6)
    for source, prefix in zip(sources, prefixes, strict=True):
        options = {"beam_size": beam_size, "max_decoding_length": 20}
        [answer] = mapped.translate([source], [prefix], options)
        expected = truth.hypotheses(source, prefix, use_vmap=True, **options)
        assert [hypothesis["ids"] for hypothesis in answer] == expected


def test_only_candidates_are_generated(mapped: Any) -> None:
    [[hypothesis]] = mapped.translate([[60, 61, 62, END]], None, {"max_decoding_length": 20})
    special = {0, END, 3}
    assert set(hypothesis["ids"]) <= set(ALWAYS) | special


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beam_size": 11}, "parameter beam_size: value 11 needs more candidates than the 21"),
        ({"num_hypotheses": 11, "return_alternatives": True}, "parameter num_hypotheses: value 11"),
        ({"beam_size": 1, "sampling_topk": 22}, "parameter sampling_topk: value 22"),
        ({"suppress_sequences": "[[20, 21]]"}, "cannot be combined with use_vmap"),
    ],
    ids=str,
)
def test_what_the_candidates_do_not_suffice_for(
    mapped: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(_core.Error, match=text):
        mapped.translate([[60, 61, END]], None, options)
    mapped.translate([[60, 61, END]], None, {**options, "use_vmap": False})
    mapped.translate([[60, 61, END]], None, {"beam_size": 10, "max_decoding_length": 5})
