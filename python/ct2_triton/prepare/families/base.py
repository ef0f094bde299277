# SPDX-License-Identifier: Apache-2.0
"""What a family of models has to say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepared_model import AddedToken

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepared_model import Language

_SHOWN = 5


@dataclass(frozen=True)
class ExpectedVocabulary:
    """The vocabulary that a right conversion has.

    Attributes:
        tokens: Token of each id.
        differences: What the family's converter adds to the tokenizer's tokens or takes from them,
            one sentence each.
        answers: Token of each id of an answer, where these are not the ids of a source.
    """

    tokens: tuple[str, ...]
    differences: tuple[str, ...] = ()
    answers: tuple[str, ...] | None = None

    @property
    def target(self) -> tuple[str, ...]:
        """Token of each id of an answer."""
        return self.tokens if self.answers is None else self.answers


class Family(ABC):
    """One family: how it is recognised, its vocabulary, its languages, its way to build ids.

    Tokenizers are those of `transformers`; ids are those of the tokenizer, which the converted
    model keeps.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    own_tokens: ClassVar[re.Pattern[str]]
    """Tokens outside the pieces that every model of the family has, other than special ones."""

    @abstractmethod
    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Tell from the configs whether a checkpoint belongs to the family."""

    @abstractmethod
    def vocabulary(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> ExpectedVocabulary:
        """Return what the converted vocabulary must be.

        This is the one place where the additions and removals of the converter are listed. `config`
        is the checkpoint's `config.json`.
        """

    @abstractmethod
    def languages(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> list[Language]:
        """List the languages with their ids, without aliases."""

    def language_tag(self, code: str) -> str | None:
        """Return the BCP 47 tag of a language code; None for a code that is no language."""
        return code.replace("_", "-")

    @abstractmethod
    def reference_ids(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: Mapping[str, Any],
        text: str,
        source: Language | None,
        target: Language | None,
    ) -> list[int]:
        """Encode a text the way the documentation of `transformers` says for this family.

        It is independent of `TokenRules`, which must come to the same ids, and may change the
        tokenizer's state.
        """

    def special_ids(
        self, tokenizer: PreTrainedTokenizerBase, languages: Sequence[Language]
    ) -> tuple[int, ...]:
        """List the ids that carry no text of their own: a row of only these has no translation."""
        fixed = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
        ids = {token for token in fixed if token is not None}
        for entry in languages:
            ids.update(entry.source_ids, entry.target_source_ids, entry.target_prefix_ids)
        return tuple(sorted(ids))

    def added_tokens(
        self, tokenizer: PreTrainedTokenizerBase, languages: Sequence[Language] = ()
    ) -> tuple[AddedToken, ...]:
        """List the tokens that were added to the family's own, by id."""
        own = {tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.cls_token_id}
        own |= {tokenizer.sep_token_id, *self.special_ids(tokenizer, languages)}
        return tuple(
            AddedToken(
                token.content,
                int(token_id),
                special=bool(token.special),
                lstrip=bool(token.lstrip),
                rstrip=bool(token.rstrip),
                single_word=bool(token.single_word),
                normalized=bool(token.normalized),
            )
            for token_id, token in sorted(tokenizer.added_tokens_decoder.items())
            if token_id not in own and not self.own_tokens.fullmatch(token.content)
        )

    def source_required(self, languages: Sequence[Language]) -> bool:
        """Return whether a source language must be named: where its ids go into the source."""
        return any(entry.source_ids for entry in languages)

    def source_last(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Return whether the source language's ids come after the end token, not first."""
        return False

    def prefix_starts(self) -> bool:
        """Return whether the target's prefix starts the decoder, in place of a token of its own."""
        return False

    def target_required(self, languages: Sequence[Language]) -> bool:
        """Return whether a target language must be named: where one is asked for by ids."""
        return any(entry.target_prefix_ids or entry.target_source_ids for entry in languages)

    def position_limit(self, config: Mapping[str, Any]) -> int | None:
        """Return the longest row in tokens that the model has positions for; None: no limit."""
        limit = config.get("max_position_embeddings")
        return None if limit is None else int(limit)


def tokens_by_id(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the token of each id, from 0 to the last that the tokenizer has."""
    return [str(token) for token in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]


def padded(tokens: Sequence[str], rows: int, surplus: str, meaning: str) -> ExpectedVocabulary:
    """Fit the tokens of a tokenizer to the rows of an embedding table.

    Rows past the tokenizer are named by `surplus`, with `%d` for a number from 0, and `meaning`
    says what they are.
    """
    missing = rows - len(tokens)
    if missing == 0:
        return ExpectedVocabulary(tuple(tokens))
    if missing < 0:
        note = f"removed: the last {-missing} tokens of the tokenizer have no row in the model"
        return ExpectedVocabulary(tuple(tokens[:rows]), (note,))
    added = [surplus % number for number in range(missing)]
    note = f"added: {added[0]} .. {added[-1]} (ids {len(tokens)} .. {rows - 1}), {meaning}"
    return ExpectedVocabulary((*tokens, *added), (note,))


def refuse_added(tokens: Sequence[AddedToken], reason: str) -> None:
    """Refuse a model by the tokens that were added to it, if there are any; the first is named."""
    if not tokens:
        return
    names = ", ".join(repr(token.content) for token in tokens[:_SHOWN])
    more = f" and {len(tokens) - _SHOWN} more" if len(tokens) > _SHOWN else ""
    raise UnsupportedModelError(f"tokens were added to the tokenizer ({names}{more}), and {reason}")
