# SPDX-License-Identifier: Apache-2.0
"""Rows of ids from prepared tokenizer folders: equal to transformers, found, and safe to share."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ct2_triton import errors
from ct2_triton.client.tokenization import Tokenizer, find_tokenizer, has_tokenizer
from ct2_triton.prepared_model import REPOSITORY_NAME, REPOSITORY_VARIABLE
from support.odd_texts import NOTHING, SPECIAL_TOKENS
from support.tiny import tiny_checkpoint
from tiny_corpus import sentences

if TYPE_CHECKING:
    from python.client.conftest import TokenizerFolder

FAMILIES = ("nllb", "m2m100", "mbart50", "mbart25", "marian", "marian-pair", "t5", "madlad")
CORPUS = sentences(100, seed=8)


def rows(tokenizer: Tokenizer, source: str, target: str, texts: list[str]) -> list[list[int]]:
    """INPUT_IDS of texts."""
    language, (wanted,) = tokenizer.source(source), tokenizer.targets(target)
    return [
        tokenizer.rules.input_ids(tokenizer.encode(text).ids, language, wanted) for text in texts
    ]


@pytest.mark.parametrize("source", ["eng_Latn", "fra_Latn", "zho_Hans", "sat_Beng"])
def test_nllb_rows_are_those_of_transformers(
    tokenizer_folder: TokenizerFolder, source: str
) -> None:
    from transformers import AutoTokenizer

    reference = AutoTokenizer.from_pretrained(tiny_checkpoint("nllb"), src_lang=source)
    tokenizer = Tokenizer(tokenizer_folder("nllb"))
    assert rows(tokenizer, source, "deu_Latn", CORPUS) == reference(CORPUS)["input_ids"]
    [german] = tokenizer.targets("deu_Latn")
    wanted = reference.convert_tokens_to_ids("deu_Latn")
    assert tokenizer.rules.target_prefix(german) == [wanted]


def test_threads_with_different_languages_do_not_disturb_each_other(
    tokenizer_folder: TokenizerFolder,
) -> None:
    tokenizer = Tokenizer(tokenizer_folder("nllb"))
    sources = ["eng_Latn", "deu_Latn", "fra_Latn", "spa_Latn"] * 4
    expected = {source: rows(tokenizer, source, "ita_Latn", CORPUS) for source in set(sources)}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda s: rows(tokenizer, s, "ita_Latn", CORPUS), sources))
    for source, got in zip(sources, found, strict=True):
        assert got == expected[source]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_never_holds_a_special_token(tokenizer_folder: TokenizerFolder, family: str) -> None:
    tokenizer = Tokenizer(tokenizer_folder(family))
    for text in SPECIAL_TOKENS:
        assert not set(tokenizer.rules.special_ids) & set(tokenizer.encode(text).ids), text


@pytest.mark.parametrize("family", ["nllb", "mbart50", "t5", "madlad"])
def test_nor_when_it_is_read_from_a_tokenizer_json(
    tokenizer_folder: TokenizerFolder, family: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(tokenizer_folder(family), tmp_path / "tokenizer")
    for file in folder.glob("*.model"):
        file.unlink()
    tokenizer = Tokenizer(folder)
    for text in SPECIAL_TOKENS:
        assert not set(tokenizer.rules.special_ids) & set(tokenizer.encode(text).ids), text


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_of_nothing_are_empty_and_others_are_not(
    tokenizer_folder: TokenizerFolder, family: str
) -> None:
    tokenizer = Tokenizer(tokenizer_folder(family))
    assert [text for text in NOTHING if not tokenizer.encode(text).is_empty] == []
    assert [text for text in ("a", ".", "日", " x ") if tokenizer.encode(text).is_empty] == []


def test_unknown_characters_are_counted(tokenizer_folder: TokenizerFolder) -> None:
    tokenizer = Tokenizer(tokenizer_folder("nllb"))
    assert tokenizer.encode("日 and 本").unknown_tokens == 2
    assert tokenizer.encode("the").unknown_tokens == 0


def test_text_that_is_no_unicode_is_refused(tokenizer_folder: TokenizerFolder) -> None:
    with pytest.raises(errors.InvalidCallError, match="not valid Unicode"):
        Tokenizer(tokenizer_folder("nllb")).encode("half a pair: \ud83d")


def test_ids_beyond_the_tokenizer_have_no_text(tokenizer_folder: TokenizerFolder) -> None:
    tokenizer = Tokenizer(tokenizer_folder("nllb"))
    ids = tokenizer.encode("the river").ids
    size = tokenizer.rules.tokenizer_size
    assert tokenizer.decode([size, *ids, size + 1, 10**6, -1]) == "the river"


def test_the_first_id_may_be_a_pieces(tokenizer_folder: TokenizerFolder, tmp_path: Path) -> None:
    """A vocabulary whose end token has another id."""
    folder = Path(shutil.copytree(tokenizer_folder("marian"), tmp_path / "tokenizer"))
    vocabulary = json.loads((folder / "vocab.json").read_text())
    rules = json.loads((folder / "languages.json").read_text())
    river = vocabulary["▁river"]
    vocabulary["</s>"], vocabulary["▁river"] = river, vocabulary["</s>"]
    rules["end_ids"] = [river]
    rules["special_ids"][rules["special_ids"].index(0)] = river
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "languages.json").write_text(json.dumps(rules))
    tokenizer = Tokenizer(folder)
    ids = tokenizer.encode("the river").ids
    assert ids[-1] == 0
    assert tokenizer.decode([*ids, river]) == "the river"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("deu_Lat", "deu_Latn"), ("arb_Latn", "arb_Arab"), ("englsh", "eng_Latn")],
)
def test_an_unknown_language_names_the_nearest(
    tokenizer_folder: TokenizerFolder, name: str, nearest: str
) -> None:
    tokenizer = Tokenizer(tokenizer_folder("nllb"))
    with pytest.raises(errors.UnknownLanguageError, match=nearest):
        tokenizer.targets(["fra_Latn", name])
    with pytest.raises(errors.UnknownLanguageError, match=nearest):
        tokenizer.source(name)


def test_targets_are_checked(tokenizer_folder: TokenizerFolder) -> None:
    tokenizer = Tokenizer(tokenizer_folder("nllb"))
    with pytest.raises(errors.InvalidCallError, match="empty"):
        tokenizer.targets([])
    with pytest.raises(errors.InvalidCallError, match="twice"):
        tokenizer.targets(["de", "deu_Latn"])


def test_the_folder_is_found(
    tokenizer_folder: TokenizerFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tokenizer_folder("nllb")
    repository = folder.parent.parent
    copied = shutil.copytree(folder, tmp_path / "copied")
    monkeypatch.delenv(REPOSITORY_VARIABLE, raising=False)
    assert find_tokenizer("nllb", repository=repository).folder == folder
    assert find_tokenizer("other-name", tokenizer=copied).folder == copied
    assert find_tokenizer("nllb", tokenizer=folder.parent).folder == folder
    monkeypatch.setenv(REPOSITORY_VARIABLE, str(repository))
    assert find_tokenizer("nllb").folder == folder
    with pytest.raises(errors.TokenizerError, match="other-name"):
        find_tokenizer("other-name")
    monkeypatch.delenv(REPOSITORY_VARIABLE)
    (tmp_path / REPOSITORY_NAME).symlink_to(repository)
    monkeypatch.chdir(tmp_path)
    assert find_tokenizer("nllb").folder == Path(REPOSITORY_NAME) / "nllb" / "tokenizer"


def test_without_a_folder_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPOSITORY_VARIABLE, raising=False)
    with pytest.raises(errors.TokenizerError, match=f"{REPOSITORY_VARIABLE}.*copy the folder"):
        find_tokenizer("nllb")


@pytest.mark.parametrize(
    ("config", "is_of_ids"),
    [
        ('# Not "text_input".\ninput { name: "INPUT_IDS" }', True),
        ('input { name: "text_input" }', False),
        ("no configuration", True),
    ],
)
def test_the_inputs_of_a_config_say_whether_a_tokenizer_is_needed(
    tokenizer_folder: TokenizerFolder, tmp_path: Path, config: str, is_of_ids: bool
) -> None:
    shutil.copytree(tokenizer_folder("nllb"), tmp_path / "nllb" / "tokenizer")
    (tmp_path / "nllb" / "config.pbtxt").write_text(config)
    assert has_tokenizer("nllb", tmp_path) is is_of_ids


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.TokenizerError, match=r"languages\.json.*copy the folder"):
        Tokenizer(tmp_path)


def test_damaged_rules_are_named(tmp_path: Path) -> None:
    (tmp_path / "languages.json").write_text("{}")
    with pytest.raises(errors.PreparedModelError, match=r"languages\.json"):
        Tokenizer(tmp_path)


def test_a_hub_id_is_told_to_be_no_name_of_a_model() -> None:
    with pytest.raises(errors.TokenizerError, match=r"part of its id: 'nllb-200-distilled-600M'"):
        find_tokenizer("facebook/nllb-200-distilled-600M")
