# SPDX-License-Identifier: Apache-2.0
"""Tokens that a fine-tune added to the tokenizer: the same in and out as with transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import AddedToken

from ct2_triton.client.pieces import NativePieces
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.errors import UnsupportedModelError, VerificationError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.tokenizers import load_tokenizer
from support.odd_texts import ODD_TEXTS
from support.tiny import tiny_checkpoint
from support.tokenizers import write_tokenizer

pytestmark = pytest.mark.usefixtures("short_proofs")

IS_5 = transformers.__version__.startswith("5.")
TEXTS = (
    "He said covfefe to him, covfefe.",
    "covfefe",
    "said<ent>to <ent> x",
    "two  spaces  covfefe  and an end ",
    "New York, Newcastle, New Yorker",
)


def add_tokens(checkpoint: Path, *, resize: bool = True) -> Any:
    """Adds tokens as fine-tuning scripts do; gives the tokenizer that was saved."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.add_tokens(["covfefe", "<ent>", AddedToken("New York", single_word=True)])
    tokenizer.add_tokens(["<name>"], special_tokens=True)
    tokenizer.save_pretrained(checkpoint)
    if resize:
        model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
        model.resize_token_embeddings(len(tokenizer))
        model.save_pretrained(checkpoint)
    return load_tokenizer(checkpoint)


@pytest.mark.parametrize("family", ["nllb", "mbart50", "t5", "madlad"])
def test_added_tokens_go_in_and_out(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, family: str
) -> None:
    checkpoint = checkpoint_copy(family)
    reference = add_tokens(checkpoint)
    if not IS_5:  # which keeps added tokens nowhere else
        (checkpoint / "tokenizer.json").unlink()  # transformers does without, and so must a client
    lines: list[str] = []
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"), lines.append)
    tokenizer = Tokenizer(model.tokenizer_folder)
    assert [token.content for token in tokenizer.rules.added_tokens] == [
        "covfefe",
        "<ent>",
        "New York",
        "<name>",
    ]
    assert "added tokens: 3 (covfefe, <ent>, New York)" in lines
    assert "added tokens, which are special and left out of translations: 1 (<name>)" in lines
    task = {"t5": "translate English to German: ", "madlad": "<2de> "}.get(family, "")
    task_ids = reference.encode(task.strip(), add_special_tokens=False)
    for text in (*TEXTS, "called <name> here"):
        ids = reference.encode(task + text, add_special_tokens=False)
        assert [*task_ids, *tokenizer.encode(text).ids] == ids, text
        assert tokenizer.decode(ids) == reference.decode(ids, skip_special_tokens=True).strip()
    if not (IS_5 and task):  # T5 of version 5 leaves out the space before an added token
        sent = tokenizer.encode("He said covfefe to him")
        assert tokenizer.decode(sent.ids) == "He said covfefe to him"


@pytest.mark.core
@pytest.mark.parametrize("family", ["nllb", "mbart50"])
def test_other_special_tokens_are_still_only_text(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, family: str
) -> None:
    checkpoint = checkpoint_copy(family)
    add_tokens(checkpoint)
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    native = Tokenizer(model.tokenizer_folder)
    from_json = Tokenizer(model.tokenizer_folder, native=False)
    without = Tokenizer(write_tokenizer(tiny_checkpoint(family), tmp_path / "without"))
    plain: Any = load_tokenizer(tiny_checkpoint(family))
    for text in ("a</s>b", "fra_Latn de_DE <mask>", *ODD_TEXTS):
        assert native.encode(text) == without.encode(text), text
        ids = plain.encode(text, add_special_tokens=False, split_special_tokens=True)
        # tokenizers finds `</s>` in the text of a unigram model, whatever it is told.
        special = native.rules.special_ids
        known = [plain.unk_token_id if i in special else i for i in ids]
        if text.strip():
            assert list(from_json.encode(text).ids) == known


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_families_whose_converter_cannot_have_them_are_refused_by_name(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, family: str
) -> None:
    checkpoint = checkpoint_copy(family)
    add_tokens(checkpoint)
    with pytest.raises(
        UnsupportedModelError, match=r"\('covfefe', '<ent>', 'New York', '<name>'\)"
    ):
        prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))


def test_tokens_without_a_row_in_the_model_are_refused_by_name(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """The tiny NLLB has two spare rows, which the first two tokens get."""
    checkpoint = checkpoint_copy("nllb")
    add_tokens(checkpoint, resize=False)
    with pytest.raises(
        UnsupportedModelError, match=r"\('New York', '<name>'\).* model.resize_token_emb"
    ):
        prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))


@pytest.mark.core
def test_the_proof_compares_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativePieces, "decode", lambda self, ids: "something else")
    with pytest.raises(VerificationError, match="a client would read 'something else'"):
        prepare(PrepareOptions(str(tiny_checkpoint("nllb")), tmp_path))
