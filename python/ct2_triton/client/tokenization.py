# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of a prepared model: sentences to rows of IDs, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.client.pieces import numbers_differ, read_pieces
from ct2_triton.errors import InvalidCallError, TokenizerError, VersionError
from ct2_triton.model_versions import read_config
from ct2_triton.prepared_model import (
    LANGUAGES_NAME,
    REPOSITORY_VARIABLE,
    TEXT_SUFFIX,
    TOKENIZER_NAME,
    Language,
    TokenRules,
    default_repository,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class EncodedText:
    """A tokenized sentence, made once for all targets.

    Attributes:
        ids: The pieces, without language and end tokens.
        unknown_tokens: Number of pieces that the vocabulary does not have.
        is_empty: Whether there is nothing to translate.
    """

    ids: tuple[int, ...]
    unknown_tokens: int
    is_empty: bool


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidCallError(f"text that is not valid Unicode: {error}") from error


class Tokenizer:
    """Make rows of IDs and read them. Immutable, so tasks and threads can share it.

    Rows are composed of the IDs of the language and of the text (`TokenRules`), without setting the
    language on a shared tokenizer.
    """

    def __init__(self, folder: str | os.PathLike[str], *, native: bool = True) -> None:
        """Read a tokenizer folder. Nothing is downloaded.

        Args:
            folder: A prepared model's `tokenizer` folder, wherever it was copied to, or the
                prepared model's own folder.
            native: Use the compiled core if it is installed; it gives the same IDs faster.

        Raises:
            TokenizerError: Files are missing or unusable.
            PreparedModelError: `languages.json` is damaged.
        """
        path = Path(folder)
        if (path / TOKENIZER_NAME / LANGUAGES_NAME).exists():
            path = path / TOKENIZER_NAME
        if not (path / LANGUAGES_NAME).exists():
            raise TokenizerError(
                f"{path} is not the tokenizer folder of a prepared model (it has no "
                f"{LANGUAGES_NAME}); {_HOW_TO_GET_IT}"
            )
        self.folder = path
        self.rules = TokenRules.read(path)
        self._pieces = read_pieces(path, self.rules, native=native)
        # Some vocabularies list special tokens (`</s>`, `<2fr>`) among the pieces.
        self._special = frozenset(self.rules.special_ids)
        self._blank = {self._pieces.space_id} - {None}
        self._numbers_differ = numbers_differ(path, self.rules)
        self._read_target_pieces = cache(
            partial(read_pieces, path, self.rules, of_targets=True, native=native)
        )

    def encode(self, text: str) -> EncodedText:
        """Split a sentence.

        Args:
            text: Any text; special tokens that it spells out are treated as text.

        Returns:
            Its pieces.

        Raises:
            InvalidCallError: The text has half of a surrogate pair.
        """
        _check_unicode(text)
        unknown = self.rules.unk_id
        found = self._pieces.encode(text) if text.strip() else []
        ids = tuple(unknown if i in self._special else i for i in found)
        return EncodedText(ids, ids.count(unknown), self._blank.issuperset(ids))

    def encode_target(self, text: str) -> tuple[int, ...]:
        """Tokenize a translation, or a part of one, as the model generates it.

        Args:
            text: Any Unicode text.

        Returns:
            Its pieces; none for a text without a visible character.

        Raises:
            InvalidCallError: The text has half of a surrogate pair.
            TokenizerError: Files of that side are missing or unusable.
        """
        _check_unicode(text)
        if not text.strip():
            return ()
        found = self._read_target_pieces().encode(text)
        if self._numbers_differ:  # special_ids are numbers of source pieces
            return tuple(found)
        return tuple(self.rules.unk_id if i in self._special else i for i in found)

    def decode(self, ids: Sequence[int]) -> str:
        """Join the pieces of an answer.

        Args:
            ids: Output IDs without the target prefix; IDs without text are skipped.

        Returns:
            The text.
        """
        size = self.rules.tokenizer_size
        return self._pieces.decode([i for i in ids if 0 <= i < size])

    def source(self, name: str | None) -> Language | None:
        """Find the language of a text, by code or alias.

        Raises:
            UnknownLanguageError: The model does not have it; the message names the nearest.
        """
        return self.rules.source_language(name)

    def targets(self, names: str | Sequence[str] | None) -> tuple[Language | None, ...]:
        """Find the languages to translate into.

        Args:
            names: One or several codes or aliases; None for a model without target languages.

        Returns:
            The languages, in order; `(None,)` for None.

        Raises:
            UnknownLanguageError: The model does not have one; the message names the nearest.
            InvalidCallError: The sequence is empty or has a language twice.
        """
        return _find_all(self.rules.target_language, names)


class NamedLanguages:
    """Languages as the caller names them, for a text model, whose server knows the aliases."""

    def source(self, name: str | None) -> Language | None:
        """Return a language of that name; None for None."""
        return None if name is None else Language(name)

    def targets(self, names: str | Sequence[str] | None) -> tuple[Language | None, ...]:
        """Return languages of those names, `(None,)` for None; raises like `Tokenizer.targets`."""
        return _find_all(self.source, names)


def _find_all(
    find: Callable[[str | None], Language | None], names: str | Sequence[str] | None
) -> tuple[Language | None, ...]:
    if names is None or isinstance(names, str):
        return (find(names),)
    found = tuple(find(name) for name in names)
    if not found:
        raise InvalidCallError("targets is empty; name at least one language")
    if len(set(found)) < len(found):
        raise InvalidCallError(f"targets names a language twice: {', '.join(names)}")
    return found


def has_tokenizer(model: str, repository: str | os.PathLike[str] | None = None) -> bool:
    """Return whether the repository has the tokenizer of a model that needs one."""
    folder = _folder(model, repository)
    return (folder / LANGUAGES_NAME).exists() and not _takes_text(folder.parent)


def _takes_text(model: Path) -> bool:
    try:
        inputs = read_config(model).input
    except VersionError:  # the server reports what is wrong
        return False
    return any(tensor.name == "text_input" for tensor in inputs)


def find_rules(model: str, repository: str | os.PathLike[str] | None = None) -> TokenRules | None:
    """Read the token rules of a model; None if its folder is not found."""
    folders = [_folder(name, repository) for name in (model, model.removesuffix(TEXT_SUFFIX))]
    there = [folder for folder in folders if (folder / LANGUAGES_NAME).exists()]
    return TokenRules.read(there[0]) if there else None


def find_tokenizer(
    model: str,
    *,
    repository: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
) -> Tokenizer:
    """Find and read the tokenizer of a model.

    Args:
        model: Name of the model on the server.
        repository: Folder of prepared models; default: the one that the variable
            CT2_MODEL_REPOSITORY names, else `./model_repository`.
        tokenizer: The tokenizer folder itself, instead.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: None is found; the message says how to get it.
        PreparedModelError: `languages.json` is damaged.
    """
    if tokenizer is not None:
        return Tokenizer(tokenizer)
    if "/" in model:
        raise TokenizerError(
            f"{model!r} is not the name of a model on a server; a model of the hub is named by the "
            f"last part of its id: {model.rstrip('/').split('/')[-1]!r}"
        )
    folder = _folder(model, repository)
    if repository is None and not folder.is_dir():
        raise TokenizerError(
            f"no tokenizer for model {model!r}: there is no folder {folder}; name the model "
            f"repository that holds {model}/{TOKENIZER_NAME} (--model-repository, or "
            f"{REPOSITORY_VARIABLE}), or the tokenizer's own folder, or use a text "
            f"model, which needs no tokenizer; {_HOW_TO_GET_IT}"
        )
    return Tokenizer(folder)


def _folder(model: str, repository: str | os.PathLike[str] | None) -> Path:
    return Path(repository or default_repository()) / model / TOKENIZER_NAME


_HOW_TO_GET_IT = (
    f"on a machine without the model, copy the folder {TOKENIZER_NAME}/ that ct2-prepare wrote "
    "into <model repository>/<model>/ and name it"
)
