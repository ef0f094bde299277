# SPDX-License-Identifier: Apache-2.0
"""Added tokens in C++ against the library tokenizers, which reads the same folder's tokenizer.json.

The texts have tokens of every flag, glued to words, in spaces of all kinds, and in each other.
"""

from __future__ import annotations

import json
import random
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import AddedToken

from ct2_triton import _core
from ct2_triton.client.pieces import JsonPieces, NativePieces
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.prepare.model_config import check_tokenizer
from support.odd_texts import INVISIBLE, LONG, NOTHING, SCRIPTS, SPACES
from support.tiny import tiny_checkpoint
from support.tokenizers import write_tokenizer
from tiny_corpus import sentences

FAMILIES = ("nllb", "mbart50", "mbart25", "t5", "madlad")
FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")
WORDS = (
    "covfefe", "<ent>", "New York", "New", "cov", "ﬁsh", "É", "日本", "the river", "▁x", "e",
    "½ cup", "👩", "a\u0301b", " sp", "end ", "\u00a0n",
)  # fmt: skip
SEPARATORS = (" ", " ", " ", "", "  ", "\u3000", "\t", "\u00a0", ".")
ALPHABET = "the river.  \u00a0\u3000\u200b▁éﬁ½日本कख\t\n👩"
ONE = "covfefe"


def tokens(seed: int) -> list[AddedToken]:
    rng = random.Random(seed)
    return [AddedToken(word, **{flag: rng.random() < 0.35 for flag in FLAGS}) for word in WORDS]


def texts() -> list[str]:
    rng, made = random.Random(5), []
    for sentence in sentences(250, seed=5):
        words = sentence.split(" ")
        for _ in range(rng.randrange(4)):
            words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS))
        made.append("".join(word + rng.choice(SEPARATORS) for word in words))
    for _ in range(400):
        letters = (rng.choice(WORDS if rng.random() < 0.25 else ALPHABET) for _ in range(12))
        made.append("".join(letters))
    # Where \r\n stands beside a token, the library takes it for one space, SentencePiece for two.
    odd = (text for text in (*SPACES, *SCRIPTS, *INVISIBLE, *LONG, *NOTHING) if "\r" not in text)
    return [*made, *odd]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    root = tmp_path_factory.mktemp("added")

    @cache
    def folder(family: str, seed: int) -> Path:
        place = root / f"{family}-{seed}"
        checkpoint = Path(shutil.copytree(tiny_checkpoint(family), place / "checkpoint"))
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(checkpoint)
        tokenizer.add_tokens(tokens(seed) if seed else [AddedToken(ONE, single_word=True)])
        tokenizer.save_pretrained(checkpoint)
        config = checkpoint / "config.json"
        content = json.loads(config.read_text(encoding="utf-8"))
        content["vocab_size"] = len(tokenizer)  # no weights are read here
        config.write_text(json.dumps(content), encoding="utf-8")
        return write_tokenizer(checkpoint, place / "tokenizer")

    return folder


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_ids_and_texts_are_those_of_the_library(
    folder_of: Callable[..., Path], family: str, seed: int
) -> None:
    folder = folder_of(family, seed)
    ours, theirs = Tokenizer(folder), Tokenizer(folder, native=False)
    assert isinstance(ours._pieces, NativePieces)
    assert isinstance(theirs._pieces, JsonPieces)
    added = {token.id for token in ours.rules.added_tokens}
    assert len(added) >= len(WORDS) - 2  # some are pieces of the family already
    rng, found = random.Random(seed), 0
    for text in texts():
        ids = theirs.encode(text).ids
        assert ours.encode(text).ids == ids, text
        found += not added.isdisjoint(ids)
        row = [*ids, *rng.choices(range(ours.rules.tokenizer_size), k=3)]
        assert ours.decode(row) == theirs.decode(row), row
    assert found > 300


@pytest.mark.parametrize("family", ["nllb", "t5"])
def test_words_end_where_the_library_says(folder_of: Callable[..., Path], family: str) -> None:
    """A token that is a single word, beside all kinds of characters."""
    folder = folder_of(family, 0)
    ours, theirs = Tokenizer(folder), Tokenizer(folder, native=False)
    (token,) = ours.rules.added_tokens
    assert token.single_word
    kinds = (unicodedata.category(chr(point)) for point in range(0x20000))
    known = [point for point, kind in enumerate(kinds) if kind not in ("Cn", "Co", "Cs")]
    chosen = random.Random(1).sample(known, 4000)
    alone = 0
    for point in chosen:
        for text in (f"x {chr(point)}{ONE} x", f"x {ONE}{chr(point)} x"):
            is_token = token.id in theirs.encode(text).ids
            assert (token.id in ours.encode(text).ids) == is_token, hex(point)
            alone += is_token
    assert 0 < alone < len(chosen)


def test_the_backend_has_them(folder_of: Callable[..., Path]) -> None:
    folder = folder_of("nllb", 0)
    check_tokenizer(folder)
    ours, rules = _core.Tokenizer(str(folder)), Tokenizer(folder).rules
    (token,) = rules.added_tokens
    row = ours.source(f"a {ONE} b {ONE}s", "en", "de")
    assert row.count(token.id) == 1
    assert ours.text(row) == f"a {ONE} b {ONE}s"
    assert ours.settled_text(row) == f"a {ONE} b {ONE}s"


def test_spaces_that_a_token_takes_may_be_tokens(folder_of: Callable[..., Path]) -> None:
    rules = Tokenizer(folder_of("nllb", 0)).rules
    (token,) = rules.added_tokens
    token = replace(token, single_word=False, normalized=False)
    added = [replace(token, content="<e>", rstrip=True)]
    added += [replace(token, content=" ", id=token.id + 1)]
    content = replace(rules, added_tokens=tuple(added)).content()
    pieces = _core.Pieces(str(folder_of("nllb", 0)), json.dumps(content))
    assert pieces.encode("<e>  <e>") == [token.id] * 2
    assert pieces.encode(" <e>") == [token.id + 1, token.id]


@pytest.mark.parametrize("beside", ["", "in turns"])
def test_a_folder_that_does_not_say_how_is_refused_and_read_by_the_client(
    folder_of: Callable[..., Path], tmp_path: Path, beside: str
) -> None:
    """As folders that an earlier version prepared."""
    folder = Path(shutil.copytree(folder_of("nllb", 0), tmp_path / "copy"))
    file = folder / "languages.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "beside_added_tokens": beside}))
    with pytest.raises(_core.Error, match="prepare the model again") as refused:
        _core.Tokenizer(str(folder))
    assert refused.value.code == "unsupported"
    client = Tokenizer(folder)
    assert client.encode(f"a {ONE}").ids == Tokenizer(folder_of("nllb", 0)).encode(f"a {ONE}").ids


def test_a_million_spaces_are_walked_once(folder_of: Callable[..., Path]) -> None:
    """Each of them is a token that takes those behind it; their number times itself never ends."""
    folder = folder_of("nllb", 0)
    rules = json.loads((folder / "languages.json").read_text(encoding="utf-8"))
    [known] = [token for token in rules["added_tokens"] if token["content"] == ONE]
    lines = {**known, "content": "\n", "single_word": False, "rstrip": True, "normalized": False}
    own = Path(shutil.copytree(folder, folder.with_name("lines")))
    (own / "languages.json").write_text(
        json.dumps({**rules, "added_tokens": [lines]}), encoding="utf-8"
    )
    text = "a" + "\n" * 1_000_000 + "b"
    assert Tokenizer(own).encode(text).ids.count(known["id"]) == 1
