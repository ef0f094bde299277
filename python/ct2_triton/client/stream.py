# SPDX-License-Identifier: Apache-2.0
"""Translate a stream of sentences into a stream of translations.

This module knows neither gRPC nor tokens: a stream gets a function that translates one sentence
into one language, and tests pass one of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ct2_triton.client.tasks import cancel_all, check_in_flight
from ct2_triton.errors import ClientError, InvalidCallError, SupersededError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        Callable,
        Coroutine,
        Hashable,
        Mapping,
    )
    from typing import Any

    from ct2_triton.client.results import Translation

    Send = Callable[[], Coroutine[Any, Any, Translation]]
    """Translates a sentence into one language; may be called again."""

Order = Literal["per-language", "as-completed"]
Superseded = Literal["cancel", "keep"]
OnError = Literal["raise", "yield"]


@dataclass(frozen=True)
class Sentence:
    """A sentence of a stream, which can be sent again in a newer version.

    Attributes:
        text: The text.
        id: The same for all versions of a sentence, as in live captions; None for a sentence with
            only one version.
        source: Its language; None for that of the stream.
    """

    text: str
    id: Hashable | None = None
    source: str | None = None


@dataclass(frozen=True)
class StreamItem:
    """What a stream yields: one sentence in one language, translated or failed.

    Attributes:
        position: Number of the sentence in the input, from 0; each version counts.
        sentence: The sentence.
        target: Code of the language.
        outcome: The translation, or the error, if the stream yields errors.
    """

    position: int
    sentence: Sentence
    target: str | None
    outcome: Translation | ClientError

    @property
    def translation(self) -> Translation:
        """The translation.

        Raises:
            ClientError: The error of this sentence in this language.
        """
        if isinstance(self.outcome, ClientError):
            raise self.outcome
        return self.outcome


@dataclass(frozen=True)
class StreamOptions:
    """Settings of a stream.

    Attributes:
        max_in_flight: Most sentences that are sent, or answered and not yet read. At this number,
            only one more is read from the input.
        order: "per-language": sentences of a language are yielded in the order of the input, each
            language at its own pace. "as-completed": each as soon as it is translated.
        superseded: "cancel": a newer version of a sentence replaces the older one, which is
            cancelled, also on the server, and never yielded. If versions arrive faster than the
            model translates, only the last is yielded. "keep": all versions are yielded.
        on_error: "raise": the first sentence that fails ends the stream. "yield": it is yielded
            as an item whose outcome is the error, and the stream continues.
        cancels: Whether an older version is cancelled. If not, the server ends it when the newer
            one arrives, and its answer is dropped. If the older one arrives later, it ends the
            newer one, which is then sent again.
    """

    max_in_flight: int = 16
    order: Order = "per-language"
    superseded: Superseded = "cancel"
    on_error: OnError = "raise"
    cancels: bool = True

    def __post_init__(self) -> None:
        """Check the values."""
        check_in_flight(self.max_in_flight)
        for name, allowed in (
            ("order", ("per-language", "as-completed")),
            ("superseded", ("cancel", "keep")),
            ("on_error", ("raise", "yield")),
        ):
            if getattr(self, name) not in allowed:
                raise InvalidCallError(
                    f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(allowed)}"
                )


@dataclass(eq=False)
class _Held:
    """A sentence in progress, with a task for each language that is not yielded yet."""

    position: int
    sentence: Sentence
    tasks: dict[str | None, asyncio.Task[Translation]] = field(default_factory=dict)


class TranslationStream:
    """One run of a stream: reads ahead within limits, and yields finished items."""

    def __init__(
        self,
        start: Callable[[Sentence], Mapping[str | None, Send]],
        options: StreamOptions,
    ) -> None:
        """Prepare the run; nothing is read yet.

        `start` returns a coroutine per language that translates a sentence.
        """
        self._start = start
        self._options = options
        self._held: deque[_Held] = deque()
        # Superseded versions in progress, by sentence and language.
        self._dropped: dict[asyncio.Task[Translation], tuple[Hashable, str | None]] = {}
        self._slots = asyncio.Semaphore(options.max_in_flight)
        self._wake = asyncio.Event()

    async def run(
        self, sentences: AsyncIterable[str | Sentence]
    ) -> AsyncGenerator[StreamItem, None]:
        """Read all sentences and yield their translations.

        Leaving the iteration early cancels requests in progress.
        """
        reader = asyncio.create_task(self._read(sentences))
        reader.add_done_callback(self._notify)
        try:
            while True:
                self._wake.clear()
                if item := self._take():
                    yield item
                elif reader.done() and not self._held:
                    break
                else:
                    await self._wake.wait()
            await reader
        finally:
            held = [task for held in self._held for task in held.tasks.values()]
            await cancel_all([reader, *held, *self._dropped])
            if hasattr(sentences, "aclose"):
                await sentences.aclose()

    async def _read(self, sentences: AsyncIterable[str | Sentence]) -> None:
        """Start sentences as they arrive; one beyond the limit waits.

        It is read nevertheless because it can supersede an older version, and so make room.
        """
        position = 0
        async for given in sentences:
            sentence = Sentence(given) if isinstance(given, str) else given
            if not isinstance(sentence, Sentence) or not isinstance(sentence.text, str):
                raise InvalidCallError(
                    f"sentence {position} is {given!r:.80}; it must be a string or a Sentence"
                )
            if self._options.superseded == "cancel" and sentence.id is not None:
                self._supersede(sentence.id)
            await self._slots.acquire()
            held = _Held(position, sentence)
            for target, send in self._start(sentence).items():
                held.tasks[target] = asyncio.create_task(self._translate(sentence, target, send))
                held.tasks[target].add_done_callback(self._notify)
            self._held.append(held)
            position += 1

    async def _translate(self, sentence: Sentence, target: str | None, send: Send) -> Translation:
        """Translate a version; send it again if an older one may have ended it on the server.

        The server can process two requests of a connection in either order. If all older versions
        had ended before this one was sent, another client superseded it.
        """
        while True:
            has_older = (sentence.id, target) in self._dropped.values()
            try:
                return await send()
            except SupersededError:
                if not has_older or asyncio.current_task() in self._dropped:
                    raise

    def _supersede(self, sentence_id: Hashable) -> None:
        """Forget older versions of a sentence, and cancel them unless the server ends them."""
        for held in [held for held in self._held if held.sentence.id == sentence_id]:
            for target, task in held.tasks.items():
                if self._options.cancels:
                    task.cancel()
                self._dropped[task] = (sentence_id, target)
                task.add_done_callback(self._bury)
            self._forget(held)
        self._notify()

    def _bury(self, task: asyncio.Task[Translation]) -> None:
        """Forget a superseded task and ignore its error."""
        self._dropped.pop(task, None)
        if not task.cancelled():
            task.exception()

    def _take(self) -> StreamItem | None:
        """Remove and return the first item that may be yielded now."""
        blocked: set[str | None] = set()
        for held in self._held:
            for target, task in held.tasks.items():
                if task.done() and target not in blocked:
                    return self._finish(held, target)
            if self._options.order == "per-language":
                blocked.update(held.tasks)
        return None

    def _finish(self, held: _Held, target: str | None) -> StreamItem:
        task = held.tasks.pop(target)
        if not held.tasks:
            self._forget(held)
        outcome: Translation | ClientError
        try:
            outcome = task.result()
        except ClientError as error:
            if self._options.on_error == "raise":
                raise
            outcome = error
        return StreamItem(held.position, held.sentence, target, outcome)

    def _forget(self, held: _Held) -> None:
        self._held.remove(held)
        self._slots.release()

    def _notify(self, _: object = None) -> None:
        self._wake.set()
