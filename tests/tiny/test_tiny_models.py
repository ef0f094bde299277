# SPDX-License-Identifier: Apache-2.0
"""The tiny models are what other tests take them for: repeatable, varied, ending."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ctranslate2
import pytest
import transformers

import tiny_models
from support.tiny import ROOT, tiny_checkpoint, tiny_engine_model
from tiny_corpus import sentences
from tiny_models import TinyOptions


def translate(
    model: Path, checkpoint: Path, texts: list[str], **options: object
) -> list[list[str]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    rows = [tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) for text in texts]
    results = ctranslate2.Translator(str(model)).translate_batch(
        rows, target_prefix=[["fra_Latn"]] * len(rows), beam_size=1, **options
    )
    return [result.hypotheses[0] for result in results]


def test_equal_options_give_equal_files(tmp_path: Path) -> None:
    one = tiny_models.make("nllb", tmp_path / "one", TinyOptions(pieces=400))
    two = tiny_models.make("nllb", tmp_path / "two", TinyOptions(pieces=400))
    other = tiny_models.make("nllb", tmp_path / "other", TinyOptions(pieces=400, seed=1))
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    weights = "model.safetensors"
    assert (one / weights).read_bytes() != (other / weights).read_bytes()


def test_random_models_answer_differently_to_different_texts() -> None:
    outputs = translate(
        tiny_engine_model("nllb"),
        tiny_checkpoint("nllb"),
        sentences(20, seed=5),
        max_decoding_length=24,
    )
    assert len({tuple(output) for output in outputs}) >= 15
    assert sum(len(set(output)) for output in outputs) / len(outputs) > 6


def test_a_trained_model_ends_by_itself_at_about_the_length_of_its_input() -> None:
    options = TinyOptions(train_steps=400)
    checkpoint = tiny_checkpoint("nllb", options)
    texts = sentences(60, seed=5)[10:]
    outputs = translate(
        tiny_engine_model("nllb", options), checkpoint, texts, max_decoding_length=200
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    lengths = [len(tokenizer(text).input_ids) - 1 for text in texts]  # without </s>
    near = [abs(len(out) - n) <= 0.3 * n + 2 for out, n in zip(outputs, lengths, strict=True)]
    assert sum(near) >= 0.8 * len(near)
    assert len(set(lengths)) > 10


def test_the_vocabulary_can_be_padded_to_a_released_size() -> None:
    model = tiny_engine_model("nllb", TinyOptions(vocab_size=50_000))
    assert '"madeupword48595"' in (model / "shared_vocabulary.json").read_text(encoding="utf-8")


def test_a_full_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileExistsError, match="not empty"):
        tiny_models.make("nllb", tmp_path)


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "tests" / "tiny" / "tiny_models.py", "t5", "--pieces", "400"]
    folders = [tmp_path / "checkpoint", tmp_path / "converted"]
    arguments = ["--output", folders[0], "--converted", folders[1], "--quantization", "int8"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=280, check=True
    )
    assert done.stdout.split() == list(map(str, folders))
    assert (folders[0] / "spiece.model").is_file()
    assert (folders[1] / "model.bin").is_file()
    again = subprocess.run([*command, *arguments], capture_output=True, timeout=280, check=False)
    assert again.returncode != 0
    nothing = subprocess.run(command, capture_output=True, timeout=280, check=False)
    assert nothing.returncode == 2
