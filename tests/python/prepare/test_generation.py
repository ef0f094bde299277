# SPDX-License-Identifier: Apache-2.0
"""A generation config: carried over where the backend has it, else said and recorded."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.errors import UnsupportedModelError, VerificationError
from ct2_triton.prepare import PrepareOptions, generation, prepare
from ct2_triton.prepare.verification import own_search, probes
from ct2_triton.prepared_model import PreparedModel
from python.prepare.conftest import Prepared
from support.tiny import tiny_checkpoint
from tiny_models import TinyOptions

Copy = Callable[[str], Path]
LIMITS = {"max_decoding_length": 256, "beam_size": 1}


def prepare_with(
    checkpoint: Path, repository: Path, **generation_config: Any
) -> tuple[PreparedModel, list[str]]:
    """Prepares a checkpoint whose generation config has these entries; gives what was reported."""
    path = checkpoint / "generation_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **generation_config}), encoding="utf-8")
    lines: list[str] = []
    options = PrepareOptions(str(checkpoint), repository, "m", quantization="float32")
    return prepare(options, lines.append), lines


def trained(folder: Path) -> Path:
    """A copy of a model that was trained a little: its answers end by themselves."""
    checkpoint = tiny_checkpoint("nllb", TinyOptions(train_steps=120))
    return Path(shutil.copytree(checkpoint, folder / "checkpoint"))


def carried(model: PreparedModel) -> dict[str, Any]:
    recorded = model.manifest["generation"]["carried_over"]
    return {name: json.loads(value) for name, value in recorded.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 2}),
        ({"min_length": 12}, {"min_decoding_length": 11}),
        ({"min_new_tokens": 12}, {"min_decoding_length": 12}),
        ({"max_length": 10}, {"max_decoding_length": 9}),
        ({"max_length": 10, "max_new_tokens": 20}, {"max_decoding_length": 20}),
        ({"max_length": 10_000}, {"max_decoding_length": 512}),
        ({"suppress_tokens": [43, 12]}, {"suppress_sequences": [[43], [12]]}),
        ({"bad_words_ids": [[12, 12], [2]]}, {"suppress_sequences": [[12, 12]]}),
        ({"eos_token_id": [2, 43]}, {"end_token": [2, 43]}),
        ({"temperature": 0.5, "length_penalty": 2.0, "use_cache": False}, {}),
    ],
)
def test_greedy_options_are_carried_over_and_proved(
    tmp_path: Path,
    given: dict[str, Any],
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "PROBE_TEXTS", probes.PROBE_TEXTS[::3])
    model, lines = prepare_with(trained(tmp_path), tmp_path / "repository", **given)
    assert carried(model) == {**LIMITS, **expected}
    assert model.manifest["generation"]["left_out"] == {}
    config = model.config_file.read_text(encoding="utf-8")
    assert all(f'"{name}"' in config for name in expected)
    proof = model.manifest["verification"]["own_search"]
    assert proof["rows_equal"] == proof["rows"] == 5
    assert proof["reasons"] == []
    assert any("5 of 5 sentences are those of generate" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("max_length", "10", "an integer"),
        ("num_beams", 1.5, "an integer"),
        ("repetition_penalty", True, "a number"),
        ("suppress_tokens", 5, "a list of token ids"),
        ("bad_words_ids", [5], "a list of lists of token ids"),
    ],
)
def test_an_option_of_another_type_is_named(
    tmp_path: Path, checkpoint_copy: Copy, name: str, value: object, kind: str
) -> None:
    text = re.escape(f"{name} {json.dumps(value)}, which is not {kind}: correct it")
    with pytest.raises(UnsupportedModelError, match=text):
        prepare_with(checkpoint_copy("nllb"), tmp_path / "repository", **{name: value})
    assert not (tmp_path / "repository").exists()


def test_options_that_differ_by_design_are_explained(tmp_path: Path) -> None:
    """Transformers counts the </s> that starts the decoder, and so ends later."""
    model, lines = prepare_with(trained(tmp_path), tmp_path / "repository", repetition_penalty=1.3)
    assert carried(model) == {**LIMITS, "repetition_penalty": 1.3}
    proof = model.manifest["verification"]["own_search"]
    assert proof["rows_equal"] < proof["rows"]
    assert any("counts the token that starts the decoder" in line for line in lines)


def test_a_search_of_beams_is_carried_over(tmp_path: Path, checkpoint_copy: Copy) -> None:
    given = {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "max_length": 200}
    model, _ = prepare_with(checkpoint_copy("nllb"), tmp_path / "repository", **given)
    expected = {"beam_size": 4, "length_penalty": 2.0, "max_decoding_length": 199}
    assert carried(model) == expected
    assert model.manifest["generation"]["left_out"] == {}
    proof = model.manifest["verification"]["own_search"]
    assert proof["rows_equal"] == 13
    (reason,) = proof["reasons"]
    assert "at the length limit" in reason
    assert model.manifest["generation"]["always_here"] == ["early_stopping"]


def test_penalties_of_beams_differ_by_the_softmax(tmp_path: Path) -> None:
    """As OPUS-MT is released: with renormalize_logits, transformers does what CTranslate2 does."""
    given = {"num_beams": 4, "no_repeat_ngram_size": 3, "max_length": 512}
    proofs = []
    for renormalize in (False, True):
        folder = tmp_path / str(renormalize)
        checkpoint = Path(shutil.copytree(tiny_checkpoint("marian"), folder / "checkpoint"))
        config = {**given, "renormalize_logits": renormalize}
        model, _ = prepare_with(checkpoint, folder / "repository", **config)
        assert "renormalize_logits" not in model.manifest["generation"]["left_out"]
        proofs.append(model.manifest["verification"]["own_search"])
    usual, renormalized = proofs
    assert any("before the softmax" in reason for reason in usual["reasons"])
    assert not any("before the softmax" in reason for reason in renormalized["reasons"])
    assert usual["rows_equal"] < renormalized["rows_equal"] == 13


def test_what_the_backend_has_not_is_said_and_recorded(
    tmp_path: Path, checkpoint_copy: Copy
) -> None:
    given = {"encoder_no_repeat_ngram_size": 3, "forced_bos_token_id": 1300, "of_tomorrow": 1}
    model, lines = prepare_with(checkpoint_copy("nllb"), tmp_path / "repository", **given)
    left_out = model.manifest["generation"]["left_out"]
    assert {name: entry["value"] for name, entry in left_out.items()} == given
    for name in given:
        assert any(line.startswith(f"generation config, left out: {name} ") for line in lines)
    proof = model.manifest["verification"]["own_search"]
    assert any("encoder_no_repeat_ngram_size is left out" in reason for reason in proof["reasons"])


def test_sampling_is_carried_over_and_not_compared(tmp_path: Path, checkpoint_copy: Copy) -> None:
    given = {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.7}
    model, lines = prepare_with(checkpoint_copy("nllb"), tmp_path / "repository", **given)
    expected = {"sampling_topk": 20, "sampling_topp": 0.9, "sampling_temperature": 0.7}
    assert carried(model) == {**LIMITS, **expected}
    assert any("was not compared: its answers are random" in line for line in lines)


def test_an_older_checkpoint_keeps_it_in_its_config(tmp_path: Path, checkpoint_copy: Copy) -> None:
    checkpoint = checkpoint_copy("nllb")
    (checkpoint / "generation_config.json").unlink()
    path = checkpoint / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "no_repeat_ngram_size": 2}), encoding="utf-8")
    options = PrepareOptions(str(checkpoint), tmp_path / "repository", quantization="float32")
    model = prepare(options)
    assert carried(model) == {**LIMITS, "no_repeat_ngram_size": 2}
    assert model.manifest["generation"]["left_out"] == {}


def test_the_pad_token_of_marian_is_no_suppressed_one(prepared: Prepared) -> None:
    """The converted model does not have it. What is left of Marian's usual config is said."""
    assert carried(prepared("marian")) == LIMITS
    assert list(prepared("marian").manifest["generation"]["left_out"]) == ["forced_eos_token_id"]


def test_a_difference_without_a_reason_ends_the_preparation(
    tmp_path: Path, checkpoint_copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [entry for entry in generation._NUMBERS if entry[0] != "no_repeat_ngram_size"]
    monkeypatch.setattr(generation, "_NUMBERS", numbers)
    monkeypatch.setattr(own_search, "_reasons", lambda *_, **__: ())
    with pytest.raises(VerificationError, match="search of its generation config"):
        prepare_with(checkpoint_copy("nllb"), tmp_path / "repository", no_repeat_ngram_size=1)
