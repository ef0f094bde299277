# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of transformers 4 and 5 give the ids of SentencePiece, whoever saved them.

The main run has transformers 4; tests/packaging/test_transformers_5.py runs this with 5.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.errors import MissingPackageError
from ct2_triton.prepare import PrepareOptions, environment, prepare
from ct2_triton.prepare.checkpoint import Checkpoint
from ct2_triton.prepare.families import recognise
from ct2_triton.prepare.tokenizers import load_tokenizer
from ct2_triton.prepared_model import ModelSource
from support.odd_texts import INVISIBLE, NOTHING, SCRIPTS, SPACES, SPECIAL_TOKENS
from support.tiny import tiny_checkpoint
from tiny_corpus import sentences

pytestmark = pytest.mark.usefixtures("short_proofs")

IS_5 = transformers.__version__.startswith("5.")
# SentencePiece turns all of these into spaces, which it leaves out at the end of a text.
SPACE_LAST = {
    "  two  spaces ", "trailing ", "\u00a0no-break space\u00a0", "▁lower one eighth block ▁ ",
    *NOTHING[1:],
}  # fmt: skip
SPACE_LAST_5 = SPACE_LAST - {"\x01"}  # which is left out, and not a space
OTHER_FORMS = {
    "▁lower one eighth block ▁ ", "ﬁ ligature, ½ ① Ａ", "e\u0301 combining, é composed",
    *INVISIBLE, *NOTHING[4:],
} - {"NUL\0inside", "soft\u00adhyphen"}  # fmt: skip
# Where transformers 5 gives other ids than SentencePiece, by itself.
EDGE_OF_5 = {
    "nllb": SPACE_LAST_5,
    "mbart50": SPACE_LAST_5,
    "mbart25": OTHER_FORMS,
    "t5": set(),
    "madlad": set(),
}
TEXTS = (*SPACES, *SCRIPTS, *INVISIBLE, *NOTHING, *sentences(50, seed=3))


def ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))


@pytest.mark.parametrize("family", EDGE_OF_5)
def test_where_transformers_gives_other_ids(family: str) -> None:
    plain: Any = transformers.AutoTokenizer.from_pretrained(tiny_checkpoint(family))
    restored = load_tokenizer(tiny_checkpoint(family))
    differ = {text for text in TEXTS if ids(plain, text) != ids(restored, text)}
    assert differ == (EDGE_OF_5[family] if IS_5 else set())


# Version 4 cannot read a T5 tokenizer that asks for a first space from tokenizer.json alone.
@pytest.mark.parametrize("family", EDGE_OF_5 if IS_5 else ["nllb", "mbart50", "mbart25"])
def test_a_folder_with_tokenizer_json_alone(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, family: str
) -> None:
    """As the installed transformers saves it; version 5 saves no SentencePiece model."""
    checkpoint = checkpoint_copy(family)
    plain: Any = transformers.AutoTokenizer.from_pretrained(checkpoint)
    for file in checkpoint.glob("*.model"):
        file.unlink()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (checkpoint / name).unlink()
    plain.save_pretrained(checkpoint)
    for file in checkpoint.glob("*.model"):
        file.unlink()
    lines: list[str] = []
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"), lines.append)
    ours, right = Tokenizer(model.tokenizer_folder), load_tokenizer(tiny_checkpoint(family))
    lost = IS_5 and family == "mbart25"
    assert any("does not normalize characters" in line for line in lines) == lost
    for text in (*TEXTS, *SPECIAL_TOKENS[:1]):
        if text.strip() and not (lost and text in OTHER_FORMS):
            assert list(ours.encode(text).ids) == ids(right, text), text


@pytest.mark.parametrize("family", ["nllb", "mbart50"])
def test_a_class_of_any_family_is_no_class(
    checkpoint_copy: Callable[[str], Path], family: str
) -> None:
    """Some releases of transformers 5 save `TokenizersBackend`; config.json names the class."""
    checkpoint = checkpoint_copy(family)
    path = checkpoint / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "tokenizer_class": "TokenizersBackend"}), "utf-8")
    assert recognise(Checkpoint(checkpoint, ModelSource(id="m"))).name == family


@pytest.mark.parametrize("family", ["nllb", "m2m100", "mbart25"])
def test_a_converter_that_does_not_know_transformers_5_is_refused(
    family: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    versions = {"ctranslate2": "4.6.3", "transformers": "5.23.0"}
    original = environment._version
    monkeypatch.setattr(environment, "_version", lambda name: versions.get(name, original(name)))
    options = PrepareOptions(str(tiny_checkpoint(family)), tmp_path / "repository")
    with pytest.raises(
        MissingPackageError,
        match="CTranslate2 4.6.3 cannot convert .* with transformers 5.23.0; install "
        "'ctranslate2>=4.7', or 'transformers<5'",
    ):
        prepare(options)
    assert not options.model_repository.exists()
    versions["ctranslate2"] = "4.7.0"
    environment.check_pair(family, "a model", environment.check_environment() | versions)
