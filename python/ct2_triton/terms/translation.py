# SPDX-License-Identifier: Apache-2.0
"""Translate a text so that its terms survive, and report lost ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

from ct2_triton.client.results import Translation
from ct2_triton.client.tasks import map_bounded
from ct2_triton.errors import InvalidCallError
from ct2_triton.terms.finding import Terms
from ct2_triton.terms.placeholders import check_kind, kinds_of, mark, restore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Hypothesis
    from ct2_triton.terms.finding import TermText
    from ct2_triton.terms.placeholders import Marked

    Ask = Callable[..., Awaitable[Translation | Sequence[Translation]]]
    """Translates a text into `targets`, as `TranslationClient.translate`."""
    from collections.abc import Sequence


@dataclass(frozen=True)
class TermTranslation:
    """A translation into one language.

    Attributes:
        text: The translation.
        target: Its language, as it was named; None for a model without languages.
        lost: Terms that it does not have as often as the text; then it is the plain translation.
        placeholder: The kind of placeholder that brought them through; None where none was needed.
        translation: The same with scores, hypotheses, finish reason and version. Further hypotheses
            that lack a term are left out, unless the best one does, too. Where placeholders were
            needed, there are no ids and alignments: those would be of the placeholders.
    """

    text: str
    target: str | None
    lost: tuple[str, ...] = ()
    placeholder: str | Sequence[str] | None = None
    translation: Translation | None = field(default=None, compare=False)

    @property
    def failed(self) -> bool:
        """Whether a term is lost."""
        return bool(self.lost)


@overload
async def translate_terms(
    client: TranslationClient,
    text: str,
    *,
    source: str | None = ...,
    targets: str | None = ...,
    keep: Collection[str] = ...,
    glossary: Mapping[str, str] | None = ...,
    patterns: Collection[str] = ...,
    terms: Terms | None = ...,
    placeholders: Sequence[str | Sequence[str]] | None = ...,
    **options: Any,  # noqa: ANN401
) -> TermTranslation: ...


@overload
async def translate_terms(
    client: TranslationClient,
    text: str,
    *,
    source: str | None = ...,
    targets: Sequence[str],
    keep: Collection[str] = ...,
    glossary: Mapping[str, str] | None = ...,
    patterns: Collection[str] = ...,
    terms: Terms | None = ...,
    placeholders: Sequence[str | Sequence[str]] | None = ...,
    **options: Any,  # noqa: ANN401
) -> list[TermTranslation]: ...


async def translate_terms(
    client: TranslationClient,
    text: str,
    *,
    source: str | None = None,
    targets: str | Sequence[str] | None = None,
    keep: Collection[str] = (),
    glossary: Mapping[str, str] | None = None,
    patterns: Collection[str] = (),
    terms: Terms | None = None,
    placeholders: Sequence[str | Sequence[str]] | None = None,
    **options: Any,
) -> TermTranslation | list[TermTranslation]:
    """Translate a text so that its terms survive.

    The plain translation is requested first: a term that it keeps needs no placeholder. The
    languages that lose a term are requested again, with one kind of placeholder after another.

    Args:
        client: Of the model.
        text: The text; `<dnt>...</dnt>` around text to keep unchanged.
        source: Its language.
        targets: Language or languages wanted.
        keep: Phrases to keep unchanged.
        glossary: Translations of phrases, for the languages of this call.
        patterns: Other text to keep unchanged: "urls", "emails", "numbers", "emoji".
        terms: All three, checked and compiled once for any number of calls.
        placeholders: Kinds of placeholders, such as `X{}`, or names that the model copies. None:
            those that `ct2-prepare` found, where the model's folder is at hand; else `X{}`, `[{}]`.
        **options: Further arguments of `TranslationClient.translate`.

    Returns:
        The translation into one language; of a sequence of languages a list in their order.

    Raises:
        InvalidCallError: The terms or the placeholders cannot be.
        ClientError: The translation fails.
    """
    if terms is not None and (keep or glossary or patterns):
        raise InvalidCallError("terms holds keep, glossary and patterns: give it or these")
    found = (terms or Terms(keep, glossary or {}, patterns)).find(text)
    for kind in placeholders or ():
        check_kind(kind)
    ask = partial(client.translate, source=source, **options)
    kept = await keep_terms(client, found, ask, targets, placeholders)
    return kept[0] if targets is None or isinstance(targets, str) else kept


async def keep_terms(
    client: TranslationClient,
    found: TermText,
    ask: Ask,
    targets: str | Sequence[str] | None,
    placeholders: Sequence[str | Sequence[str]] | None = None,
) -> list[TermTranslation]:
    """Translate a text whose terms are found: one translation for each target, in order.

    `ask` translates a text as `TranslationClient.translate` does; it is given `targets` as well.
    """
    named = [targets] if isinstance(targets, str) or targets is None else list(targets)
    plain = listed(await ask(found.text, targets=targets))
    done = [_judged(found, one, name) for one, name in zip(plain, named, strict=True)]
    if placeholders is None:
        placeholders = kinds_of(client) if any(one.failed for one in done) else ()
    for kind in placeholders:
        open_ = [i for i, one in enumerate(done) if one.failed]
        if not open_ or (marked := mark(found, kind)) is None:
            continue
        asked = [name for i in open_ if (name := named[i]) is not None] or None
        again = listed(await ask(marked.text, targets=asked))
        for i, one in zip(open_, again, strict=True):
            restored = _restored(found, marked, one)
            if restored is not None:
                done[i] = TermTranslation(restored.text, named[i], (), kind, restored)
    return done


def listed(found: Translation | Sequence[Translation]) -> Sequence[Translation]:
    """Return what a call of one text has found as a list, also for a single language."""
    return [found] if isinstance(found, Translation) else found


def _judged(found: TermText, plain: Translation, target: str | None) -> TermTranslation:
    lost = found.lost_in(plain.text)
    best, *others = plain.hypotheses
    if lost and (text := found.translated()) is not None:  # no model is needed for that
        plain = replace(plain, hypotheses=(_with_text(best, text),))
        return TermTranslation(text, target, (), None, plain)
    if not lost:
        plain = replace(plain, hypotheses=(best, *(h for h in others if not found.lost_in(h.text))))
    return TermTranslation(plain.text, target, lost, None, plain)


def _restored(found: TermText, marked: Marked, answer: Translation) -> Translation | None:
    """Restore the terms in each hypothesis; return None if the best one lacks any."""
    texts = [restore(found, marked, one.text) for one in answer.hypotheses]
    if texts[0] is None:
        return None
    hypotheses = tuple(
        _with_text(one, text)
        for one, text in zip(answer.hypotheses, texts, strict=True)
        if text is not None
    )
    return replace(answer, source_text=found.text, hypotheses=hypotheses)


def _with_text(hypothesis: Hypothesis, text: str) -> Hypothesis:
    return replace(hypothesis, text=text, ids=(), alignments=None, alignment_ranges=None)


_MOST_AT_A_TIME = 64


def keeping_client(client: TranslationClient, terms: Terms) -> TranslationClient:
    """Make a client like another, whose `translate` keeps terms."""
    return cast("TranslationClient", _KeepingClient(client, terms))


class _KeepingClient:
    def __init__(self, client: TranslationClient, terms: Terms) -> None:
        self._client = client
        self._terms = terms

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._client, name)

    async def translate(
        self,
        texts: str | Sequence[str],
        *,
        targets: str | Sequence[str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401 - as of `TranslationClient.translate`
        ask = partial(self._client.translate, **options)

        async def keep(text: str) -> Translation | list[Translation]:
            kept = await keep_terms(self._client, self._terms.find(text), ask, targets)
            found = [
                replace(cast("Translation", one.translation), source_text=text) for one in kept
            ]
            return found[0] if targets is None or isinstance(targets, str) else found

        if isinstance(texts, str):
            return await keep(texts)
        return await map_bounded(keep, texts, _MOST_AT_A_TIME)
