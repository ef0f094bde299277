# SPDX-License-Identifier: Apache-2.0
"""Families with language tokens before the source and before the target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepare.families.base import (
    ExpectedVocabulary,
    Family,
    padded,
    refuse_added,
    tokens_by_id,
)
from ct2_triton.prepared_model import Language

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint


class _Prefixed(Family):
    """Sources `[language] pieces </s>`, targets that start with `</s> [language]`.

    Older versions of `transformers` put the source language of NLLB last. Models trained that way
    set `legacy_behaviour`; others have the order of the papers.
    """

    own_tokens: ClassVar[re.Pattern[str]]  # the tokens of its languages

    def vocabulary(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> ExpectedVocabulary:
        """Name the rows beyond the tokenizer as the converter does."""
        tokens = tokens_by_id(tokenizer)
        return padded(tokens, int(config["vocab_size"]), "madeupword%d", "rows without text")

    def languages(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> list[Language]:
        """Read the language tokens and their IDs from the tokenizer, not from their order.

        A model trained in some directions only may name the codes of both sides in its config, as
        `source_languages` and `target_languages`.
        """
        rows = int(config["vocab_size"])
        sources, targets = (config.get(f"{side}_languages") for side in ("source", "target"))
        found = []
        for token, token_id in sorted(
            tokenizer.get_added_vocab().items(), key=lambda item: item[1]
        ):
            match = self.own_tokens.fullmatch(token)
            if match and token_id < rows:
                ids = (int(token_id),)
                language = Language(
                    match[1],
                    source=sources is None or match[1] in sources,
                    target=targets is None or match[1] in targets,
                    source_ids=ids,
                    target_prefix_ids=ids,
                )
                found.append(language)
        if not found:
            raise UnsupportedModelError(
                f"the tokenizer of this {self.title} model has no language tokens; take the "
                "tokenizer files of the model it was trained from"
            )
        return found

    def reference_ids(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: Mapping[str, Any],
        text: str,
        source: Language | None,
        target: Language | None,
    ) -> list[int]:
        """Set `src_lang`, which changes the tokenizer, and encode."""
        if source:
            tokenizer.src_lang = source.code
        return list(map(int, tokenizer(text).input_ids))


class NLLB(_Prefixed):
    """NLLB-200: language tokens such as `deu_Latn`."""

    name = "nllb"
    title = "NLLB-200"
    own_tokens = re.compile(r"([a-z]{3}_[A-Z][a-z]{3})")

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Distinguish it by the tokenizer from M2M100, which has the same architecture."""
        if checkpoint.config.get("model_type") != "m2m_100":
            return False
        if checkpoint.tokenizer_class:
            return checkpoint.tokenizer_class == "NllbTokenizer"
        return not checkpoint.has("vocab.json")

    def source_last(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Return the tokenizer's setting: `pieces </s> [language]` for `legacy_behaviour`."""
        return bool(getattr(tokenizer, "legacy_behaviour", False))


class M2M100(_Prefixed):
    """M2M100: language tokens such as `__de__`."""

    name = "m2m100"
    title = "M2M100"
    own_tokens = re.compile(r"__([a-z]{2,3}(?:_[A-Za-z]+)?)__")

    def vocabulary(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> ExpectedVocabulary:
        """Name eight spare rows after the tokens, for any number of tokens."""
        refuse_added(
            self.added_tokens(tokenizer),
            "CTranslate2's converter counts the rows of an M2M100 model without them; train "
            "without these tokens, or take another family",
        )
        return super().vocabulary(tokenizer, config)

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Recognise the architecture with its own tokenizer."""
        return (
            checkpoint.config.get("model_type") == "m2m_100"
            and checkpoint.tokenizer_class in ("M2M100Tokenizer", "")
            and checkpoint.has("vocab.json")
        )


class MBart50(_Prefixed):
    """mBART-50: language tokens such as `de_DE`."""

    name = "mbart50"
    title = "mBART-50"
    own_tokens = re.compile(r"([a-z]{2}_[A-Z]{2})")

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Recognise the architecture with the tokenizer of mBART-50."""
        is_mbart = checkpoint.config.get("model_type") == "mbart"
        return is_mbart and checkpoint.tokenizer_class == "MBart50Tokenizer"

    def language_tag(self, code: str) -> str | None:
        """Drop the region XX, which means none."""
        return code.removesuffix("_XX").replace("_", "-")


class MBart25(MBart50):
    """mBART-25: sources `pieces </s> [language]`, targets that start with `[language]`."""

    name = "mbart25"
    title = "mBART-25"

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Recognise the architecture with the tokenizer of mBART-25."""
        is_mbart = checkpoint.config.get("model_type") == "mbart"
        return is_mbart and checkpoint.tokenizer_class == "MBartTokenizer"

    def source_last(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Return True."""
        return True

    def prefix_starts(self) -> bool:
        """Return True."""
        return True
