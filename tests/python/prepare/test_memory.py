# SPDX-License-Identifier: Apache-2.0
"""A preparation holds one copy of the weights at a time, and says before what it needs."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from ct2_triton.errors import ConversionError
from ct2_triton.prepare import PrepareOptions, conversion, prepare
from ct2_triton.prepare.checkpoint import weights_bytes
from ct2_triton.prepare.verification import proof
from ct2_triton.prepare.verification.comparison import ConvertedModel
from support.tiny import tiny_checkpoint

FAMILIES = ("nllb", "m2m100", "mbart50", "mbart25", "marian", "marian-two", "t5", "madlad")


def in_memory() -> list[str]:
    """Names the models that are alive in this process, in either program's form."""
    kinds = (transformers.PreTrainedModel, ConvertedModel)
    return [type(one).__name__ for one in gc.get_objects() if issubclass(type(one), kinds)]


def test_the_weights_are_in_memory_once_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step that reads the weights begins when the step before has let go of its own."""
    gc.collect()
    others = in_memory()
    steps: list[tuple[str, list[str]]] = []

    def watched(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            steps.append((name, in_memory()))
            return step(*args, **options)

        return call

    for place, name in (
        (conversion, "convert"),
        (proof, "ReferenceModel"),
        (proof, "ConvertedModel"),
    ):
        monkeypatch.setattr(place, name, watched(name, getattr(place, name)))
    prepare(PrepareOptions(str(tiny_checkpoint("nllb")), tmp_path / "repository"))
    read = ["convert", "ReferenceModel", "convert", "ConvertedModel", "ConvertedModel"]
    assert steps == [(name, others) for name in read]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_counted_without_reading_them(family: str) -> None:
    folder = tiny_checkpoint(family)
    loaded = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert weights_bytes(folder) == 4 * loaded.num_parameters()


def test_the_need_is_said_before_the_conversion(tmp_path: Path) -> None:
    lines: list[str] = []
    options = PrepareOptions(str(tiny_checkpoint("nllb")), tmp_path / "repository")
    prepare(options, lines.append)
    [said] = [line for line in lines if re.match(r"needs about [0-9.]+ GB of memory; ", line)]
    assert lines.index(said) < lines.index("converting, weights stored in int8")


def test_a_config_that_makes_no_model(checkpoint_copy: Callable[[str], Path]) -> None:
    checkpoint = checkpoint_copy("nllb")
    config = (checkpoint / "config.json").read_text(encoding="utf-8")
    (checkpoint / "config.json").write_text(config.replace('"relu"', '"no such function"'))
    with pytest.raises(ConversionError, match="transformers makes no model of"):
        weights_bytes(checkpoint)
