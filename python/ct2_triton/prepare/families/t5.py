# SPDX-License-Identifier: Apache-2.0
"""T5, mT5, UMT5 and MADLAD-400, which is a T5 with language tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.prepare.families.base import ExpectedVocabulary, Family, padded, tokens_by_id
from ct2_triton.prepared_model import Language

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint

_MADLAD_TOKEN = re.compile(r"<2([a-z]{2,3}(?:_[A-Za-z]{2,4})?)>")
_TASK_NAME = re.compile(r"translation_([a-z]{2,3})_to_([a-z]{2,3})")
_TASK_TEXT = re.compile(r"(translate \w+) (to \w+:) ")


class T5(Family):
    """`pieces </s>` after a task in words (T5) or a token such as `<2de>` (MADLAD)."""

    name = "t5"
    title = "T5 (mT5, UMT5, MADLAD-400)"
    own_tokens = re.compile(r"<extra_id_\d+>|<2[a-z]{2,3}(?:_[A-Za-z]{2,4})?>")

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Recognise the architectures."""
        return checkpoint.config.get("model_type") in ("t5", "mt5", "umt5")

    def vocabulary(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> ExpectedVocabulary:
        """Name the rows beyond the tokenizer as the converter does: T5's repeat its sentinels."""
        rows = int(config["vocab_size"])
        surplus = "<unused_%d>" if config.get("model_type") == "umt5" else "<extra_id_%d>"
        return padded(tokens_by_id(tokenizer), rows, surplus, "rows past the tokenizer")

    def languages(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> list[Language]:
        """Read MADLAD's tokens, or the translation tasks in the config of a T5."""
        tokens = [
            Language(match[1], source=True, target_source_ids=(int(token_id),))
            for token, token_id in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
            if (match := _MADLAD_TOKEN.fullmatch(token))
        ]
        return tokens or _TaskTexts.of(config).languages(tokenizer)

    def reference_ids(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: Mapping[str, Any],
        text: str,
        source: Language | None,
        target: Language | None,
    ) -> list[int]:
        """Encode the task and the text."""
        tasks = _TaskTexts.of(config)
        first = tasks.sources.get(source.code, "") if source else ""
        then = tasks.targets.get(target.code, f"<2{target.code}>") if target else ""
        return list(map(int, tokenizer(" ".join(filter(None, (first, then, text)))).input_ids))

    def special_ids(
        self, tokenizer: PreTrainedTokenizerBase, languages: Sequence[Language]
    ) -> tuple[int, ...]:
        """Include MADLAD's tokens, but not the words of a task, which may occur in a text."""
        named_by_words = self.source_required(languages)
        return super().special_ids(tokenizer, () if named_by_words else languages)

    def position_limit(self, config: Mapping[str, Any]) -> int | None:
        """Return None, because positions are relative."""
        return None


@dataclass(frozen=True)
class _TaskTexts:
    """The translation tasks of a config, each in two parts: `translate English`, `to German:`."""

    sources: Mapping[str, str]
    targets: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> _TaskTexts:
        sources, targets = {}, {}
        for name, task in (config.get("task_specific_params") or {}).items():
            pair, text = _TASK_NAME.fullmatch(name), _TASK_TEXT.fullmatch(task.get("prefix") or "")
            if pair and text:
                sources[pair[1]], targets[pair[2]] = text.groups()
        return cls(sources, targets)

    def languages(self, tokenizer: PreTrainedTokenizerBase) -> list[Language]:
        """Return the languages with the IDs of their parts.

        Pieces never contain a space, so the IDs of the parts are those of the whole task.
        """

        def ids(text: str | None) -> tuple[int, ...]:
            return tuple(tokenizer.encode(text, add_special_tokens=False)) if text else ()

        return [
            Language(
                code,
                source=code in self.sources,
                target=code in self.targets,
                source_ids=ids(self.sources.get(code)),
                target_source_ids=ids(self.targets.get(code)),
            )
            for code in dict.fromkeys((*self.sources, *self.targets))
        ]
