# SPDX-License-Identifier: Apache-2.0
"""The captions of one segment in one language, with one request in progress at a time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton.client.results import empty_translation
from ct2_triton.client.retry import Deadline
from ct2_triton.errors import ClientError, RequestRejectedError, SupersededError
from ct2_triton.live.policies import Draft, Shown
from ct2_triton.live.updates import Caption
from ct2_triton.words import begins_with, common_words, spliced, split_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ct2_triton.client.results import Translation
    from ct2_triton.client.retry import Outage
    from ct2_triton.live.options import LiveOptions
    from ct2_triton.live.policies import Interim, Policy

    # Translates a text from a draft; the third argument says that it is the final.
    Translate = Callable[[str, Draft, bool], Awaitable[Translation]]

_AGAIN_AFTER_S = 0.05
_EXPECTED_OF_INTERIMS = {"unsure", "length"}  # expected of half a sentence


@dataclass
class LiveCounts:
    """Counters of a live translation, over all segments and languages.

    Attributes:
        updates: Updates taken.
        requests: Rows sent to the server, finals included.
        superseded: Rows whose answer was dropped, because a newer text replaced theirs.
        failed_interims: Interim translations that failed; the next update is translated.
        flagged_interims: Interim translations that were flagged, and so not committed.
        finals: Finals answered.
        failed_finals: Finals without a translation.
        draft_tokens_kept: Tokens that needed no decode step of their own, because the draft (the
            previous translation) had them.
        interim_tokens: Tokens of all interim translations.
        interim_steps: Tokens of interim translations that needed a decode step of their own.
    """

    updates: int = 0
    requests: int = 0
    superseded: int = 0
    failed_interims: int = 0
    flagged_interims: int = 0
    finals: int = 0
    failed_finals: int = 0
    draft_tokens_kept: int = 0
    interim_tokens: int = 0
    interim_steps: int = 0


@dataclass(frozen=True)
class Said:
    """Text to translate.

    Attributes:
        text: The text.
        time: Time of the update that it comes from.
        is_echo: Whether it is a final that is not translated, because it repeats earlier ones.
    """

    text: str
    time: float | None = None
    is_echo: bool = False


@dataclass(eq=False)
class Track:
    """Make the captions of one segment and language; `run` works.

    Attributes:
        segment: The segment.
        target: The language.
        policy: Makes captions from interim translations.
        options: How often to translate.
        translate: Sends one request.
        interim_of: Makes an `Interim` from an answer.
        outage: Sends finals, and repeats them after an outage.
        deliver: Called with each caption.
        counts: Where requests are counted.
    """

    segment: str
    target: str | None
    policy: Policy
    options: LiveOptions
    translate: Translate
    interim_of: Callable[[Translation], Interim]
    outage: Outage
    deliver: Callable[[Caption], None]
    counts: LiveCounts

    def __post_init__(self) -> None:
        """Start without text."""
        self._shown = Shown()
        self._revision = 0
        self._next: Said | None = None
        self._final: Said | None = None
        self._sent: list[str] = []
        self._due = 0.0
        self._has_left = False
        self._woken = asyncio.Event()
        self._left: set[asyncio.Task[Translation | None]] = set()

    def offer(self, said: Said) -> None:
        """Take a newer text; it replaces a waiting one."""
        if not self.policy.has_interims:
            return
        words = split_words(said.text)
        if len(words) - common_words(words, self._sent) >= self.options.min_words:
            self._next = said
            self._woken.set()

    def finish(self, said: Said) -> None:
        """Take the final text, which supersedes the request in progress."""
        self._final, self._next = said, None
        self._woken.set()

    async def run(self) -> None:
        """Make captions until the final one, which is always delivered."""
        while (said := await self._wait()) is not None:
            interim = asyncio.create_task(self._translate_interim(said))
            while not interim.done() and not self._is_outdated():
                await self._wait_for(interim)
            if interim.done():
                self._has_left = False
                self._show(said, interim.result())
            else:
                self._leave(interim)
        assert self._final is not None  # noqa: S101 - what ends the loop
        self.deliver(await self._last_caption(self._final))

    def _is_outdated(self) -> bool:
        """Return whether the running request is useless: it has a final, or its text was revised.

        The second such request in a row is awaited nevertheless, so that something is shown.
        """
        if self._final is not None or self._next is None or self._has_left:
            return self._final is not None
        revised = common_words(split_words(self._next.text), self._sent) < len(self._sent)
        return revised and time.monotonic() >= self._due

    async def _wait(self) -> Said | None:
        """Wait for the next text and its time; None for the final."""
        while self._final is None:
            left_s = self._due - time.monotonic()
            if self._next is not None and left_s <= 0:
                said, self._next = self._next, None
                return said
            self._woken.clear()
            wait = self._woken.wait()
            if self._next is None:
                await wait
            else:
                await _within(wait, left_s)
        return None

    async def _wait_for(self, interim: asyncio.Task[Translation | None]) -> None:
        """Wait for the interim translation, or for the next text."""
        self._woken.clear()
        woken = asyncio.create_task(self._woken.wait())
        try:
            await asyncio.wait([interim, woken], return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()

    async def _translate_interim(self, said: Said) -> Translation | None:
        self._sent = split_words(said.text)
        self._due = time.monotonic() + self.options.min_interval_ms / 1000
        self.counts.requests += 1
        try:
            return await self.translate(said.text, self.policy.draft(), False)
        except SupersededError:
            return None
        except ClientError:
            self.counts.failed_interims += 1
            return None

    def _leave(self, interim: asyncio.Task[Translation | None]) -> None:
        self._has_left = True
        self.counts.superseded += 1
        self._left.add(interim)
        interim.add_done_callback(self._left.discard)

    def _show(self, said: Said, answer: Translation | None) -> None:
        if answer is None:
            self._sent = []  # translate the next update, however little it adds
            return
        interim = self.interim_of(answer)
        if _flags(answer) - _EXPECTED_OF_INTERIMS:
            self.counts.flagged_interims += 1
            shown = self.policy.held(interim)
        else:
            shown = self.policy.take(interim)
        if shown != self._shown:
            self._shown = shown
            self.deliver(self._caption(said))

    def _caption(self, said: Said) -> Caption:
        self._revision += 1
        return Caption(
            self.segment,
            self.target,
            self._shown.committed,
            self._shown.tail,
            final=False,
            revision=self._revision,
            source=said.text,
            time=said.time,
        )

    async def _last_caption(self, said: Said) -> Caption:
        transcript, committed, error, flags = None, self._shown.committed, None, None
        try:
            if said.is_echo:
                answer = empty_translation(said.text, None, self.target)
            else:
                answer = await self._settle(said, Draft())
            transcript = answer.text
            start = self.policy.completion(self.interim_of(answer))
            raised = _flags(answer)
            if start is None:
                committed = transcript
            elif not said.is_echo:
                committed, more = await self._complete(said, start, transcript)
                raised |= more
            flags = tuple(sorted(raised)) or None
            self.counts.finals += 1
        except ClientError as failure:
            error = str(failure)
            self.counts.failed_finals += 1
        self._revision += 1
        return Caption(
            self.segment,
            self.target,
            committed,
            "",
            final=True,
            revision=self._revision,
            transcript=transcript,
            source=said.text,
            time=said.time,
            error=error,
            flags=flags,
            repeated=said.is_echo or None,
        )

    async def _complete(self, said: Said, start: Draft, transcript: str) -> tuple[str, set[str]]:
        """Complete the text that viewers have seen, by the model or from the transcript.

        Returns the completed text, and its flags.
        """
        committed = self._shown.committed
        try:
            completed = await self._settle(said, start)
        except RequestRejectedError:  # the search takes no bias
            return spliced(committed, transcript), set()
        if begins_with(completed.text, committed):
            return completed.text, _flags(completed)
        return spliced(committed, transcript), set()

    async def _settle(self, said: Said, draft: Draft) -> Translation:
        async def send(_: Deadline) -> Translation:
            while True:
                self.counts.requests += 1
                try:
                    return await self.translate(said.text, draft, True)
                except SupersededError:  # an older request of the segment reached the server later
                    await asyncio.sleep(_AGAIN_AFTER_S)

        return await self.outage.outlast(send, partial(Deadline, None))


def _flags(answer: Translation) -> set[str]:
    return set() if answer.verdict is None else set(answer.verdict.flags)


async def _within(wait: Awaitable[object], seconds: float) -> None:
    try:
        await asyncio.wait_for(wait, seconds)
    except asyncio.TimeoutError:
        return
