# SPDX-License-Identifier: Apache-2.0
"""A client whose translations keep terms, for callers that know no terms."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ct2_triton.client.tasks import map_bounded
from ct2_triton.terms.translation import keep_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation
    from ct2_triton.terms.finding import Terms

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
