# SPDX-License-Identifier: Apache-2.0
"""Convert text to the IDs of its pieces and back, with the tokenizer files of a model.

The files are read with SentencePiece, which all five families were trained with. If a folder lacks
that file (transformers 5 does not save it), tokenizer.json is read with `tokenizers`. Both give the
same IDs as transformers (tests/python/client/test_pieces.py). transformers itself is not used: it
takes seconds to import, its tokenizers have state (`src_lang`, truncation, padding) that concurrent
calls would share, and its version changes IDs (transformers 5 adds a piece to an NLLB text that
ends in a space).

Special tokens in a text are treated as text. transformers converts a literal `</s>` or `fra_Latn`
to that special token, so a sentence could end itself or change its language. Here they are split
into ordinary pieces, as transformers does with `split_special_tokens=True`.

For a model that was already converted when ct2-prepare read it, pieces are looked up by name in its
own vocabularies, of which each side may have one.

Tokens that were added to a family's own (`TokenRules.added_tokens`) are single tokens in a text, as
in transformers. SentencePiece does not know them, so without the compiled core tokenizer.json is
read.

If the compiled core is installed, `NativePieces` replaces `SentencePieces`: the backend's C++ code
gives the same IDs and texts (tests/core/test_tokenizer.py) in less time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from ct2_triton.errors import TokenizerError
from ct2_triton.prepared_model import LANGUAGES_NAME, NAMED_PIECES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sentencepiece import SentencePieceProcessor

    from ct2_triton.prepared_model import AddedToken, TokenRules

_SPACE = "▁"  # how SentencePiece writes a space at the start of a piece


class Pieces(Protocol):
    """Both directions of a tokenizer, without special tokens. Safe for concurrent use."""

    space_id: int | None
    """ID of the piece that is a single space."""

    text_ids: frozenset[int]
    """IDs of the pieces that can occur in a text."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without spaces around it; special tokens have none."""


class JsonPieces:
    """Pieces of a tokenizer.json, read with the `tokenizers` library."""

    def __init__(self, file: Path, added: Sequence[AddedToken] = (), before: str = "") -> None:
        """Read the tokenizer.json.

        A text may contain the added tokens; any other special token in it is treated as text.
        `before` is put between a text and what precedes it in a row.
        """
        import tokenizers

        self._before = before
        self._left_out = {token.id for token in added if token.special}
        content = json.loads(file.read_text(encoding="utf-8"))
        for entry in content["added_tokens"]:
            entry["special"] = entry["special"] and entry["id"] not in self._left_out
        self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        self.space_id = self._tokenizer.token_to_id(_SPACE)
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        self.text_ids = frozenset(vocabulary.values()) | {token.id for token in added}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ids: list[int] = self._tokenizer.encode(self._before + text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without spaces around it; special tokens have none."""
        kept = [i for i in ids if i not in self._left_out]
        text: str = self._tokenizer.decode(kept, skip_special_tokens=True)
        return text.strip()


class SentencePieces:
    """Pieces of one SentencePiece model per direction, with the translation model's IDs."""

    def __init__(
        self,
        source: Path,
        target: Path,
        number: Callable[[SentencePieceProcessor], list[int]],
        names: Callable[[SentencePieceProcessor], dict[int, str]],
    ) -> None:
        """Read the files.

        Args:
            source: SentencePiece model that splits text.
            target: SentencePiece model that joins pieces; often the same.
            number: Returns the model's ID for each ID of the source processor.
            names: Returns the piece of each ID, given the target processor.
        """
        self._source = _processor(source)
        self._target = self._source if source == target else _processor(target)
        self._number = number(self._source)
        self._names = names(self._target)
        self.text_ids = frozenset(self._names)
        space = self._source.piece_to_id(_SPACE)
        self.space_id = None if self._source.is_unknown(space) else self._number[space]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return [self._number[i] for i in self._source.encode(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without spaces around it; special tokens have none."""
        pieces = [self._names[i] for i in ids if i in self._names]
        text: str = self._target.decode_pieces(pieces)
        # A piece that only the source model has is returned as it is written.
        return text.replace(_SPACE, " ").strip()


class NativePieces:
    """Pieces of the compiled core, as in the backend."""

    def __init__(self, pieces: Any) -> None:  # noqa: ANN401 - a class of the compiled core
        """Wrap a `ct2_triton._core.Pieces`."""
        self._pieces = pieces
        self.space_id: int | None = pieces.space_id
        self.text_ids = frozenset(pieces.text_ids)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ids: list[int] = self._pieces.encode(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without spaces around it; special tokens have none."""
        text: str = self._pieces.decode(ids)
        return text


def native_pieces(
    folder: Path, rules: TokenRules, *, of_targets: bool = False
) -> NativePieces | None:
    """Read the tokenizer files of a prepared model with the compiled core.

    Returns None without a core, and for files that it does not read: tokenizer.json, and missing or
    damaged ones.
    """
    from ct2_triton.engine_library import EngineLibraryError, load_core

    try:
        core = load_core()
    except (ImportError, EngineLibraryError):
        return None
    try:
        found = core.Pieces(str(folder), json.dumps(rules.content()), of_targets=of_targets)
    except core.Error:
        return None
    return NativePieces(found)


def read_pieces(
    folder: Path, rules: TokenRules, *, of_targets: bool = False, native: bool = True
) -> Pieces:
    """Read the tokenizer files of a prepared model.

    Args:
        folder: The model's tokenizer folder.
        rules: Its rules, which say what family the files belong to.
        of_targets: Split texts as translations, because OPUS-MT has a SentencePiece model for each
            side.
        native: Use the compiled core if it is installed.

    Returns:
        Both directions of the tokenizer.

    Raises:
        TokenizerError: Files are missing or damaged.
    """
    if rules.family not in _SENTENCEPIECE_FILES:
        raise TokenizerError(
            f"{folder / LANGUAGES_NAME} names the family {rules.family!r}, which is not one of "
            f"{', '.join(_SENTENCEPIECE_FILES)}; correct it, or prepare the model again with this "
            "version of ct2-prepare"
        )
    if native and (found := native_pieces(folder, rules, of_targets=of_targets)):
        return found
    try:
        if rules.family == NAMED_PIECES:
            return _named_pieces(folder, rules, of_targets)
        if rules.family in ("m2m100", "marian"):
            return _listed_pieces(folder, rules, of_targets)
        if rules.added_tokens:
            # T5 has its task in words before the text, so an added token follows a space.
            before = " " if rules.family == "t5" and rules.languages else ""
            return JsonPieces(folder / "tokenizer.json", rules.added_tokens, before)
        file = folder / _SENTENCEPIECE_FILES[rules.family]
        if file.exists() or not (folder / "tokenizer.json").exists():
            return _shifted_pieces(file, rules)
        return JsonPieces(folder / "tokenizer.json")
    except Exception as error:  # both libraries raise various exceptions
        raise TokenizerError(
            f"cannot read the tokenizer files in {folder}: {error}; copy the folder again from "
            "the prepared model, or prepare the model again with ct2-prepare"
        ) from error


# The reader of each supported family.
_SENTENCEPIECE_FILES = {
    "nllb": "sentencepiece.bpe.model",
    "m2m100": "sentencepiece.bpe.model",
    "mbart50": "sentencepiece.bpe.model",
    "mbart25": "sentencepiece.bpe.model",
    "marian": "source.spm",
    "t5": "spiece.model",
    NAMED_PIECES: "source.spm",
}


def numbers_differ(folder: Path, rules: TokenRules) -> bool:
    """Return whether the pieces of translations have other IDs than those of sources."""
    return rules.family == "pieces" and not (folder / "shared_vocabulary.json").exists()


def _listed_pieces(folder: Path, rules: TokenRules, of_targets: bool) -> SentencePieces:
    """Read a family whose vocab.json has the IDs of its pieces."""
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    special = {*rules.special_ids, rules.unk_id}

    def number(processor: SentencePieceProcessor) -> list[int]:
        pieces = [processor.id_to_piece(i) for i in range(len(processor))]
        return [vocabulary.get(piece, rules.unk_id) for piece in pieces]

    def names(_: SentencePieceProcessor) -> dict[int, str]:
        return {i: piece for piece, i in vocabulary.items() if i not in special}

    if rules.family == "marian":
        target = folder / "target.spm"
        source = target if of_targets else folder / _SENTENCEPIECE_FILES["marian"]
        return SentencePieces(source, target, number, names)
    file = folder / _SENTENCEPIECE_FILES[rules.family]
    return SentencePieces(file, file, number, names)


def _named_pieces(folder: Path, rules: TokenRules, of_targets: bool) -> Pieces:
    """Read a converted model: pieces have the IDs of its own vocabularies, one for each side."""
    if (folder / "tokenizer.json").exists():
        return JsonPieces(folder / "tokenizer.json")
    single = folder / "sentencepiece.model"
    sides = [single if single.exists() else folder / f"{side}.spm" for side in ("source", "target")]
    shared = folder / "shared_vocabulary.json"
    files = [
        shared if shared.exists() else folder / f"{side}_vocabulary.json"
        for side in ("source", "target")
    ]
    of_source, of_target = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    unknown = of_source[rules.unk_id]
    split = sides[1] if of_targets else sides[0]
    tokens = of_target if of_targets else of_source
    ids = {token: i for i, token in reversed(list(enumerate(tokens)))}  # the first, if repeated

    def number(processor: SentencePieceProcessor) -> list[int]:
        pieces = [processor.id_to_piece(i) for i in range(len(processor))]
        return [ids.get(piece, ids.get(unknown, rules.unk_id)) for piece in pieces]

    def names(_: SentencePieceProcessor) -> dict[int, str]:
        known = {piece for file in set(sides) for piece in text_pieces(file)}
        return {i: token for i, token in enumerate(of_target) if token in known}

    return SentencePieces(split, sides[1], number, names)


def text_pieces(file: Path) -> set[str]:
    """Return the pieces of a SentencePiece model or tokenizer.json that can occur in a text."""
    if file.suffix == ".json":
        import tokenizers

        vocabulary = tokenizers.Tokenizer.from_file(str(file)).get_vocab(with_added_tokens=False)
        return set(vocabulary)
    processor = _processor(file)
    return {
        processor.id_to_piece(i) for i in range(len(processor)) if not _is_special(processor, i)
    }


def _shifted_pieces(file: Path, rules: TokenRules) -> SentencePieces:
    """Read a family whose piece IDs are those of SentencePiece or of fairseq.

    fairseq puts `<s> <pad> </s> <unk>` before the pieces, SentencePiece `<unk> <s> </s>`.
    """
    shift = 0 if rules.family == "t5" else 1

    def number(processor: SentencePieceProcessor) -> list[int]:
        ids = range(len(processor))
        return [rules.unk_id if processor.is_unknown(i) else i + shift for i in ids]

    def names(processor: SentencePieceProcessor) -> dict[int, str]:
        ids = [i for i in range(len(processor)) if not _is_special(processor, i)]
        return {i + shift: processor.id_to_piece(i) for i in ids}

    return SentencePieces(file, file, number, names)


def _is_special(processor: SentencePieceProcessor, i: int) -> bool:
    return bool(processor.is_unknown(i) or processor.is_control(i) or processor.is_unused(i))


def _processor(file: Path) -> SentencePieceProcessor:
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(file))
