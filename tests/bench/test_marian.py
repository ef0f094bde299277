# SPDX-License-Identifier: Apache-2.0
"""Marian beside us: it has the weights of the others, and answers as they do or is not timed."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.bench import shapes
from ct2_triton.bench.contenders import ListContender, make_contender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.models import marian
from ct2_triton.bench.models.translator import Settings
from ct2_triton.bench.setup import Ids, Row, Setup
from ct2_triton.bench.shapes import Shape, set_marian_positions, write_shape
from support.prepared import proofs_of
from support.tiny import tiny_checkpoint

END = 0
needs_marian = pytest.mark.skipif(not find_spec("pymarian"), reason="pymarian is not installed")


def rows(count: int = 20) -> list[Row]:
    chooser = random.Random(3)
    lengths = [1, 2, 40, *(chooser.randrange(3, 30) for _ in range(count - 3))]
    return [Row((*(chooser.randrange(3, 1900) for _ in range(n)), END)) for n in lengths]


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    folder = tmp_path_factory.mktemp("marian")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(shapes.SHAPES, "small", Shape(512, 2, 512, 8, 4100, "marian"))
        return Setup(str(write_shape("small", folder)), folder, cores=2)


def answers_of(name: str, setup: Setup) -> tuple[list[Ids], list[Ids]]:
    """All rows in one job, and the first three alone."""

    async def translate() -> tuple[list[Ids], list[Ids]]:
        contender = make_contender(name, setup)
        assert isinstance(contender, ListContender)
        async with contender:
            together, _ = await contender.translate_list(rows())
            return together, (await contender.translate_each(rows()[:3]))[0]

    with proofs_of(4):
        return asyncio.run(translate())


@pytest.mark.parametrize("name", ["ctranslate2-int8", "transformers-float32"])
def test_the_shape_copies_in_every_library(name: str, setup: Setup) -> None:
    copies = [row.input_ids[:-1] for row in rows()]
    assert answers_of(name, setup) == (copies, copies[:3])


@needs_marian
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_marian_answers_as_the_others_do(precision: str, setup: Setup) -> None:
    copies = [row.input_ids[:-1] for row in rows()]
    assert answers_of(f"marian-{precision}", setup) == (copies, copies[:3])


@pytest.fixture
def loud(tmp_path: Path) -> Setup:
    """Random weights, all of which matter: no answer copies, and none ends by itself."""
    import torch
    from transformers import MarianMTModel

    checkpoint = tmp_path / "loud"
    shutil.copytree(tiny_checkpoint("marian-pair"), checkpoint)
    model: Any = MarianMTModel.from_pretrained(checkpoint)
    with torch.no_grad():
        set_marian_positions(model)
    model._keys_to_ignore_on_save = None
    model.save_pretrained(checkpoint)
    return Setup(str(checkpoint), tmp_path, max_decoding_length=marian.LENGTH_FACTOR * 8, cores=1)


def loud_rows(setup: Setup) -> list[Row]:
    tokens = json.loads(Path(setup.source, "config.json").read_text())["vocab_size"] - 1
    chooser = random.Random(5)
    return [Row((*(chooser.randrange(2, tokens) for _ in range(7)), END)) for _ in range(16)]


@needs_marian
def test_every_weight_counts(loud: Setup) -> None:
    contender = make_contender("marian-float32", loud)
    assert isinstance(contender, ListContender)

    async def translate() -> list[Ids]:
        async with contender:
            return (await contender.translate_list(loud_rows(loud)))[0]

    answers = asyncio.run(translate())  # fails unless they are CTranslate2's
    assert {len(ids) for ids in answers} == {loud.max_decoding_length}
    assert len(set(answers)) > 10


@needs_marian
def test_a_model_that_marian_computes_otherwise_is_not_timed(loud: Setup) -> None:
    """As if a weight had got lost on the way to Marian; then the right one is translated."""
    from ct2_triton.bench.contenders.in_process import MarianContender

    settings: Settings = MarianContender("float32", loud).translator_settings()
    file = Path(settings.model, "model.npz")
    right = file.read_bytes()
    import numpy as np

    weights = dict(np.load(file))
    weights["decoder_l2_context_Wo"] = np.zeros_like(weights["decoder_l2_context_Wo"])
    np.savez(file, **weights)
    with pytest.raises(BenchError, match=r"answers \d+ of 16 rows differently from CTranslate2"):
        marian.MarianTranslator(settings).timed_translate(loud_rows(loud))
    file.write_bytes(right)
    answers, _ = marian.MarianTranslator(settings).timed_translate(loud_rows(loud))
    assert len(answers) == 16


def test_a_model_that_marian_cannot_run_is_refused(tmp_path: Path) -> None:
    setup = Setup(str(tiny_checkpoint("nllb")), tmp_path)
    with pytest.raises(BenchError, match="cannot run a model of the family m2m_100; --shape"):
        answers_of("marian-int8", setup)


@pytest.mark.skipif(find_spec("pymarian") is not None, reason="pymarian is installed")
def test_without_marian_the_error_says_what_to_install(setup: Setup) -> None:
    with pytest.raises(BenchError, match="pymarian is missing: pip install pymarian"):
        answers_of("marian-int8", setup)
