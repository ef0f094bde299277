# SPDX-License-Identifier: Apache-2.0
"""The input of a proof: the conversion, and the sentences and language pairs to check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.errors import UnknownLanguageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.families import ExpectedVocabulary, Family
    from ct2_triton.prepare.generation import OwnSearch
    from ct2_triton.prepared_model import Language, TokenRules


@dataclass(frozen=True)
class Conversion:
    """The converted model.

    Attributes:
        tokenizer_folder: Folder of the tokenizer files for clients.
        model: Folder of the converted model.
        quantization: Type of the stored weights.
        settings: The caller's parameters for it.
    """

    tokenizer_folder: Path
    model: Path
    quantization: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Subject:
    """A conversion to compare with its checkpoint.

    Attributes:
        checkpoint: The checkpoint.
        family: Its family.
        vocabulary: The vocabulary that the conversion must have.
        rules: The token rules for clients.
        search: The checkpoint's own search.
        stored: The converted model.
    """

    checkpoint: Checkpoint
    family: Family
    vocabulary: ExpectedVocabulary
    rules: TokenRules
    search: OwnSearch
    stored: Conversion


# Ordinary sentences, then those most sensitive to differences in tokenization or normalization.
PROBE_TEXTS: tuple[str, ...] = (
    "How is your day going?",
    "Yes.",
    "The committee met on Tuesday, 14 March, and decided to close the harbour for two weeks; "
    "nobody had expected that, least of all the fishermen who had spoken for an hour.",
    "L'été dernier, nous avons mangé des crêpes près de l'île.",
    "¿Cuánto cuesta? ¡Sólo 3,50 €!",
    "Grüße aus Köln \u2013 bis später!",
    "今天天气很好,我们去公园吧。",
    "Привет, как дела?",
    "كيف حالك اليوم؟",
    "  leading, double  and trailing spaces  ",
    "ﬁne café, e\u0301te\u0301, ½ and Å in odd normal forms",
    "😀 ☃ \U0001d518\U0001d52b\U0001d526 (letters of a rare plane)",
    "www.example.org/a_b?c=1&d=%20 #tag @name",
)

_PREFERRED = ("en", "de", "fr", "es", "zh", "ar", "hi", "ru")


@dataclass(frozen=True)
class Probe:
    """One translation to try.

    Attributes:
        text: The text.
        source: Source language, if the model has languages; it need not be that of the text.
        target: Target language.
    """

    text: str
    source: Language | None
    target: Language | None

    def __str__(self) -> str:
        """Return text and languages for a message."""
        codes = [entry.code if entry else "-" for entry in (self.source, self.target)]
        return f"{self.text!r} ({codes[0]} to {codes[1]})"


def choose_probes(rules: TokenRules) -> list[Probe]:
    """Pair each text with languages of the model, several in turn."""
    sources = some_languages(rules, "source")
    targets = some_languages(rules, "target")
    probes = []
    for number, text in enumerate(PROBE_TEXTS):
        source = sources[number // 2 % len(sources)] if sources else None
        others = [entry for entry in targets if entry is not source] or targets
        target = others[number % len(others)] if others else None
        probes.append(Probe(text, source, target))
    return probes


def added_token_texts(rules: TokenRules) -> list[str]:
    """Return two texts for each added token: alone, and within a sentence."""
    tokens = [token.content for token in rules.added_tokens]
    return [text for token in tokens for text in (token, f"She said {token} to him, {token}.")]


def some_languages(rules: TokenRules, side: str) -> Sequence[Language]:
    """Return well-known languages of the model first, and its first and last one."""
    find = rules.source_language if side == "source" else rules.target_language
    found = []
    for name in _PREFERRED:
        try:
            found.append(find(name))
        except UnknownLanguageError:
            continue
    able = [entry for entry in rules.languages if getattr(entry, side)]
    chosen = [entry for entry in (*found, *able[:1], *able[-1:]) if entry]
    return list(dict.fromkeys(chosen))
