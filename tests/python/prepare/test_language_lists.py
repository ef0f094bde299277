# SPDX-License-Identifier: Apache-2.0
"""--shortlist-from with several languages: a list for each, in shortlists.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ct2_triton import _core, cli
from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import SettingError
from ct2_triton.prepare.options import ShortlistOptions
from ct2_triton.prepare.writing import checksums
from ct2_triton.prepared_model import PreparedModel
from python.prepare.test_shortlist import FRENCH, GERMAN, demo, ids, parameters, write
from support.prepared import prepare_tiny
from tiny_corpus import sentences

pytestmark = pytest.mark.usefixtures("short_proofs")


@pytest.fixture
def entries(tmp_path: Path) -> tuple[str, str]:
    german = write(tmp_path / "german.txt", GERMAN)
    french = write(tmp_path / "french.txt", FRENCH)
    return f"deu={german}", f"fra={french}"


def lists(model: PreparedModel) -> dict[str, dict[str, object]]:
    """What shortlists.json says of each language."""
    text = (model.model_folder / "shortlists.json").read_text(encoding="utf-8")
    return {entry.pop("language"): entry for entry in json.loads(text)["lists"]}


def test_each_language_has_the_list_that_it_has_alone(
    tmp_path: Path, entries: tuple[str, str]
) -> None:
    model = demo(tmp_path, *entries)
    found = lists(model)
    assert not (model.model_folder / "vmap.txt").exists()
    assert parameters(model)["use_vmap"] == "true"
    assert "vmap_prefix_ids" not in parameters(model)
    union = set()
    for entry, code in zip(entries, ("deu_Latn", "fra_Latn"), strict=True):
        alone = demo(tmp_path, entry, name=code)
        language = model.rules.target_language(code)
        assert language is not None
        assert (found[code]["prefix_id"],) == language.target_prefix_ids
        assert set(found[code]["tokens"]) == ids(alone)  # type: ignore[call-overload]
        union |= ids(alone)
    assert model.manifest["shortlist"]["tokens"] == len(union)
    assert ids(demo(tmp_path, *entries, name="union", union=True)) == union


def test_the_record_tells_of_each_list(tmp_path: Path, entries: tuple[str, str]) -> None:
    model = demo(tmp_path, *entries)
    record = model.manifest["shortlist"]
    assert record["lists"] == "each language"
    sizes = {entry["code"]: entry["list_tokens"] for entry in record["languages"]}
    assert sizes == {code: len(own["tokens"]) for code, own in lists(model).items()}  # type: ignore[arg-type]
    assert record["probes"] == 26
    assert 0 < record["probes_changed"] <= 26
    assert model.manifest["files"] == checksums(model.directory)
    assert "1/model/shortlists.json" in model.manifest["files"]


def test_the_backend_takes_it_and_answers_with_each_list(
    tmp_path: Path, entries: tuple[str, str]
) -> None:
    model = demo(tmp_path, *entries)
    found = lists(model)
    settings = {"compute_type": "float32", "use_vmap": True, "beam_size": 1}
    translator = _core.Translator(str(model.model_folder), settings)
    pieces, rules = read_pieces(model.tokenizer_folder, model.rules), model.rules
    text = pieces.encode("Penalty for Castelmar! Szabó steps up.")
    for code in ("deu_Latn", "fra_Latn", "spa_Latn"):
        target = rules.target_language(code)
        row = rules.input_ids(text, rules.source_language("eng"), target)
        prefix = rules.target_prefix(target)
        [[listed]] = translator.translate([row], [prefix])
        [[whole]] = translator.translate([row], [prefix], {"use_vmap": False})
        if code in found:
            assert set(listed["ids"]) <= {*found[code]["tokens"]}  # type: ignore[misc]
        else:
            assert listed["ids"] == whole["ids"]


@pytest.mark.parametrize(
    ("family", "codes", "member"),
    [
        ("nllb", ("deu_Latn", "fra_Latn"), "prefix_id"),
        ("m2m100", ("de", "fr"), "prefix_id"),
        ("mbart50", ("de_DE", "fr_XX"), "prefix_id"),
        ("marian", ("deu", "fra"), "source_id"),
        ("madlad", ("de", "fr"), "source_id"),
    ],
)
def test_every_family_with_several_languages(
    tmp_path: Path, family: str, codes: tuple[str, str], member: str
) -> None:
    text = write(tmp_path / "text.txt", sentences(60, seed=9))
    shortlist = ShortlistOptions(tuple(f"{code}={text}" for code in codes))
    model = prepare_tiny(family, tmp_path / "repository", "model", shortlist=shortlist)
    found = lists(model)
    assert tuple(found) == codes
    kind = f"target_{member.removesuffix('_id')}_ids"
    for code, entry in found.items():
        language = model.rules.target_language(code)
        assert entry.keys() == {member, "tokens"}
        assert entry[member] == getattr(language, kind)[0]
    _core.Translator(str(model.model_folder), {"compute_type": "float32", "use_vmap": True})


def test_a_search_that_the_shortest_list_does_not_suffice_for(
    tmp_path: Path, entries: tuple[str, str]
) -> None:
    with pytest.raises(SettingError, match=r"the shortlist has 198 tokens, and beam_size 150"):
        demo(tmp_path, *entries, settings={"beam_size": "150", "max_beam_size": "150"})


def test_the_command_tells_of_each_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], entries: tuple[str, str]
) -> None:
    arguments = ["demo", "--model-repository", str(tmp_path / "r")]
    assert cli.prepare([*arguments, "--shortlist-from", ",".join(entries)]) == 0
    said = capsys.readouterr().err
    assert "shortlists of 2 languages, together" in said
    model = PreparedModel.read(tmp_path / "r" / "demo")
    for code, own in lists(model).items():
        assert f"{code}, {len(own['tokens'])} tokens: 36 lines of" in said  # type: ignore[arg-type]
    assert "of 26 probes, some of them odd, get another answer with it" in said
    assert cli.models(["show", "demo", "--model-repository", str(tmp_path / "r")]) == 0
    assert "lists: each language" in capsys.readouterr().out
