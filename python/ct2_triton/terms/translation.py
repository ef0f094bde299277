# SPDX-License-Identifier: Apache-2.0
"""Translate a text, or many lines, so that its terms survive, and report lost ones.

Lines are those of `ct2-translate --keep`, `--glossary` and `--keep-patterns`.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

from ct2_triton.client.calls import code_of
from ct2_triton.client.results import Translation
from ct2_triton.client.stream import Sentence, StreamOptions, TranslationStream
from ct2_triton.client.tasks import Shared, aside, map_bounded
from ct2_triton.errors import InvalidCallError, RequestRejectedError
from ct2_triton.terms.finding import Terms
from ct2_triton.terms.placeholders import check_kind, kinds_of, mark, restore

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Collection,
        Mapping,
        Sequence,
    )

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Hypothesis
    from ct2_triton.client.stream import StreamItem
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
    size = len(found.text)
    done = [
        await aside(size, _judged, found, one, name) for one, name in zip(plain, named, strict=True)
    ]
    if placeholders is None:
        placeholders = kinds_of(client) if any(one.failed for one in done) else ()
    for kind in placeholders:
        open_ = [i for i, one in enumerate(done) if one.failed]
        if not open_ or (marked := await aside(size, mark, found, kind)) is None:
            continue
        asked = [name for i in open_ if (name := named[i]) is not None] or None
        again = listed(await ask(marked.text, targets=asked))
        for i, one in zip(open_, again, strict=True):
            restored = await aside(size, _restored, found, marked, one)
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
            terms = await aside(len(text), self._terms.find, text)
            kept = await keep_terms(self._client, terms, ask, targets)
            found = [
                replace(cast("Translation", one.translation), source_text=text) for one in kept
            ]
            return found[0] if targets is None or isinstance(targets, str) else found

        if isinstance(texts, str):
            return await keep(texts)
        return await map_bounded(keep, texts, _MOST_AT_A_TIME)


_LOG = logging.getLogger(__name__)


async def stream_terms(
    client: TranslationClient,
    terms: Terms | Mapping[str | None, Terms],
    sentences: AsyncIterable[str | Sentence],
    *,
    source: str | None,
    targets: Sequence[str] | None,
    max_in_flight: int,
    **options: Any,  # noqa: ANN401
) -> AsyncGenerator[StreamItem, None]:
    """Translate lines so that their terms survive; a line that loses one is logged.

    Args:
        client: Of the model.
        terms: The terms; those of each language, by its code, or of all.
        sentences: The lines.
        source: Their language.
        targets: Languages wanted.
        max_in_flight: Most lines in progress.
        **options: `on_error` of `TranslationClient.stream`, and decoding options.

    Yields:
        One item for each line and language, as `TranslationClient.stream`.

    Raises:
        ClientError: The languages are not the model's, or a line failed and `on_error` is "raise".
    """
    codes = [code_of(target) for target in client.languages.targets(targets)]
    groups = _groups(terms, codes, targets)
    behaviour = StreamOptions(max_in_flight, on_error=options.pop("on_error", "raise"))
    session = secrets.token_hex()  # one version answers all lines, and each line as a whole

    async def ask(text: str, *, targets: Any) -> list[Translation]:  # noqa: ANN401
        """Translate as a stream does: an outage may last longer than a line."""

        async def alone() -> AsyncIterator[str]:
            yield text

        stream = client.stream(alone(), source=source, targets=targets, session=session, **options)
        async with aclosing(stream) as items:
            given = {item.target: item.translation async for item in items}
        return [given[code_of(target)] for target in client.languages.targets(targets)]

    async def translate(line: Sentence) -> list[Translation]:
        found: dict[str | None, Translation] = {}

        async def into(group: _Group) -> None:
            try:
                found_terms = group.terms.find(line.text)
            except InvalidCallError as error:  # the other lines may be right
                raise RequestRejectedError(str(error)) from error
            kept = await keep_terms(client, found_terms, ask, group.targets)
            for one, code in zip(kept, group.codes, strict=True):
                if one.failed:
                    where = f"{line}, {code}" if code else str(line)
                    _LOG.warning("%s: lost %s", where, ", ".join(map(repr, one.lost)))
                answer = cast("Translation", one.translation)
                found[code] = replace(answer, source_text=line.text)

        await map_bounded(into, groups, len(groups))
        return [found[code] for code in codes]

    def start(line: Sentence) -> dict[str | None, Any]:
        shared = Shared(partial(translate, line))
        return {code: partial(shared.one, i) for i, code in enumerate(codes)}

    async with aclosing(TranslationStream(start, behaviour).run(sentences)) as items:
        async for item in items:
            yield item


@dataclass
class _Group:
    """Languages that have the same terms."""

    terms: Terms
    codes: list[str | None]
    targets: list[str] | None


def _groups(
    terms: Terms | Mapping[str | None, Terms],
    codes: Sequence[str | None],
    targets: Sequence[str] | None,
) -> list[_Group]:
    if isinstance(terms, Terms):
        return [_Group(terms, list(codes), None if targets is None else list(targets))]
    groups: dict[int, _Group] = {}
    for i, code in enumerate(codes):
        named: list[str] | None = None if targets is None else []
        group = groups.setdefault(id(terms[code]), _Group(terms[code], [], named))
        group.codes.append(code)
        if targets is not None and group.targets is not None:
            group.targets.append(targets[i])
    return list(groups.values())
