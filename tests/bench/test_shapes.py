# SPDX-License-Identifier: Apache-2.0
"""Models made for measuring: they copy their source and end, in every library and precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest

from ct2_triton.bench import shapes
from ct2_triton.bench.shapes import SHAPES, Shape, write_shape
from ct2_triton.prepare import PrepareOptions, prepare
from support.prepared import proofs_of

END, ENGLISH, GERMAN = 2, 4002, 4003
# The widths and heads of real shapes, without their size.
SMALL = {"narrow": Shape(512, 2, 512, 8, 4100), "wide": Shape(1024, 2, 512, 16, 4100)}


@pytest.fixture(scope="module", params=SMALL)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(shapes.SHAPES, request.param, SMALL[request.param])
        return write_shape(request.param, tmp_path_factory.mktemp("shapes"))


def sources() -> list[list[int]]:
    """From the shortest to what no sentence is as long as; a token may follow itself."""
    rng = np.random.default_rng(5)
    rows = [rng.integers(4, 4000, size=n).tolist() for n in (1, 2, 3, 10, 18, 40, 80, 200)]
    return [*rows, [7, 7, 7], [7] * 40]


def test_generate_copies(checkpoint: Path) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM

    model: Any = AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    start = torch.tensor([[END, GERMAN]])
    for ids in sources():
        row = torch.tensor([[ENGLISH, *ids, END]])
        with torch.inference_mode():
            answer = model.generate(row, decoder_input_ids=start, max_length=256)[0].tolist()
        assert answer == [END, GERMAN, *ids, END]


@pytest.mark.parametrize(
    ("checkpoint", "precision"),
    [("narrow", "int8"), ("narrow", "float32"), ("wide", "int8")],
    indirect=["checkpoint"],
)
def test_a_prepared_shape_copies(checkpoint: Path, precision: str, tmp_path: Path) -> None:
    """In one batch: rows end when they have ended, whatever the others do."""
    options = PrepareOptions(
        str(checkpoint), tmp_path, name="copy", quantization=precision, placeholders=False
    )
    with proofs_of(4):  # which hold float32 against the checkpoint
        folder = prepare(options).model_folder
    tokens = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    rows = [[tokens[i] for i in (ENGLISH, *ids, END)] for ids in sources()]
    translator = ctranslate2.Translator(str(folder), compute_type=precision)
    results = translator.translate_batch(
        rows, target_prefix=[[tokens[GERMAN]]] * len(rows), beam_size=1
    )
    assert [[tokens[GERMAN], *row[1:-1]] for row in rows] == [r.hypotheses[0] for r in results]


def test_equal_seeds_give_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(shapes.SHAPES, "narrow", SMALL["narrow"])
    files = [
        (write_shape("narrow", tmp_path / str(i), seed) / "model.safetensors").read_bytes()
        for i, seed in enumerate((1, 1, 2))
    ]
    assert files[0] == files[1] != files[2]


def test_sizes() -> None:
    """The parameters that the names promise, in millions: tied embeddings counted once."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, NllbTokenizer

    tokenizer: Any = NllbTokenizer.from_pretrained(shapes.TOKENIZER)
    millions = {
        "transformer-base": 61, "marian-base": 61, "opus-mt": 74, "m2m100-418m": 484,
        "nllb-600m": 615,
    }  # fmt: skip
    with torch.device("meta"):  # no memory
        for name, shape in SHAPES.items():
            model = AutoModelForSeq2SeqLM.from_config(shapes.shape_config(shape, tokenizer))
            parameters = (one for one in model.parameters() if one.requires_grad)
            assert round(sum(one.numel() for one in parameters) / 1e6) == millions[name]
