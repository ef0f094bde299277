# SPDX-License-Identifier: Apache-2.0
"""Our tokenizer readers against transformers: the same ids and the same text, or nothing."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.client.pieces import JsonPieces, NativePieces, SentencePieces, read_pieces
from ct2_triton.errors import TokenizerError
from ct2_triton.prepare.tokenizers import load_tokenizer
from ct2_triton.prepared_model import TokenRules
from support.odd_texts import ODD_TEXTS, SPECIAL_TOKENS
from support.tiny import tiny_checkpoint
from tiny_corpus import sentences

if TYPE_CHECKING:
    from ct2_triton.client.pieces import Pieces

WITH_JSON = ("nllb", "mbart50", "mbart25", "t5", "madlad")
READERS: list[Any] = [(family, JsonPieces) for family in WITH_JSON]
for family in (*WITH_JSON, "m2m100", "marian", "marian-pair"):
    READERS.append((family, SentencePieces))
    READERS.append(pytest.param(family, NativePieces, marks=pytest.mark.core))
CORPUS = (*sentences(400, seed=5), *ODD_TEXTS)


@cache
def reference(family: str) -> Any:
    """The tokenizer that ct2-prepare verifies a model with."""
    return load_tokenizer(tiny_checkpoint(family))


@cache
def reference_ids(family: str, text: str) -> list[int]:
    """Its ids of a text in which special tokens are text."""
    ids = reference(family).encode(text, add_special_tokens=False, split_special_tokens=True)
    return list(ids)


@cache
def reference_text(family: str, row: tuple[int, ...]) -> str:
    """Its text of a row, without special tokens."""
    text = reference(family).decode(
        row, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return str(text)


def rules(family: str) -> TokenRules:
    tokenizer = reference(family)
    return TokenRules(
        family={"madlad": "t5", "marian-pair": "marian"}.get(family, family),
        tokenizer_class=type(tokenizer).__name__,
        tokenizer_size=len(tokenizer),
        vocabulary_size=len(tokenizer),
        end_ids=(tokenizer.eos_token_id,),
        pad_id=tokenizer.pad_token_id,
        unk_id=tokenizer.unk_token_id,
        special_ids=tuple(tokenizer.all_special_ids),
    )


def pieces(family: str, kind: type[Pieces], scratch: Path) -> Pieces:
    folder = tiny_checkpoint(family)
    if kind is JsonPieces:
        folder = shutil.copytree(folder, scratch / family)
        for file in folder.glob("*.model"):
            file.unlink()
    read = read_pieces(folder, rules(family), native=kind is not SentencePieces)
    assert type(read) is kind
    return read


def comparable(family: str) -> list[str]:
    """Texts for which transformers can be told to take special tokens as text.

    Its Marian tokenizer takes `>>fra<<` off the front whatever it is told, and its two T5
    tokenizers differ on sentinels and `</s>`. Those of mBART find `</s>` among the pieces.
    """
    as_text = ("nllb", "m2m100")
    return [text for text in CORPUS if family in as_text or text not in SPECIAL_TOKENS]


@pytest.mark.parametrize(("family", "kind"), READERS)
def test_ids_are_those_of_transformers(family: str, kind: type[Pieces], tmp_path: Path) -> None:
    ours = pieces(family, kind, tmp_path)
    for text in comparable(family):
        assert ours.encode(text) == reference_ids(family, text), text


@pytest.mark.parametrize(("family", "kind"), READERS)
def test_texts_are_made_of_the_ids_that_have_text(
    family: str, kind: type[Pieces], tmp_path: Path
) -> None:
    ours, tokenizer = pieces(family, kind, tmp_path), reference(family)
    of_targets = read_pieces(tiny_checkpoint(family), rules(family), of_targets=True)
    special = {tokenizer.unk_token_id, *tokenizer.all_special_ids}
    for text in CORPUS:
        assert set(ours.encode(text)) - special <= ours.text_ids
        assert set(of_targets.encode(text)) - special <= of_targets.text_ids
    words = [token for token in ours.text_ids if tokenizer.decode([token])]
    assert len(words) > 0.9 * len(ours.text_ids)


@pytest.mark.parametrize(("family", "kind"), READERS)
def test_text_is_that_of_transformers(family: str, kind: type[Pieces], tmp_path: Path) -> None:
    ours, tokenizer = pieces(family, kind, tmp_path), reference(family)
    rng = random.Random(1)
    rows = [ours.encode(text) for text in CORPUS if text.strip()]
    rows += [[rng.randrange(len(tokenizer)) for _ in range(12)] for _ in range(300)]
    for row in rows:
        assert ours.decode(row) == reference_text(family, tuple(row)).strip()


@pytest.mark.parametrize(("family", "kind"), READERS)
def test_threads_may_share_one_reader(family: str, kind: type[Pieces], tmp_path: Path) -> None:
    ours = pieces(family, kind, tmp_path)
    expected = [ours.encode(text) for text in CORPUS]
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: [ours.encode(text) for text in CORPUS], range(16)))
    assert all(run == expected for run in runs)


@pytest.mark.core
def test_without_the_compiled_core_python_reads_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Any:
        raise ImportError("ct2-triton was installed without its compiled core")

    assert type(read_pieces(tiny_checkpoint("nllb"), rules("nllb"))) is NativePieces
    monkeypatch.setattr("ct2_triton.engine_library.load_core", absent)
    assert type(read_pieces(tiny_checkpoint("nllb"), rules("nllb"))) is SentencePieces


@pytest.mark.parametrize("family", ["nllb", "m2m100", "marian"])
def test_missing_files_are_named(family: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="copy the folder again"):
        read_pieces(tmp_path, rules(family))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match="cannot read the tokenizer files"):
        read_pieces(tmp_path, rules("nllb"))


@pytest.mark.parametrize("native", [True, False])
def test_an_unknown_family_is_refused(native: bool) -> None:
    """It is not numbered like some other: the ids would mean other words."""
    odd = replace(rules("nllb"), family="nlb")
    with pytest.raises(TokenizerError, match="the family 'nlb', which is not one of nllb, m2m100"):
        read_pieces(tiny_checkpoint("nllb"), odd, native=native)
    assert read_pieces(tiny_checkpoint("nllb"), rules("nllb"), native=native).encode("good")
