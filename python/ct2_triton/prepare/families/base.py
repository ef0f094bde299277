# SPDX-License-Identifier: Apache-2.0
"""The interface of a model family."""

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
    """The vocabulary of a correct conversion.

    Attributes:
        tokens: Token of each ID.
        differences: Tokens that the family's converter adds or removes, one sentence each.
        answers: Token of each ID of an answer, if these differ from the IDs of a source.
    """

    tokens: tuple[str, ...]
    differences: tuple[str, ...] = ()
    answers: tuple[str, ...] | None = None

    @property
    def target(self) -> tuple[str, ...]:
        """Token of each ID of an answer."""
        return self.tokens if self.answers is None else self.answers


class Family(ABC):
    """One family: its recognition, vocabulary, languages and composition of IDs.

    Tokenizers are those of `transformers`; IDs are those of the tokenizer, which the converted
    model keeps.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    own_tokens: ClassVar[re.Pattern[str]]
    """Pattern of tokens besides pieces and special tokens that all models of the family have."""

    @abstractmethod
    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint belongs to the family, according to its configs."""

    @abstractmethod
    def vocabulary(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> ExpectedVocabulary:
        """Return what the converted vocabulary must be.

        Only this method lists the additions and removals of the converter. `config` is the
        checkpoint's `config.json`.
        """

    @abstractmethod
    def languages(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> list[Language]:
        """Return the languages with their IDs, without aliases."""

    def language_tag(self, code: str) -> str | None:
        """Return the BCP 47 tag of a language code; None for a code that is not a language's."""
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
        """Encode a text as the documentation of `transformers` says for this family.

        It is independent of `TokenRules`, which must give the same IDs, and may change the
        tokenizer's state.
        """

    def special_ids(
        self, tokenizer: PreTrainedTokenizerBase, languages: Sequence[Language]
    ) -> tuple[int, ...]:
        """Return the IDs without text: a row of only these has no translation."""
        fixed = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
        ids = {token for token in fixed if token is not None}
        for entry in languages:
            ids.update(entry.source_ids, entry.target_source_ids, entry.target_prefix_ids)
        return tuple(sorted(ids))

    def added_tokens(
        self, tokenizer: PreTrainedTokenizerBase, languages: Sequence[Language] = ()
    ) -> tuple[AddedToken, ...]:
        """Return the tokens that were added to the family's own, ordered by ID."""
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
        """Return whether a source language must be named, because its IDs are in the source."""
        return any(entry.source_ids for entry in languages)

    def source_last(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Return whether the source language's IDs come after the end token, not first."""
        return False

    def prefix_starts(self) -> bool:
        """Return whether the target's prefix starts the decoder, instead of a start token."""
        return False

    def target_required(self, languages: Sequence[Language]) -> bool:
        """Return whether a target language must be named, because IDs select it."""
        return any(entry.target_prefix_ids or entry.target_source_ids for entry in languages)

    def position_limit(self, config: Mapping[str, Any]) -> int | None:
        """Return the longest row in tokens that the model has positions for; None: no limit."""
        limit = config.get("max_position_embeddings")
        return None if limit is None else int(limit)


def tokens_by_id(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the token of each ID, from 0 to the tokenizer's last."""
    return [str(token) for token in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]


def padded(tokens: Sequence[str], rows: int, surplus: str, meaning: str) -> ExpectedVocabulary:
    """Fit the tokens of a tokenizer to the rows of an embedding table.

    Rows beyond the tokenizer are named by `surplus`, with `%d` for a number from 0, and `meaning`
    describes them.
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
    """Refuse a model with added tokens; the error names the first."""
    if not tokens:
        return
    names = ", ".join(repr(token.content) for token in tokens[:_SHOWN])
    more = f" and {len(tokens) - _SHOWN} more" if len(tokens) > _SHOWN else ""
    raise UnsupportedModelError(f"tokens were added to the tokenizer ({names}{more}), and {reason}")
