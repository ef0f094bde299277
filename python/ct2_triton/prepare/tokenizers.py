# SPDX-License-Identifier: Apache-2.0
"""Load the tokenizer of a checkpoint, with the normalizer that the model was trained with.

transformers 5 rebuilds tokenizers without parts of SentencePiece's normalizer. NLLB and mBART-50
then have an additional piece for a text that ends in a space. mBART-25 (and T5 with 5.0) has
unknown tokens for compatibility characters (`ﬁ`, `½`). transformers 5 also saves a `tokenizer.json`
without these parts, and no SentencePiece model. So the normalizer is restored here as in
transformers 4. With it, all releases give the IDs of SentencePiece.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepare.checkpoint import CONFIG_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

# Families whose tokenizers transformers runs with `tokenizers`; for the others it uses
# SentencePiece itself.
_SENTENCEPIECE_FILES = ("sentencepiece.bpe.model", "spiece.model")


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer that `transformers` chooses for files, with SentencePiece's normalizer."""
    import transformers

    auto: Any = transformers.AutoTokenizer
    try:
        tokenizer: PreTrainedTokenizerBase = auto.from_pretrained(
            str(folder), local_files_only=True
        )
    except Exception as error:  # transformers and its tokenizers raise various exceptions
        raise UnsupportedModelError(
            f"cannot load the tokenizer of {folder}: {error}{_hint_of_version(folder)}"
        ) from error
    # transformers returns False if a slow tokenizer fails with an OSError.
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise UnsupportedModelError(f"cannot load the tokenizer of {folder}: its files are damaged")
    if backend := backend_of(tokenizer):
        _restore_normalizer(backend, folder)
    return tokenizer


def backend_of(tokenizer: PreTrainedTokenizerBase) -> Any:  # noqa: ANN401 - untyped library
    """Return the `tokenizers.Tokenizer` that splits the texts; None if another library does."""
    return getattr(tokenizer, "backend_tokenizer", None)


def beside_added_tokens(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return how a tokenizer splits the text between two added tokens.

    It is a value of `TokenRules.beside_added_tokens`; empty for any other way.
    """
    backend = backend_of(tokenizer)
    step = json.loads(backend.to_str())["pre_tokenizer"] if backend else None
    steps = step.get("pretokenizers", [step]) if step else []
    kinds = [one["type"] for one in steps]
    if kinds not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        return ""
    scheme = steps[-1].get("prepend_scheme", "always")
    if steps[-1].get("replacement") != "▁" or scheme not in ("always", "first"):
        return ""
    if len(kinds) == 1:
        return str(scheme)
    return "words" if scheme == "always" else ""


def sentencepiece_file(folder: Path) -> Path | None:
    """Find the SentencePiece model in a tokenizer's folder.

    Folders saved by transformers 5 have none.
    """
    files = (folder / name for name in _SENTENCEPIECE_FILES)
    return next((file for file in files if file.is_file()), None)


def missing_normalization(folder: Path) -> str:
    """Return what a tokenizer with only `tokenizer.json` lacks; empty for nothing."""
    path = folder / "tokenizer.json"
    if sentencepiece_file(folder) or not path.is_file():
        return ""
    content = json.loads(path.read_text(encoding="utf-8"))
    if "Precompiled" in json.dumps(content.get("normalizer")):
        return ""
    return (
        "tokenizer.json does not normalize characters, so that such as 'ﬁ' may be unknown: "
        "transformers 5 saves some families so; the SentencePiece file of the original model, put "
        "beside it, mends that"
    )


def _restore_normalizer(backend: Any, folder: Path) -> None:  # noqa: ANN401 - untyped library
    """Replace the incomplete normalizer of transformers by SentencePiece's."""
    from tokenizers import Regex, normalizers

    file = sentencepiece_file(folder)
    steps = _steps_of(file) if file else [backend.normalizer] if backend.normalizer else []
    backend.normalizer = normalizers.Sequence(
        [
            *steps,
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
    )


def _steps_of(file: Path) -> list[Any]:
    """Read the normalization of a SentencePiece model."""
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import normalizers

    model: Any = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(file.read_bytes())
    table = model.normalizer_spec.precompiled_charsmap
    return [normalizers.Precompiled(table)] if table else []


def _hint_of_version(folder: Path) -> str:
    """Return a hint if another version of transformers saved the folder than reads it."""
    import transformers

    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        written_by = str(config.get("transformers_version", ""))
    except (OSError, ValueError, AttributeError):
        return ""
    here = str(transformers.__version__)
    if written_by.split(".")[0] in ("", here.split(".")[0]):
        return ""
    return (
        f" (it was saved by transformers {written_by}, which {here} cannot always read: take the "
        f"tokenizer files of the model it was trained from, or install transformers {written_by})"
    )
