# SPDX-License-Identifier: Apache-2.0
"""The languages of one or several models, by the codes that LibreTranslate's clients use.

A language is called by its BCP 47 tag of two letters (`de`), Chinese by its script (`zh-Hans`), and
one without two letters by its shortest tag (`ckb`, `ace-Arab`). All come from the table of aliases
that `ct2-prepare` writes; whoever asks may use any other alias of a language as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.default_repository import default_repository
from ct2_triton.errors import ClientError, UnknownLanguageError
from ct2_triton.prepared_model import LANGUAGES_NAME, TEXT_SUFFIX, TOKENIZER_NAME, TokenRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ct2_triton.prepared_model import Language

_BY_SCRIPT = ("zh-Hans", "zh-Hant")
_LONGEST_NAME = 35  # characters: RFC 5646 has no longer tag; the nearest of a longer one is work


@dataclass(frozen=True)
class Road:
    """How a text gets from a language to another.

    Attributes:
        model: Name of the model.
        source: Its code of the text's language; None where it has one source language only.
        target: Its code of the wanted language; None likewise.
    """

    model: str
    source: str | None
    target: str | None


@dataclass
class Spoken:
    """A language of the gateway.

    Attributes:
        code: What LibreTranslate's clients call it.
        name: Its name in English.
        roads: How its texts get to other languages, by their codes.
    """

    code: str
    name: str
    roads: dict[str, Road] = field(default_factory=dict)

    @property
    def targets(self) -> list[str]:
        """Codes of the languages its texts can be had in; its own is one of them."""
        return sorted({self.code, *self.roads})


class Catalog:
    """What can be translated into what; the first model that can is the one that does."""

    def __init__(self, models: Mapping[str, TokenRules]) -> None:
        """Put the languages of all models together.

        Args:
            models: What is known of each model, by its name on the server.

        Raises:
            ClientError: A model does not say which languages it translates.
        """
        self._models = dict(models)
        self.languages: dict[str, Spoken] = {}
        for model, rules in models.items():
            pairs = list(_pairs(rules))
            if not pairs:
                raise ClientError(
                    f"model {model!r} does not say which languages it translates, so the gateway "
                    "cannot list them; name a model whose languages.json has sources and targets"
                )
            for source, target in pairs:
                road = Road(model, _asked(rules, source, "source"), _asked(rules, target, "target"))
                self._spoken(target)
                self._spoken(source).roads.setdefault(code_of(target), road)

    @property
    def sources(self) -> list[str]:
        """Codes of the languages that are translated from."""
        return sorted(code for code, spoken in self.languages.items() if spoken.roads)

    def find(self, name: str) -> Spoken | None:
        """Find a language by code or alias, in any case; None where no model has it."""
        if name in self.languages:
            return self.languages[name]
        if len(name) > _LONGEST_NAME:
            return None
        for rules in self._models.values():
            for find in (rules.source_language, rules.target_language):
                try:
                    found = find(name)
                except UnknownLanguageError:
                    continue
                if found is not None and (spoken := self.languages.get(code_of(found))):
                    return spoken
        return None

    def _spoken(self, language: Language) -> Spoken:
        code = code_of(language)
        if code not in self.languages:
            self.languages[code] = Spoken(code, _english_name(code))
        return self.languages[code]


def read_catalog(
    models: Sequence[str], repository: Path | None = None, tokenizer: Path | None = None
) -> Catalog:
    """Read the languages of models from what `ct2-prepare` wrote.

    Args:
        models: Names on the server.
        repository: Folder of prepared models; None: CT2_MODEL_REPOSITORY, else the usual one.
        tokenizer: The tokenizer folder of the one model, instead.

    Returns:
        The catalog.

    Raises:
        PreparedModelError: `languages.json` is damaged.
        ClientError: It is not found, or a model does not say its languages.
    """
    if tokenizer is not None and len(models) > 1:
        raise ClientError(f"--tokenizer is of one model, and {len(models)} are named")
    place = Path(repository or default_repository())
    return Catalog(
        {name: TokenRules.read(tokenizer or _tokenizer_folder(name, place)) for name in models}
    )


def code_of(language: Language) -> str:
    """Give the code by which LibreTranslate's clients call a language.

    Args:
        language: A language of a model.

    Returns:
        Its tag.
    """
    tags = sorted({name.replace("_", "-") for name in (language.code, *language.aliases)})
    by_script = [tag for tag in tags if tag in _BY_SCRIPT]
    short = [tag for tag in tags if len(tag) == 2]
    return [*by_script, *short, *sorted(tags, key=len)][0]


def _pairs(rules: TokenRules) -> Iterator[tuple[Language, Language]]:
    sources = [language for language in rules.languages if language.source]
    targets = [language for language in rules.languages if language.target]
    return ((one, other) for one in sources for other in targets if one is not other)


def _asked(rules: TokenRules, language: Language, side: str) -> str | None:
    """Give the code to ask for; None where the model has one language and asks for none."""
    required = rules.source_required if side == "source" else rules.target_required
    several = sum(bool(getattr(entry, side)) for entry in rules.languages) > 1
    return language.code if required or several else None


def _tokenizer_folder(model: str, repository: Path) -> Path:
    own, of_ids = (
        repository / name / TOKENIZER_NAME for name in (model, model.removesuffix(TEXT_SUFFIX))
    )
    if not any((folder / LANGUAGES_NAME).exists() for folder in (own, of_ids)):
        raise ClientError(
            f"the languages of model {model!r} are in neither {own} nor {of_ids}; name the folder "
            "of prepared models (--model-repository) or the model's tokenizer folder (--tokenizer)"
        )
    return own if (own / LANGUAGES_NAME).exists() else of_ids


def _english_name(code: str) -> str:
    import langcodes

    return langcodes.Language.get(code).display_name()
