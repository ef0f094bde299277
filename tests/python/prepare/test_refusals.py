# SPDX-License-Identifier: Apache-2.0
"""A conversion that differs from its checkpoint is refused, and nothing of it stays on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.errors import (
    MissingPackageError,
    SettingError,
    UnsupportedModelError,
    VerificationError,
)
from ct2_triton.prepare import PrepareOptions, conversion, environment, prepare
from ct2_triton.prepare.options import ShortlistOptions
from ct2_triton.prepare.verification import comparison
from ct2_triton.prepare.verification.comparison import (
    GreedyModel,
    LoopProof,
    NearTie,
    compare,
    compare_loops,
)
from ct2_triton.prepare.verification.probes import Probe
from ct2_triton.prepare.verification.reference import Answer, ReferenceModel, Row
from support.tiny import tiny_checkpoint, tiny_engine_model
from tiny_models import TinyOptions

Tamper = Callable[[Path], None]


@pytest.fixture
def tampered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Tamper], None]:
    """Lets a function change what CTranslate2's converter wrote."""
    original = conversion.convert

    def install(tamper: Tamper) -> None:
        def convert(checkpoint: Path, output: Path, quantization: str, *more: Any) -> None:
            original(checkpoint, output, quantization, *more)
            tamper(output)

        monkeypatch.setattr(conversion, "convert", convert)

    return install


def prepare_tiny(tmp_path: Path, family: str = "nllb", quantization: str = "float32") -> None:
    source = str(tiny_checkpoint(family))
    repository = tmp_path / "place" / "repository"
    prepare(PrepareOptions(source, repository, name="m", quantization=quantization))


def assert_nothing_left(tmp_path: Path) -> None:
    assert list((tmp_path / "place").rglob("*")) == []


def edit_vocabulary(edit: Callable[[list[str]], None]) -> Tamper:
    def tamper(model: Path) -> None:
        path = model / "shared_vocabulary.json"
        tokens = json.loads(path.read_text(encoding="utf-8"))
        edit(tokens)
        path.write_text(json.dumps(tokens), encoding="utf-8")

    return tamper


def swap(tokens: list[str]) -> None:
    tokens[700], tokens[701] = tokens[701], tokens[700]


def test_two_swapped_tokens(tampered: Callable[[Tamper], None], tmp_path: Path) -> None:
    tampered(edit_vocabulary(swap))
    with pytest.raises(VerificationError, match=r"at 2 of 1406 ids \(700: "):
        prepare_tiny(tmp_path)
    assert_nothing_left(tmp_path)


def test_a_vocabulary_longer_than_the_embedding_table(
    tampered: Callable[[Tamper], None], tmp_path: Path
) -> None:
    """CTranslate2 loads such a model, and reads past the table when the token is used."""
    tampered(edit_vocabulary(lambda tokens: tokens.append("surplus")))
    with pytest.raises(VerificationError, match="has 1407 tokens .* call for 1406"):
        prepare_tiny(tmp_path)
    assert_nothing_left(tmp_path)


def test_a_vocabulary_that_is_too_short(tampered: Callable[[Tamper], None], tmp_path: Path) -> None:
    tampered(edit_vocabulary(lambda tokens: tokens.pop()))
    with pytest.raises(VerificationError, match="has 1405 tokens"):
        prepare_tiny(tmp_path)
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_other_weights(
    tampered: Callable[[Tamper], None], tmp_path: Path, quantization: str
) -> None:
    """The weights of another seed give other tokens, whatever the type they are shipped in."""
    other = tiny_engine_model("nllb", TinyOptions(seed=1))
    vocabulary = tiny_engine_model("nllb") / "shared_vocabulary.json"

    def tamper(model: Path) -> None:
        shutil.copyfile(other / "model.bin", model / "model.bin")
        shutil.copyfile(vocabulary, model / "shared_vocabulary.json")

    tampered(tamper)
    with pytest.raises(VerificationError, match=r"probe 'How is your day going\?'.*logit gap"):
        prepare_tiny(tmp_path, quantization=quantization)
    assert_nothing_left(tmp_path)


def test_a_decoder_that_starts_from_another_token(
    tampered: Callable[[Tamper], None], tmp_path: Path
) -> None:
    def tamper(model: Path) -> None:
        path = model / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**config, "decoder_start_token": "<pad>"}), encoding="utf-8")

    tampered(tamper)
    with pytest.raises(VerificationError, match="does not answer as the checkpoint does"):
        prepare_tiny(tmp_path)
    assert_nothing_left(tmp_path)


def test_a_shipped_model_that_does_not_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = conversion.convert

    def convert(checkpoint: Path, output: Path, quantization: str, *more: Any) -> None:
        original(checkpoint, output, quantization, *more)
        if quantization == "int8":
            with (output / "model.bin").open("r+b") as file:
                file.truncate(100_000)

    monkeypatch.setattr(conversion, "convert", convert)
    with pytest.raises(VerificationError, match="the model as stored does not translate"):
        prepare_tiny(tmp_path, quantization="int8")
    assert_nothing_left(tmp_path)


def test_a_client_that_would_send_other_ids(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """A tokenizer.json, which transformers reads, that numbers pieces otherwise than the model."""
    checkpoint = checkpoint_copy("nllb")
    path = checkpoint / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    numbers = content["model"]["vocab"]
    numbers["."], numbers["?"] = numbers["?"], numbers["."]
    path.write_text(json.dumps(content), encoding="utf-8")
    repository = tmp_path / "place" / "repository"
    with pytest.raises(VerificationError, match=r"a client would send \[.* transformers gives"):
        prepare(PrepareOptions(str(checkpoint), repository))
    assert_nothing_left(tmp_path)


def test_a_tokenizer_without_language_tokens(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    checkpoint = checkpoint_copy("m2m100")
    (checkpoint / "added_tokens.json").unlink()
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        content = json.loads((checkpoint / name).read_text(encoding="utf-8"))
        content["additional_special_tokens"] = []
        content.pop("added_tokens_decoder", None)
        (checkpoint / name).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnsupportedModelError, match="this M2M100 model has no language tokens"):
        prepare(PrepareOptions(str(checkpoint), tmp_path / "place" / "repository"))
    assert_nothing_left(tmp_path)


def test_a_near_tie_is_excused_and_reported(
    monkeypatch: pytest.MonkeyPatch, tampered: Callable[[Tamper], None], tmp_path: Path
) -> None:
    """With every difference declared a near tie, other weights pass, each place in the manifest."""
    import math

    other = tiny_engine_model("nllb", TinyOptions(seed=1))
    tampered(lambda model: Path(shutil.copyfile(other / "model.bin", model / "model.bin")) and None)
    monkeypatch.setattr(comparison, "NEAR_TIE", math.inf)
    lines: list[str] = []
    source = str(tiny_checkpoint("nllb"))
    options = PrepareOptions(source, tmp_path / "repository", quantization="float32")
    model = prepare(options, report=lines.append)
    proof = model.manifest["verification"]
    ties = proof["near_ties"]
    assert ties == proof["loops"]["near_ties"]
    assert len(ties) > 100
    assert {"probe", "position", "reference_id", "converted_id", "gap_logits"} == set(ties[0])
    assert sum("NearTie(" in line for line in lines) == 2 * len(ties)


def answer_with_gap(gap: float) -> Answer:
    """An answer whose second token beats another by `gap`, with logits of about 10."""
    row = Row(Probe("text", None, None), input_ids=[5, 2], prefix_ids=[], echoed=0)
    return Answer(row, ids=[7, 8, 2], candidates=[{7: 9.0}, {8: 10.0, 9: 10.0 - gap}, {2: 9.0}])


class FixedModel(GreedyModel):
    """Answers 7, 9 and then, whatever was forced, the rest of the right answer."""

    def __init__(self) -> None:
        self._first_ids = {}

    def continue_row(self, row: Row, so_far: Sequence[int], max_tokens: int) -> list[int]:
        return [[7, 9, 2], [], [2]][len(so_far)]


def test_only_near_ties_are_excused_and_the_rest_of_the_row_is_compared() -> None:
    ties = compare(FixedModel(), answer_with_gap(0.0005), max_tokens=8)
    assert ties == [NearTie("'text' (- to -)", 1, 8, 9, pytest.approx(0.0005))]
    with pytest.raises(VerificationError, match=r"token 1: 9 for 8 \(logit gap 0.005, excused"):
        compare(FixedModel(), answer_with_gap(0.005), max_tokens=8)


def test_decode_loops_are_held_against_the_checkpoint() -> None:
    reference = ReferenceModel(tiny_checkpoint("nllb"), [])
    row = Row(Probe("text", None, None), input_ids=[700, 701, 702, 2], prefix_ids=[], echoed=0)
    answers = [reference.greedy(row, 32, [2])]
    right, other = (tiny_engine_model("nllb", TinyOptions(seed=seed)) for seed in (0, 1))
    assert compare_loops(right, right, answers, 32) == LoopProof(stored_rows_equal=1)
    assert compare_loops(right, other, answers, 32) == LoopProof(stored_rows_equal=0)
    with pytest.raises(VerificationError, match=r"the decode loop \(--set decoding=calls does wit"):
        compare_loops(other, right, answers, 32)


def test_decode_loops_that_cannot_run_a_model_are_not_compared(tmp_path: Path) -> None:
    source = str(tiny_checkpoint("nllb"))
    for more, reason in (
        ({"quantization": "int16"}, "int16"),
        ({"settings": {"decoding": "calls"}}, "decoding is calls"),
    ):
        model = prepare(PrepareOptions(source, tmp_path / "repository", force=True, **more))
        loops = model.manifest["verification"]["loops"]
        assert loops["stored_rows_equal"] == 0
        assert reason in loops["not_compared"]


@pytest.mark.parametrize("found", ["6.0.0", "4.56.2"])
def test_other_versions_of_transformers_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str
) -> None:
    original = environment._version
    monkeypatch.setattr(
        environment, "_version", lambda name: found if name == "transformers" else original(name)
    )
    with pytest.raises(MissingPackageError, match=f"transformers 4.57.6 .* found {found}"):
        prepare_tiny(tmp_path)
    assert not (tmp_path / "place").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_sise": "4"}, "beam_size"),
        ({"beam_size": "four"}, "beam_size"),
        ({"beam_size": "0"}, "beam_size"),
        ({"compute_type": "int7"}, "compute_type"),
        ({"num_hypotheses": "9", "beam_size": "2"}, "num_hypotheses"),
    ],
)
def test_impossible_settings_are_refused_by_the_backends_own_code(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    source = str(tiny_checkpoint("nllb"))
    with pytest.raises(SettingError, match=message):
        prepare(PrepareOptions(source, tmp_path / "place" / "repository", settings=settings))
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantization": "int4"}, "int4"),
        ({"instance_kind": "tpu"}, "tpu"),
        ({"max_batch_size": -1}, "-1"),
        ({"max_batch_size": 2**31}, "2147483648; it must be from 0 to 2147483647"),
        ({"source": "m\udcfc"}, r"'m\\udcfc' is not UTF-8"),
        ({"quality_texts": ("m\udcfc",)}, "is not UTF-8"),
        ({"shortlist": ShortlistOptions(("m\udcfc",))}, "is not UTF-8"),
        ({"name": "a/b"}, "a/b"),
        ({"name": ".hidden"}, "hidden"),
        ({"name": ""}, "name of a model"),
    ],
)
def test_impossible_options_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    options = PrepareOptions(str(tiny_checkpoint("nllb")), tmp_path / "repository")
    with pytest.raises(SettingError, match=message):
        prepare(replace(options, **changes))  # type: ignore[arg-type]
    assert not (tmp_path / "repository").exists()
