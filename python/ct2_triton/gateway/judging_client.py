# SPDX-License-Identifier: Apache-2.0
"""A client that has each translation judged, for callers that want no more than texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ct2_triton.client.results import Translation, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.client.client import TranslationClient


class JudgingClient:
    """Translates as another client does; all else is that of the other client."""

    def __init__(self, client: TranslationClient) -> None:
        """Take the client, which stays open."""
        self._client = client
        self._verdicts: list[Verdict] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Give what this class does not have."""
        return getattr(self._client, name)

    async def translate(self, texts: str | Sequence[str], **options: Any) -> Any:  # noqa: ANN401 - as of `TranslationClient.translate`
        """Translate into one language, and keep the verdicts."""
        found: Any = await self._client.translate(texts, quality=True, **options)
        given: Sequence[Translation] = [found] if isinstance(found, Translation) else found
        self._verdicts += [one.verdict for one in given if one.verdict is not None]
        return found

    @property
    def verdict(self) -> Verdict:
        """The verdict on all that was translated together."""
        return Verdict.of_all(self._verdicts)
