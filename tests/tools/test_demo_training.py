# SPDX-License-Identifier: Apache-2.0
"""Training the demo model: repeatable, resumable, and what it writes is a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from train_demo import training
from train_demo.batches import TrainingData
from train_demo.export import convert_for_package, write_checkpoint, write_record
from train_demo.grammar import read_grammar
from train_demo.kinds import GrammarError
from train_demo.languages import FLORES, LANGUAGES
from train_demo.model import loss, new_model
from train_demo.sizes import Cycle, Size
from train_demo.tokenizer import nllb_tokenizer, train_pieces

TINY = Size(
    pieces=700,
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    ffn=32,
    heads=2,
    batch_sentences=8,
    cycles=(Cycle(24, 1e-3), Cycle(24, 5e-4)),
)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_pieces(read_grammar(), TINY.pieces, 1, tmp_path_factory.mktemp("pieces"), 600)


def start(folder: Path, pieces: Path) -> Path:
    folder.mkdir()
    (folder / pieces.name).write_bytes(pieces.read_bytes())
    return folder


def weights_after(folder: Path) -> dict[str, Any]:
    model, _ = training.train(TINY, folder, seed=5, threads=1)
    return model.state_dict()


def test_a_training_that_is_cut_goes_on_to_the_same_weights(
    tmp_path: Path, pieces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = weights_after(start(tmp_path / "whole", pieces))
    folder = start(tmp_path / "cut", pieces)
    steps = 0

    def cut_at_the_fifth(*arguments: Any) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise KeyboardInterrupt
        return loss(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(training, "loss", cut_at_the_fifth)
        patched.setattr(training, "_SAVE_EVERY_S", -1)
        with pytest.raises(KeyboardInterrupt):
            weights_after(folder)
    state = torch.load(folder / "state.pt", weights_only=True)
    assert (state["cycle"], state["step"]) == (1, 1)
    resumed = weights_after(folder)
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_a_training_does_not_go_on_with_another_plan(tmp_path: Path, pieces: Path) -> None:
    folder = start(tmp_path / "begun", pieces)
    weights_after(folder)
    plan = json.loads((folder / "plan.json").read_text())
    assert set(plan) == {"grammar", "seed", "size", "threads"}
    for name in plan:
        (folder / "plan.json").write_text(json.dumps({**plan, name: None}))
        with pytest.raises(GrammarError, match=f"did not begin with this {name}: choose another"):
            weights_after(folder)


def test_the_loss_is_that_of_transformers(pieces: Path) -> None:
    """One encoder pass for six targets gives what six separate passes give."""
    tokenizer = nllb_tokenizer(pieces)
    torch.manual_seed(0)
    model = new_model(TINY, tokenizer).eval()
    (batch,) = TrainingData(read_grammar(), tokenizer, 8, 8, 1).from_batch(0)
    labels = batch.targets[:, 1:].masked_fill(~batch.target_mask[:, 1:], -100)
    expected = model(
        input_ids=batch.sources.repeat_interleave(6, 0),
        attention_mask=batch.source_mask.repeat_interleave(6, 0),
        decoder_input_ids=batch.targets[:, :-1],
        labels=labels,
    ).loss
    torch.testing.assert_close(loss(model, batch), expected)


def test_rows_are_those_of_the_tokenizer(pieces: Path) -> None:
    """`[language] pieces </s>` behind a decoder start of `</s>`, as NLLB has it."""
    tokenizer = nllb_tokenizer(pieces)
    (batch,) = TrainingData(read_grammar(), tokenizer, 8, 8, 1).from_batch(0)
    source = batch.sources[0][batch.source_mask[0]].tolist()
    text = tokenizer.decode(source, skip_special_tokens=True)
    assert source == tokenizer(text).input_ids
    target = batch.targets[1][batch.target_mask[1]].tolist()
    text = tokenizer.decode(target, skip_special_tokens=True)
    tokenizer.tgt_lang = "fra_Latn"
    assert target == [tokenizer.eos_token_id, *tokenizer(text_target=text).input_ids]


def test_the_checkpoint_loads_as_any_nllb_and_its_record_is_true(
    tmp_path: Path, pieces: Path
) -> None:
    tokenizer = nllb_tokenizer(pieces)
    folder = tmp_path / "checkpoint"
    write_checkpoint(new_model(TINY, tokenizer), tokenizer, folder)
    write_record(folder, {"seed": 5})
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert type(model).__name__ == "M2M100ForConditionalGeneration"
    loaded = transformers.AutoTokenizer.from_pretrained(folder, src_lang="eng_Latn")
    ids = loaded.convert_tokens_to_ids([FLORES[language] for language in LANGUAGES])
    assert ids == list(range(ids[0], ids[0] + len(LANGUAGES)))
    assert ids[0] > TINY.pieces
    record = json.loads((folder / "training.json").read_text())
    assert record["seed"] == 5
    assert set(record["files"]) == {p.name for p in folder.iterdir()} - {"training.json"}


def test_the_package_holds_the_checkpoint_its_conversion_and_no_path(
    tmp_path: Path, pieces: Path
) -> None:
    tokenizer = nllb_tokenizer(pieces)
    checkpoint, package = tmp_path / "checkpoint", tmp_path / "package"
    torch.manual_seed(0)
    write_checkpoint(new_model(TINY, tokenizer), tokenizer, checkpoint)
    convert_for_package(checkpoint, package)
    files = {p.name: p.read_bytes() for p in package.rglob("*") if p.is_file()}
    assert {"model.safetensors", "model.bin", "languages.json", "ct2_model.json"} <= set(files)
    assert not [name for name, content in files.items() if str(tmp_path).encode() in content]
    convert_for_package(package / "checkpoint", package)  # its own checkpoint, again
    assert {p.name for p in package.rglob("*") if p.is_file()} == set(files)
    record = json.loads(files["ct2_model.json"])
    assert record["conversion"]["quantization"] == "int8"
