# SPDX-License-Identifier: Apache-2.0
"""Proofs that decode loops compute as CTranslate2 does: what they name, and where they count."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton import _core
from ct2_triton.prepare.loop_proof import loop_proofs
from model_bin import read_model_bin, write_model_bin
from support.tiny import tiny_engine_model

TYPE = {"compute_type": "float32"}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the folder of a prepared one, and a cache that nobody else has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "1" / "model"))


def proof_of(directory: Path, compute_type: str = "float32") -> str:
    assert "trial of 12 tokens" in _core.prove_loop(str(directory), compute_type)
    return str(_core.proof_id(str(directory), compute_type))


def description(directory: Path, **parameters: str) -> str:
    return str(_core.Translator(str(directory), {**TYPE, **parameters}).description)


def change_weight(directory: Path) -> None:
    content = read_model_bin(directory / "model.bin")
    name = "decoder/layer_1/ffn/linear_1/weight"
    old = content.variables[name]
    changed = old.content[:-1] + bytes([old.content[-1] ^ 1])  # what is damaged may lie anywhere
    content.variables[name] = dataclasses.replace(old, content=changed)
    write_model_bin(content, directory / "model.bin")


def change_config(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    config["add_source_bos"] = not config.get("add_source_bos", False)
    (directory / "config.json").write_text(json.dumps(config))


def change_token(directory: Path) -> None:
    """No other number of tokens."""
    tokens = json.loads((directory / "shared_vocabulary.json").read_text())
    tokens[-1] += "x"
    (directory / "shared_vocabulary.json").write_text(json.dumps(tokens))


@pytest.mark.parametrize("change", [change_weight, change_config, change_token])
def test_a_proof_is_of_files_wherever_they_lie(model: Path, change: Callable[[Path], None]) -> None:
    proof = proof_of(model)
    assert proof == proof_of(tiny_engine_model("nllb"))
    assert proof != proof_of(model, "int8")
    change(model)
    assert proof != proof_of(model)


def test_a_model_is_tried_at_its_first_load(model: Path, tmp_path: Path) -> None:
    assert ", trial of 12 tokens" in description(model)
    assert "proved at an earlier load" in description(model)
    [kept] = (tmp_path / "cache" / "ct2-triton" / "proofs").iterdir()
    assert kept.name == proof_of(model)
    kept.write_text("")
    assert f"the proof {kept} is damaged, so trial" in description(model)
    change_weight(model)
    assert ", trial of 12 tokens" in description(model)
    assert ", not proved" in description(model, proof="off")


def test_a_model_without_a_proof_does_not_decide_for_those_that_share_its_weights(
    model: Path,
) -> None:
    unproved = _core.Translator(str(model), {**TYPE, "proof": "off"})
    assert ", trial of 12 tokens" in description(model)
    assert "not proved" not in unproved.description
    weights = unproved.weight_bytes
    proved = _core.Translator(str(model), TYPE)
    assert "trial of 12 tokens" in proved.description
    assert proved.weight_bytes == weights


def test_a_cache_that_cannot_be_written(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    for _ in range(2):
        assert ", trial of 12 tokens" in description(model)


def test_the_manifest_brings_a_proof(model: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "ct2_model.json"
    manifest.write_text(json.dumps({"loop_proofs": {"float32": {"id": proof_of(model)}}}))
    assert "proved when it was prepared" in description(model)
    change_weight(model)
    assert f"the proof in {manifest} is of other files" in description(model)


def test_the_manifest_brings_a_refusal(model: Path, tmp_path: Path) -> None:
    """It is of the same files only, and decoding "loop" says it."""
    proof = {"id": proof_of(model), "refused": "only 3 of 16 rows"}
    (tmp_path / "ct2_model.json").write_text(json.dumps({"loop_proofs": {"float32": proof}}))
    reason = "ct2-prepare refused the decode loop: .only 3 of 16 rows"
    with pytest.raises(_core.Error, match=reason) as caught:
        description(model, decoding="loop")
    assert caught.value.code == "unsupported"
    change_weight(model)
    assert "trial of 12 tokens" in description(model)


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
def test_a_proof_is_of_kernels(
    model: Path, compute_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = _core.kernel_names()  # asked now, because the variable limits them
    found = set()
    for name in names:
        monkeypatch.setenv("CT2_TRITON_KERNELS", name)
        found.add(_core.proof_id(str(model), compute_type))
    assert len(found) == len(names)


class WrongRows:
    """The core, but for answers of loops: the row's first id, in these compute types."""

    Error = _core.Error
    proof_id = staticmethod(_core.proof_id)
    prove_loop = staticmethod(_core.prove_loop)

    def __init__(self, *types: str) -> None:
        self.types = types

    def Translator(self, directory: str, parameters: dict[str, str]) -> Any:  # noqa: N802
        if parameters["decoding"] == "loop" and parameters["compute_type"] in self.types:
            return self
        return _core.Translator(directory, parameters)

    def translate(self, rows: list[list[int]], *_: Any) -> list[list[dict[str, list[int]]]]:
        return [[{"ids": row[:1]}] for row in rows]


@pytest.mark.parametrize("wrong", ["float32", "int8"])
def test_wrong_rows_refuse_loops(model: Path, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, they refuse those of int8, too."""
    monkeypatch.setattr("ct2_triton.prepare.loop_proof.load_core", lambda: WrongRows(wrong))
    proofs = loop_proofs(model, {"compute_type": "int8"})
    reason = "only 0 of 16 rows equal CTranslate2's"
    assert proofs[wrong]["refused"] == reason
    if wrong == "float32":
        assert proofs["int8"]["refused"] == f"float32: {reason}"
        assert proofs["int8"]["rows_equal"] > 8
    else:
        assert "refused" not in proofs["float32"]
    (model.parents[1] / "ct2_model.json").write_text(json.dumps({"loop_proofs": proofs}))
    with pytest.raises(_core.Error, match="ct2-prepare refused the decode loop"):
        _core.Translator(str(model), {"compute_type": "int8", "decoding": "loop"})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"loop_proofs": 7}', '{"loop_proofs": {"int8": 7}}',
     '{"loop_proofs": {"int8": {"id": 7}}}', '{"loop_proofs": {"int8": {"refused": "why"}}}'],
)  # fmt: skip
def test_a_manifest_without_a_proof(model: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "ct2_model.json").write_text(text)
    assert ", trial of 12 tokens" in description(model)


def test_a_vocabulary_of_lines_may_have_every_character_but_the_end_of_a_line(model: Path) -> None:
    """Argos packages have such files; the ids of the proof's rows lie within them."""
    vocabulary = model / "shared_vocabulary.json"
    tokens = json.loads(vocabulary.read_text())
    vocabulary.unlink()
    odd = [*tokens[:20], *(f"{token}\u2028\x85" for token in tokens[20:])]
    (model / "shared_vocabulary.txt").write_text("".join(f"{token}\n" for token in odd))

    [proof] = loop_proofs(model, TYPE).values()

    assert proof["rows_equal"] == proof["rows"]
