# SPDX-License-Identifier: Apache-2.0
"""Terms of many lines: what `ct2-translate --keep`, `--glossary` and `--keep-patterns` do."""

from __future__ import annotations

import logging
import secrets
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ct2_triton.client.calls import code_of
from ct2_triton.client.stream import Sentence, StreamOptions, TranslationStream
from ct2_triton.client.tasks import Shared
from ct2_triton.errors import ClientError, InvalidCallError, RequestRejectedError
from ct2_triton.terms.translation import keep_terms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
    from pathlib import Path

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation
    from ct2_triton.client.stream import StreamItem
    from ct2_triton.terms.finding import Terms

_LOG = logging.getLogger(__name__)


def read_glossary(path: Path) -> dict[str, str]:
    """Read a glossary: a phrase, a tab and what it becomes on each line; alone, it is kept.

    Args:
        path: The file, UTF-8. Empty lines are left out.

    Returns:
        What phrases become.

    Raises:
        ClientError: It cannot be read, or a line is something else; the text has its number.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # phrases may have other ends
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"cannot read the glossary {path}: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        phrase, *becomes = (part.strip() for part in line.split("\t"))
        text = becomes[0] if becomes else phrase
        if len(becomes) > 1 or not phrase or not text:
            raise ClientError(
                f"{path}, line {number}: {line[:80]!r} is not a phrase, or a phrase, a tab and "
                "what it becomes"
            )
        if found.setdefault(phrase, text) != text:
            raise ClientError(
                f"{path}, line {number}: {phrase!r} becomes {text!r}, and {found[phrase]!r} before"
            )
    return found


async def stream_terms(
    client: TranslationClient,
    terms: Terms,
    sentences: AsyncIterable[str | Sentence],
    *,
    source: str | None,
    targets: Sequence[str] | None,
    max_in_flight: int,
    **options: Any,  # noqa: ANN401
) -> AsyncGenerator[StreamItem, None]:
    """Translate lines so that their terms survive; a line that loses one is told in the log.

    Args:
        client: Of the model.
        terms: The terms.
        sentences: The lines.
        source: Their language.
        targets: Languages wanted.
        max_in_flight: Lines under way.
        **options: `on_error` of `TranslationClient.stream`, and decoding options.

    Yields:
        One item for each line and language, as `TranslationClient.stream`.

    Raises:
        ClientError: The languages are not the model's, or a line failed and `on_error` is "raise".
    """
    codes = [code_of(target) for target in client.languages.targets(targets)]
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
        try:
            found_terms = terms.find(line.text)
        except InvalidCallError as error:  # the other lines may be right
            raise RequestRejectedError(str(error)) from error
        found = await keep_terms(client, found_terms, ask, targets)
        for one, code in zip(found, codes, strict=True):
            if one.failed:
                where = f"{line}, {code}" if code else str(line)
                _LOG.warning("%s: lost %s", where, ", ".join(map(repr, one.lost)))
        answers = (cast("Translation", one.translation) for one in found)
        return [replace(answer, source_text=line.text) for answer in answers]

    def start(line: Sentence) -> dict[str | None, Any]:
        shared = Shared(partial(translate, line))
        return {code: shared.one(i) for i, code in enumerate(codes)}

    async with aclosing(TranslationStream(start, behaviour).run(sentences)) as items:
        async for item in items:
            yield item
