# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of a prepared model: from a sentence to rows of ids, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.client.pieces import numbers_differ, read_pieces
from ct2_triton.default_repository import REPOSITORY_VARIABLE, default_repository
from ct2_triton.errors import InvalidCallError, TokenizerError, VersionError
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    LANGUAGES_NAME,
    TEXT_SUFFIX,
    TOKENIZER_NAME,
    Language,
    TokenRules,
    parse_config,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class EncodedText:
    """A sentence in pieces; made once, whatever the number of targets.

    Attributes:
        ids: The pieces, without language and end tokens.
        unknown_tokens: How many of them the vocabulary does not have.
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
    """Make rows of ids and read them. Immutable: safe to share between tasks and threads.

    Rows are put together from the language's ids and the text's (`TokenRules`), never by setting
    the language on a shared tokenizer.
    """

    def __init__(self, folder: str | os.PathLike[str], *, native: bool = True) -> None:
        """Read a tokenizer folder. Nothing is downloaded.

        Args:
            folder: A prepared model's `tokenizer` folder, wherever it was copied to, or the
                prepared model's own folder.
            native: Split texts with the compiled core where it is installed: the same ids, sooner.

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
        # Some vocabularies list special tokens (`</s>`, `<2fr>`) among the pieces of text.
        self._special = frozenset(self.rules.special_ids)
        self._blank = {self._pieces.space_id} - {None}
        self._numbers_differ = numbers_differ(path, self.rules)
        self._read_target_pieces = cache(
            partial(read_pieces, path, self.rules, of_targets=True, native=native)
        )

    def encode(self, text: str) -> EncodedText:
        """Split a sentence.

        Args:
            text: Any text; special tokens spelled out in it are text as well.

        Returns:
            Its pieces.

        Raises:
            InvalidCallError: The text is no Unicode text (it holds half a surrogate pair).
        """
        _check_unicode(text)
        unknown = self.rules.unk_id
        found = self._pieces.encode(text) if text.strip() else []
        ids = tuple(unknown if i in self._special else i for i in found)
        return EncodedText(ids, ids.count(unknown), self._blank.issuperset(ids))

    def encode_target(self, text: str) -> tuple[int, ...]:
        """Split a translation, or a part of one, as the model writes it.

        Args:
            text: Any Unicode text.

        Returns:
            Its pieces; none of a text without a visible character.

        Raises:
            InvalidCallError: The text is no Unicode text.
            TokenizerError: Files of that side are missing or unusable.
        """
        _check_unicode(text)
        if not text.strip():
            return ()
        found = self._read_target_pieces().encode(text)
        if self._numbers_differ:  # the special ids are those of sources
            return tuple(found)
        return tuple(self.rules.unk_id if i in self._special else i for i in found)

    def decode(self, ids: Sequence[int]) -> str:
        """Join the pieces of an answer.

        Args:
            ids: Output ids without the target prefix; what carries no text is skipped.

        Returns:
            The text.
        """
        size = self.rules.tokenizer_size
        return self._pieces.decode([i for i in ids if 0 <= i < size])

    def source(self, name: str | None) -> Language | None:
        """Find the language of a text, by code or alias.

        Raises:
            UnknownLanguageError: It is not one of the model's; the message names the nearest.
        """
        return self.rules.source_language(name)

    def targets(self, names: str | Sequence[str] | None) -> tuple[Language | None, ...]:
        """Find the languages to translate into.

        Args:
            names: One or several codes or aliases; None for a model without target languages.

        Returns:
            The languages, in order; `(None,)` for None.

        Raises:
            UnknownLanguageError: One is not the model's; the message names the nearest.
            InvalidCallError: None is named in an empty sequence, or one twice.
        """
        return _find_all(self.rules.target_language, names)


class NamedLanguages:
    """Languages as they are named, for a model that takes text: its server knows the aliases."""

    def source(self, name: str | None) -> Language | None:
        """Give a language of that name; None for None."""
        return None if name is None else Language(name)

    def targets(self, names: str | Sequence[str] | None) -> tuple[Language | None, ...]:
        """Give languages of those names, `(None,)` for None; raise as `Tokenizer.targets`."""
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
    """Say whether the repository has one for a model that needs one: not if it takes text."""
    folder = _folder(model, repository)
    config = folder.parent / CONFIG_NAME
    return (folder / LANGUAGES_NAME).exists() and not _takes_text(config)


def _takes_text(config: Path) -> bool:
    try:
        inputs = parse_config(config.read_text(encoding="utf-8"), config).input
    except (OSError, UnicodeDecodeError, VersionError):  # its server says what is wrong
        return False
    return any(tensor.name == "text_input" for tensor in inputs)


def find_rules(model: str, repository: str | os.PathLike[str] | None = None) -> TokenRules | None:
    """Read the rules of a model, of token ids or of text; None where its folder is not at hand."""
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
            f"{model!r} is no name of a model on a server; a model of the hub is named by the last "
            f"part of its id: {model.rstrip('/').split('/')[-1]!r}"
        )
    folder = _folder(model, repository)
    if repository is None and not folder.is_dir():
        raise TokenizerError(
            f"no tokenizer for model {model!r}: there is no folder {folder}; name the model "
            f"repository that holds {model}/{TOKENIZER_NAME} (also by the variable "
            f"{REPOSITORY_VARIABLE}), or the tokenizer's own folder; {_HOW_TO_GET_IT}"
        )
    return Tokenizer(folder)


def _folder(model: str, repository: str | os.PathLike[str] | None) -> Path:
    return Path(repository or default_repository()) / model / TOKENIZER_NAME


_HOW_TO_GET_IT = (
    f"on a machine without the model, copy the folder {TOKENIZER_NAME}/ that ct2-prepare wrote "
    "into <model repository>/<model>/ and name it"
)
