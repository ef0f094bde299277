# SPDX-License-Identifier: Apache-2.0
"""Terms of many lines: what `ct2-translate --keep`, `--glossary` and `--keep-patterns` do."""

from __future__ import annotations

import logging
import secrets
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ct2_triton.client.calls import code_of
from ct2_triton.client.stream import Sentence, StreamOptions, TranslationStream
from ct2_triton.client.tasks import Shared, map_bounded
from ct2_triton.errors import InvalidCallError, RequestRejectedError
from ct2_triton.terms.finding import Terms
from ct2_triton.terms.translation import keep_terms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation
    from ct2_triton.client.stream import StreamItem

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
