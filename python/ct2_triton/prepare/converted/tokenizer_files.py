# SPDX-License-Identifier: Apache-2.0
"""Find the tokenizer of a converted model: SentencePiece files, or a tokenizer.json."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from ct2_triton.errors import UnsupportedModelError, VerificationError
from ct2_triton.prepare.checkpoint import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ct2_triton.prepare.converted.vocabularies import Vocabularies

_PAIRS = (("source.spm", "target.spm"), ("src.spm", "tgt.spm"), ("source.model", "target.model"))
_SINGLE = ("sentencepiece.bpe.model", "sentencepiece.model", "spiece.model", "tokenizer.model")
_JSON = "tokenizer.json"
_SHOWN = 3


def find_tokenizer_files(folder: Path) -> tuple[Path, Path]:
    """Find the files that encode sources and decode translations, which may be one file."""
    for source, target in _PAIRS:
        if (folder / source).is_file() and (folder / target).is_file():
            return folder / source, folder / target
    for name in _SINGLE:
        if (folder / name).is_file():
            return folder / name, folder / name
    others = sorted({*folder.glob("*.model"), *folder.glob("*.spm")} - {folder / "bpe.model"})
    if len(others) == 1:
        return others[0], others[0]
    if others:
        names = ", ".join(path.name for path in others)
        raise UnsupportedModelError(
            f"{names}: it is unknown which one tokenizes the source; name them source.spm and "
            "target.spm"
        )
    if (folder / _JSON).is_file():
        return folder / _JSON, folder / _JSON
    if any(folder.glob("*bpe*")):
        raise UnsupportedModelError(
            "its texts are split by subword-nmt (BPE) after Moses' tokenizer; only SentencePiece "
            "models and tokenizer.json are read"
        )
    raise UnsupportedModelError(
        "there is no tokenizer: neither a SentencePiece model (source.spm and target.spm, "
        f"{', '.join(_SINGLE)}) nor {_JSON}"
    )


def write_tokenizer(files: tuple[Path, Path], vocabularies: Vocabularies, output: Path) -> None:
    """Write the tokenizer folder for clients, without languages.json."""
    source, target = files
    if source.name == _JSON:
        shutil.copyfile(source, output / _JSON)
    elif source == target:
        shutil.copyfile(source, output / "sentencepiece.model")
    else:
        shutil.copyfile(source, output / "source.spm")
        shutil.copyfile(target, output / "target.spm")
    vocabularies.write(output)


def check_ids(folder: Path, vocabularies: Vocabularies) -> list[str]:
    """Compare the IDs of the tokenizer's own files with the vocabulary; return the files' names."""
    files: dict[str, Sequence[str]] = {"vocab.json": vocabularies.source}
    files |= {"target_vocab.json": vocabularies.target, _JSON: vocabularies.source}
    compared = [name for name in files if (folder / name).is_file()]
    for name in compared:
        numbered = _numbered(folder / name)
        tokens = files[name]
        wrong = {t: i for t, i in numbered.items() if i < len(tokens) and tokens[i] != t}
        if wrong:
            shown = ", ".join(
                f"{i}: {tokens[i]!r} for {t!r}" for t, i in list(wrong.items())[:_SHOWN]
            )
            raise VerificationError(
                f"the model's vocabulary differs from {name} at {len(wrong)} of {len(numbered)} "
                f"ids ({shown}); these files do not belong together"
            )
    return compared


def _numbered(file: Path) -> dict[str, int]:
    if file.name == _JSON:
        import tokenizers

        found: dict[str, int] = tokenizers.Tokenizer.from_file(str(file)).get_vocab()
        return found
    content = json.loads(file.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def read_config(model: Path) -> dict[str, object]:
    """Read the config.json of a CTranslate2 model; empty for older models without it."""
    file = model / CONFIG_FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise UnsupportedModelError(f"{file.name} is damaged: {error}") from error
    return content if isinstance(content, dict) else {}
