# SPDX-License-Identifier: Apache-2.0
"""The languages of one or several models, by the codes that LibreTranslate's clients use.

The code of a language is its two-letter BCP 47 tag (`de`), for Chinese the tag with the script
(`zh-Hans`), else its shortest tag (`ckb`, `ace-Arab`). The tags are among the aliases that
`ct2-prepare` writes; requests may also use any other alias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ct2_triton.errors import ClientError, UnknownLanguageError
from ct2_triton.prepared_model import (
    LANGUAGES_NAME,
    TEXT_SUFFIX,
    TOKENIZER_NAME,
    TokenRules,
    default_repository,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ct2_triton.prepared_model import Language

_LONGEST_NAME = 35  # characters, as in RFC 5646; searching names like a longer one is slow


@dataclass(frozen=True)
class Route:
    """A model that translates from one language into another.

    Attributes:
        model: Name of the model.
        source: Its code of the source language; None if it has only one.
        target: Its code of the target language; None if it has only one.
    """

    model: str
    source: str | None
    target: str | None


@dataclass(frozen=True)
class _Side:
    """A language as a model's source or target.

    Attributes:
        language: The language.
        code: Its code for LibreTranslate's clients.
        asked: The code sent to the model; None if the model has only one.
    """

    language: Language
    code: str
    asked: str | None


@dataclass(frozen=True)
class _Model:
    """The languages that a model translates from and into."""

    name: str
    sources: Sequence[_Side]
    targets: Sequence[_Side]


class Spoken:
    """A language of the gateway."""

    def __init__(self, language: Language) -> None:
        """Start with a language's code for LibreTranslate's clients and its English name."""
        self.code = language.tag
        in_english = (name for name in language.aliases if name[:1].isupper())
        self.name = language.name or next(in_english, self.code)
        self._starts: list[tuple[_Model, _Side]] = []

    @cached_property
    def routes(self) -> Mapping[str, Route]:
        """The first model for each other language, by the language's code."""
        found: dict[str, Route] = {}
        for model, source in self._starts:
            for target in model.targets:
                if target.language is not source.language:
                    route = Route(model.name, source.asked, target.asked)
                    found.setdefault(target.code, route)
        return found

    @property
    def is_source(self) -> bool:
        """Whether texts in it are translated."""
        return bool(self._starts)

    @cached_property
    def targets(self) -> list[str]:
        """Codes of the languages it can be translated into, and its own."""
        return sorted({self.code, *self.routes})

    def start(self, model: _Model, source: _Side) -> None:
        """Add a model that translates from it."""
        self._starts.append((model, source))


class Catalog:
    """The translation directions of all models; the first model that has a direction is used."""

    def __init__(self, models: Mapping[str, TokenRules]) -> None:
        """Merge the languages of all models."""
        self._models = dict(models)
        self.languages: dict[str, Spoken] = {}
        for name, rules in models.items():
            model = _Model(name, _sides(rules, "source"), _sides(rules, "target"))
            starts = [one for one in model.sources if _leads_on(one, model.targets)]
            if not starts:
                raise ClientError(
                    f"model {name!r} does not say which languages it translates, so the gateway "
                    "cannot list them; name a model whose languages.json has sources and targets"
                )
            for target in model.targets:
                self._spoken(target)
            for source in starts:
                self._spoken(source).start(model, source)

    @cached_property
    def sources(self) -> list[str]:
        """Codes of the languages that are translated from."""
        return sorted(code for code, spoken in self.languages.items() if spoken.is_source)

    def find(self, name: str) -> Spoken | None:
        """Find a language by code or alias, ignoring case; None if no model has it."""
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
                if found is not None and (spoken := self.languages.get(found.tag)):
                    return spoken
        return None

    @cached_property
    def routes(self) -> Mapping[str, Route]:
        """A route of each model that has one, by the model's name."""
        found = (route for one in self.languages.values() for route in one.routes.values())
        return {route.model: route for route in found}

    def _spoken(self, side: _Side) -> Spoken:
        if side.code not in self.languages:
            self.languages[side.code] = Spoken(side.language)
        return self.languages[side.code]


def read_catalog(
    models: Sequence[str], repository: Path | None = None, tokenizer: Path | None = None
) -> Catalog:
    """Read the languages of models from what `ct2-prepare` wrote.

    `tokenizer` is the tokenizer folder of a single model, used instead of the repository.
    """
    if tokenizer is not None and len(models) > 1:
        raise ClientError(f"--tokenizer is of one model, and {len(models)} are named")
    place = Path(repository or default_repository())
    return Catalog(
        {name: TokenRules.read(tokenizer or _tokenizer_folder(name, place)) for name in models}
    )


def _sides(rules: TokenRules, side: Literal["source", "target"]) -> list[_Side]:
    """Return a model's sources or targets; requests name one if there are several."""
    found = [language for language in rules.languages if getattr(language, side)]
    is_asked = getattr(rules, f"{side}_required") or len(found) > 1
    return [_Side(one, one.tag, one.code if is_asked else None) for one in found]


def _leads_on(source: _Side, targets: Sequence[_Side]) -> bool:
    return any(target.language is not source.language for target in targets)


def _tokenizer_folder(model: str, repository: Path) -> Path:
    names = dict.fromkeys((model, model.removesuffix(TEXT_SUFFIX)))
    folders = [repository / name / TOKENIZER_NAME for name in names]
    for folder in folders:
        if (folder / LANGUAGES_NAME).exists():
            return folder
    there = sorted(
        path.parts[-3] for path in repository.glob(f"*/{TOKENIZER_NAME}/{LANGUAGES_NAME}")
    )
    raise ClientError(
        f"the languages of model {model!r} are not in {' or '.join(map(str, folders))}; name the "
        "folder of prepared models (--model-repository) or the model's tokenizer folder "
        f"(--tokenizer){', or one of the models there: ' if there else ''}{', '.join(there)}"
    )
