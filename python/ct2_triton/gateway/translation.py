# SPDX-License-Identifier: Apache-2.0
"""Translate the texts of a request with the asynchronous client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ct2_triton.client.results import Verdict
from ct2_triton.client.tasks import aside, map_bounded
from ct2_triton.gateway.refusals import Refusal
from ct2_triton.terms import RankedTexts, Terms, translate_html_ranks
from ct2_triton.terms.html_parts import text_of
from ct2_triton.terms.translation import keeping_client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.gateway.catalog import Catalog, Route, Spoken
    from ct2_triton.gateway.detection import Detection, Detector

AUTO = "auto"
_LEAST_BEAMS = 4
_MOST_AT_A_TIME = 64  # texts of one request
_MOST_CHARS_AT_A_TIME = 64_000  # of those with markup, so that requests take turns at reading them


@dataclass(frozen=True)
class Wanted:
    """The fields of a translation request.

    Attributes:
        texts: The texts.
        source: Source language as the request names it, or `auto`.
        target: Target language.
        format: `text`, `html`, or another key of `FORMATS`.
        alternatives: Number of further translations of each text.
        glossary: Name of the glossary to use; "" for none.
        quality: Whether the server judges each translation.
    """

    texts: Sequence[str]
    source: str
    target: str
    format: str = "text"
    alternatives: int = 0
    glossary: str = ""
    quality: bool = False

    async def read_texts(self) -> Sequence[str]:
        """Return the texts without tags."""
        if self.format != "html":
            return self.texts
        return [await aside(len(text), text_of, text) for text in self.texts]

    @property
    def most_at_a_time(self) -> int:
        """How many of the texts are translated at a time."""
        if self.format == "text" or not self.texts:
            return _MOST_AT_A_TIME
        longest = max(1, *map(len, self.texts))
        return max(1, min(_MOST_AT_A_TIME, _MOST_CHARS_AT_A_TIME // longest))


@dataclass(frozen=True)
class Answer:
    """The translation of one text.

    Attributes:
        text: The translation.
        alternatives: Further translations, best first.
        detected: The text's language, if the request asked for it.
        verdict: The server's verdict, if the request asked for it.
        lost: Terms that the translation does not have as often as the text.
    """

    text: str
    alternatives: Sequence[str] = ()
    detected: Detection | None = None
    verdict: Verdict = field(default=Verdict(1.0))
    lost: Sequence[str] = ()


class Format(Protocol):
    """A function that translates texts of a format."""

    async def __call__(
        self,
        client: TranslationClient,
        text: str,
        route: Route,
        alternatives: int,
        options: Mapping[str, Any],
    ) -> RankedTexts:
        """Translate a text.

        Args:
            client: Client of the model.
            text: The text, in this format.
            route: The model's codes of both languages.
            alternatives: Number of further translations wanted.
            options: Further arguments of `TranslationClient.translate`.

        Returns:
            The translations in the same format; there may be fewer than wanted.

        Raises:
            ClientError: The translation fails.
        """


async def translate_plain(
    client: TranslationClient,
    text: str,
    route: Route,
    alternatives: int,
    options: Mapping[str, Any],
) -> RankedTexts:
    """Translate plain text; a `Format`."""
    wanted = {**options, **_several(alternatives)}
    found = await client.translate(text, source=route.source, targets=route.target, **wanted)
    texts = dict.fromkeys(hypothesis.text for hypothesis in found.hypotheses)
    return RankedTexts(list(texts), [found])


async def translate_markup(
    client: TranslationClient,
    text: str,
    route: Route,
    alternatives: int,
    options: Mapping[str, Any],
) -> RankedTexts:
    """Translate HTML; a `Format`. Its alternatives combine those of each sentence."""
    languages = {"source": route.source, "target": route.target}
    wanted = {**options, **_several(alternatives)}
    return await translate_html_ranks(client, text, ranks=alternatives + 1, **languages, **wanted)


def _several(alternatives: int) -> dict[str, Any]:
    """Return the options that request this many alternatives."""
    if not alternatives:
        return {}
    ranks = alternatives + 1
    return {"num_hypotheses": ranks, "beam_size": max(ranks, _LEAST_BEAMS)}


def _lost(terms: Terms, format_name: str, text: str, translation: str) -> Sequence[str]:
    """Return the terms that a translation does not have as often as the text."""
    if format_name == "html":
        text, translation = text_of(text), text_of(translation)
    return terms.find(text).lost_in(translation)


FORMATS: Mapping[str, Format] = {"text": translate_plain, "html": translate_markup}
"""The formats by their name in requests."""


@dataclass(frozen=True)
class Translator:
    """Translates the texts of requests.

    Attributes:
        catalog: The languages.
        detector: Detects the languages of texts.
        clients: The client of each model.
        formats: The function for each format.
        glossaries: The glossaries by their name in requests.
        terms: The terms of requests that name no glossary.
        options: Decoding options of every translation.
        answered: Called when the Triton server has answered.
    """

    catalog: Catalog
    detector: Detector
    clients: Mapping[str, TranslationClient]
    formats: Mapping[str, Format] = field(default_factory=lambda: FORMATS)
    glossaries: Mapping[str, Terms] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    options: Mapping[str, Any] = field(default_factory=dict)
    answered: Callable[[], None] = lambda: None

    async def translate(self, wanted: Wanted) -> list[Answer]:
        """Translate all texts of a request."""
        if wanted.format not in self.formats:
            known = ", ".join(self.formats)
            raise Refusal(400, f"{wanted.format[:80]} format is not supported; there is {known}")
        if wanted.glossary and wanted.glossary not in self.glossaries:
            known = ", ".join(self.glossaries) or "none"
            raise Refusal(400, f"glossary {wanted.glossary[:80]} is not known; there is {known}")
        target = self._language(wanted.target)
        detected: Sequence[Detection | None] = [None] * len(wanted.texts)
        sources = [wanted.source] * len(wanted.texts)
        if wanted.source == AUTO:
            texts = await wanted.read_texts()
            detected = await self.detector.sources_of(texts, self.catalog.sources)
            sources = [one.language for one in detected if one is not None]
        routes = [self._route(self._language(source), target) for source in sources]

        async def answer(i: int) -> Answer:
            return await self._answer(wanted, wanted.texts[i], routes[i], detected[i])

        return await map_bounded(answer, range(len(wanted.texts)), wanted.most_at_a_time)

    async def _answer(
        self, wanted: Wanted, text: str, route: Route | None, detected: Detection | None
    ) -> Answer:
        if route is None or not any(map(str.isalpha, text)):  # there is nothing to translate
            return Answer(text, (), detected)
        translate = self.formats[wanted.format]
        client = self.clients[route.model]
        terms = self.glossaries[wanted.glossary] if wanted.glossary else self.terms
        if terms:
            client = keeping_client(client, terms)
        options = {**self.options, "quality": True} if wanted.quality else self.options
        found = await translate(client, text, route, wanted.alternatives, options)
        self.answered()
        first, *others = found.texts
        verdict = Verdict.of_all([one.verdict for one in found.parts if one.verdict is not None])
        lost = await aside(len(text), _lost, terms, wanted.format, text, first) if terms else ()
        return Answer(first, others[: wanted.alternatives], detected, verdict, lost)

    def code_of(self, name: str) -> str:
        """Return the code of a language from any of its names."""
        return self._language(name).code

    def _language(self, name: str) -> Spoken:
        found = self.catalog.find(name)
        if found is None:
            raise Refusal(400, f"{name[:80]} is not supported")
        return found

    def _route(self, source: Spoken, target: Spoken) -> Route | None:
        """Find the model; None if the text is already in the target language."""
        if source is target:
            return None
        if (route := source.routes.get(target.code)) is None:
            raise Refusal(
                400,
                f"{target.name} ({target.code}) is not available as a target language from "
                f"{source.name} ({source.code})",
            )
        return route
