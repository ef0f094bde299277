# SPDX-License-Identifier: Apache-2.0
"""The synchronous version of `LiveTranslator`."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ct2_triton.client.sync_client import further_parameters_of
from ct2_triton.client.tasks import iterate_in_thread
from ct2_triton.live.translator import LiveTranslator

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.sync_client import SyncTranslationClient
    from ct2_triton.live.updates import Caption, LiveInputError, SegmentUpdate


class SyncLiveTranslator:
    """`LiveTranslator` without `await`, on the event loop of a synchronous client.

    For example:

        live = SyncLiveTranslator(client, source="en", targets=["de", "fr"])
        for caption in live.run(updates):
            print(caption.segment, caption.target, caption.shown)
    """

    @further_parameters_of(LiveTranslator.__init__)
    def __init__(self, client: SyncTranslationClient, **settings: Any) -> None:  # noqa: ANN401
        """Keep the settings.

        Args:
            client: Sends the requests; stays open.
            **settings: The other arguments of `LiveTranslator`, which checks them.
        """
        self._client = client
        self._settings = settings

    def run(
        self,
        updates: Iterable[SegmentUpdate],
        *,
        on_refused: Callable[[SegmentUpdate, LiveInputError], None] | None = None,
    ) -> Iterator[Caption]:
        """Translate updates as `LiveTranslator.run` does.

        Args:
            updates: Read in a thread of their own, so an iterator may block.
            on_refused: As for `LiveTranslator.run`; called in the client's thread.

        Yields:
            The captions. Leaving the iteration ends the translation.
        """

        async def captions(client: TranslationClient) -> AsyncGenerator[Caption, None]:
            live = LiveTranslator(client, **self._settings)
            run = live.run(iterate_in_thread(updates), on_refused=on_refused)
            async with aclosing(run) as items:
                async for caption in items:
                    yield caption

        return self._client.iterate(captions)
