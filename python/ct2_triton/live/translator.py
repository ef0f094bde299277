# SPDX-License-Identifier: Apache-2.0
"""Translate growing segments into captions in several languages."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ct2_triton.client.retry import Outage, RetryPolicy
from ct2_triton.client.tasks import cancel_all
from ct2_triton.errors import DeadlineExceededError, InvalidCallError
from ct2_triton.live.cutting import Cuts, Piece
from ct2_triton.live.options import LiveOptions
from ct2_triton.live.policies import Interim, SourceAttention
from ct2_triton.live.requests import LiveRequests
from ct2_triton.live.track import LiveCounts, Said, Track
from ct2_triton.live.updates import LiveInputError, is_piece_name
from ct2_triton.subtitles import width
from ct2_triton.terms.finding import Terms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence

    from ct2_triton.client.calls import OptionValue
    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation
    from ct2_triton.live.policies import Tokens
    from ct2_triton.live.spoken import Spoken
    from ct2_triton.live.updates import Caption, SegmentUpdate

_REMEMBERED = 10_000  # ended segments, so that none is translated twice
_MAX_KEY_BYTES = 80
_FIRST_PAUSE_S = 0.05  # pause before a final is sent again


@dataclass
class _Segment:
    """A segment, or a piece of one, whose final is missing in some language."""

    tracks: list[Track]
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    open_languages: int = 0


@dataclass
class _Talk:
    """A segment of the recognizer, which may be cut into pieces."""

    cuts: Cuts
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LiveTranslator:
    """Translate segments while a recognizer is still changing them.

    Each segment and language has one request in progress. Newer text replaces waiting text, and is
    sent when the request has ended. The final, or a revision of earlier words, supersedes the
    request by its key. So a slow server causes fewer captions, not later ones. Finals are
    translated without a forced start, and sent again until the server answers.

        async with LiveTranslator(client, source="en", targets=["de", "fr"]) as live:
            async for caption in live.run(updates):
                print(caption.segment, caption.target, caption.committed, caption.tail)

    Or `push` updates in one task and read `captions()` in another.
    """

    def __init__(
        self,
        client: TranslationClient,
        /,
        *,
        source: str | None = None,
        targets: str | Sequence[str] | None = None,
        options: LiveOptions | None = None,
        key: str | None = None,
        terms: Terms | Mapping[str | None, Terms] | None = None,
        **decoding: OptionValue,
    ) -> None:
        """Prepare the translation; nothing is sent yet.

        Args:
            client: Sends the requests; stays open.
            source: Language of the text, as in `TranslationClient.translate`.
            targets: Target language or languages.
            options: How the translation behaves.
            key: Start of the keys by which newer requests supersede older ones, at most 80 bytes;
                no other live translation with the model may have it. None: a random one.
            terms: Terms to keep: for all languages, or for some by their codes.
            **decoding: Decoding options of the finals. Interim translations have `beam_size=1`.

        Raises:
            UnknownLanguageError: The model does not have a language.
            InvalidCallError: The key is too long.
        """
        self.options = options or LiveOptions()
        self.counts = LiveCounts()
        self._client = client
        # Raises errors now, not at the first update.
        spoken = client.languages.source(source)
        self._language = "" if spoken is None else spoken.code
        languages = client.languages.targets(targets)
        self.targets = [None if language is None else language.code for language in languages]
        self._key = f"live-{uuid.uuid4().hex}" if key is None else key
        if not 1 <= len(self._key.encode(errors="replace")) <= _MAX_KEY_BYTES:
            raise InvalidCallError(
                f"key is {self._key[:90]!r}; 1 to {_MAX_KEY_BYTES} bytes are allowed"
            )
        if terms is None or isinstance(terms, Terms):
            terms = dict.fromkeys(self.targets, terms) if terms else {}
        self._requests = LiveRequests(
            client,
            source=source,
            key=self._key,
            options=self.options,
            decoding={**decoding, "quality": True} if self.options.quality else decoding,
            terms=terms,
            counts=self.counts,
        )
        policy = RetryPolicy(outage_s=self.options.outage_s, initial_backoff_s=_FIRST_PAUSE_S)
        self._outage = Outage(policy, also=(DeadlineExceededError,))
        self._attention = SourceAttention(client)
        self._outbox = Outbox()
        self._echoes = Echoes()
        self._talks: dict[str, _Talk] = {}
        self._segments: dict[str, _Segment] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._room = asyncio.Semaphore(self.options.max_waiting_finals)
        self._failure: BaseException | None = None
        self._drained = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> LiveTranslator:
        """Return the translator."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the translator."""
        await self.close()

    async def push(
        self, update: SegmentUpdate, *, spoken: Spoken | None = None
    ) -> list[SegmentUpdate]:
        """Take an update. If it ends a segment, wait while too many finals are waiting.

        Args:
            update: The update; the first one of a segment opens it.
            spoken: Text of the segment that an earlier translation has ended. If the first update
                begins with it, only the rest is translated.

        Returns:
            The update, or the pieces that it was cut into, whose names the captions have.

        Raises:
            LiveInputError: The segment is already final or has the name of a piece, the text is
                too long, or too many segments are open. Nothing has changed.
            InvalidCallError: The translator is closed.
        """
        talk = self._talks.get(update.segment) or self._talk(update.text, spoken)
        self._check(update, talk)
        self._talks[update.segment] = talk
        if update.final:
            self._end(update.segment)  # a second final is refused while this one waits
        async with talk.lock:
            pieces = talk.cuts.take(update)
            self.counts.updates += 1
            for piece in pieces:
                await self._take(piece)
        if update.final:
            del self._talks[update.segment]
        return [piece.update for piece in pieces]

    async def settle(self, update: SegmentUpdate) -> None:
        """Translate a final that was already cut, under its own name.

        Args:
            update: A final; no other update has its name.
        """
        await self._take(Piece(update, update.text))

    async def _take(self, piece: Piece) -> None:
        """Pass a piece to the tracks of its languages."""
        update = piece.update
        if update.final:
            await self._room.acquire()
            if self._closed:
                self._room.release()  # to the next update that waits
            self._check_open()
        segment = self._segments.get(update.segment) or self._open(update.segment)
        is_echo = self.options.quality and self._echoes.has(update)
        for track in segment.tracks:
            if update.final:
                track.finish(Said(update.text, update.time, is_echo))
            elif piece.stable and not is_echo:
                track.offer(Said(piece.stable, update.time))

    async def captions(self) -> AsyncGenerator[Caption, None]:
        """Yield captions as they arrive, until `finish` or `close`.

        A slow reader skips captions that newer ones have replaced, never a final.
        """
        while (caption := await self._outbox.get()) is not None:
            if caption.final:
                self._taken(caption.segment)
            yield caption
        if self._failure is not None:
            raise self._failure

    async def finish(self) -> None:
        """End all open segments with their current text, and wait until all finals are read."""
        await self.end_segments()
        while self._segments:
            self._drained.clear()
            await self._drained.wait()
        self._outbox.end()

    async def end_segments(self) -> list[SegmentUpdate]:
        """End all open segments with their current text.

        Returns:
            What `push` returns for each.
        """
        pieces = []
        for name, talk in list(self._talks.items()):
            if talk.cuts.newest is not None and name not in self._ended:
                pieces += await self.push(replace(talk.cuts.newest, final=True))
        return pieces

    async def close(self) -> None:
        """End everything; pending translations are dropped. May be called again.

        Captions that are not read yet are kept: `captions` yields them, then ends. Waits some
        seconds for requests in progress, because cancelling could crash the server.
        """
        if self._closed:
            return
        self._closed = True
        await cancel_all([task for one in self._segments.values() for task in one.tasks])
        await self._requests.close()
        self._segments.clear()
        self._room.release()  # wakes a waiting update
        self._drained.set()
        self._outbox.end()

    async def run(
        self,
        updates: AsyncIterable[SegmentUpdate],
        *,
        on_refused: Callable[[SegmentUpdate, LiveInputError], None] | None = None,
    ) -> AsyncGenerator[Caption, None]:
        """Translate updates until they end, which also ends all open segments.

        Args:
            updates: The updates.
            on_refused: Called with an update that is refused and its error; None: it ends the run.

        Yields:
            The captions, as `captions` does.

        Raises:
            LiveInputError: An update is refused, and `on_refused` is None.
        """
        feeder = asyncio.create_task(self._feed(updates, on_refused))
        try:
            async with aclosing(self.captions()) as captions:
                async for caption in captions:
                    yield caption
            await feeder
        finally:
            await cancel_all([feeder])
            await self.close()

    async def _feed(
        self,
        updates: AsyncIterable[SegmentUpdate],
        on_refused: Callable[[SegmentUpdate, LiveInputError], None] | None,
    ) -> None:
        try:
            async for update in updates:
                try:
                    await self.push(update)
                except LiveInputError as error:
                    if on_refused is None:
                        raise
                    on_refused(update, error)
            await self.finish()
        finally:
            self._outbox.end()

    def _check(self, update: SegmentUpdate, talk: _Talk) -> None:
        self._check_open()
        name, options = update.segment, self.options
        if is_piece_name(name):
            raise LiveInputError(
                f"segment {name!r} ends with ~ and digits, as the pieces of a segment that is cut "
                "do; give it a name without that end"
            )
        if name in self._ended:
            raise LiveInputError(
                f"segment {name!r} is final already; what is said next needs a new segment"
            )
        new = len(update.text) - talk.cuts.cut_chars
        if new > options.max_chars:
            raise LiveInputError(
                f"the text of segment {name!r} has {new} characters; "
                f"{options.max_chars} are allowed: end the segment and begin a new one"
            )
        if name in self._talks or update.final:
            return
        if sum(name not in self._ended for name in self._talks) >= options.max_segments:
            raise LiveInputError(
                f"segment {name!r} cannot be opened: {options.max_segments} segments are "
                "open; end some of them with a final update"
            )

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidCallError("this live translation is closed; make a new one")

    def _talk(self, text: str, spoken: Spoken | None) -> _Talk:
        options = self.options
        cuts = Cuts(
            self._language,
            sentences=options.cut_sentences,
            max_words=options.max_words,
            agreement=options.source == "agreement",
        )
        if spoken is not None and spoken.begins(text):
            cuts.go_on(spoken.cut, text)
        return _Talk(cuts)

    def _end(self, name: str) -> None:
        self._ended[name] = None
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    def _open(self, name: str) -> _Segment:
        tracks = [self._track(name, target) for target in self.targets]
        segment = _Segment(tracks, open_languages=len(tracks))
        segment.tasks = [asyncio.create_task(track.run()) for track in tracks]
        for task in segment.tasks:
            task.add_done_callback(self._note_failure)
        self._segments[name] = segment
        return segment

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        """End the captions with an unexpected error, such as one of a policy."""
        if not task.cancelled() and (failure := task.exception()):
            self._failure = failure
            self._outbox.end()

    def _taken(self, name: str) -> None:
        """Forget a segment when the final of its last language is read."""
        if (segment := self._segments.get(name)) is None:
            return  # closed
        segment.open_languages -= 1
        if segment.open_languages == 0:
            del self._segments[name]
            self._room.release()
            self._drained.set()

    def _track(self, name: str, target: str | None) -> Track:
        policy = self.options.make_policy(self._decode)
        attends = getattr(policy, "attends", False)
        return Track(
            name,
            target,
            policy=policy,
            options=self.options,
            translate=self._requests.into(name, target, attends=attends),
            interim_of=self._interim_of,
            outage=self._outage,
            deliver=self._outbox.put,
            counts=self.counts,
        )

    def _decode(self, tokens: Tokens) -> str:
        if tokens and isinstance(tokens[0], str):
            return "".join(tokens).lstrip()
        return self._client.tokenizer.decode(tokens) if tokens else ""

    def _interim_of(self, answer: Translation) -> Interim:
        return Interim(
            answer.text, self._requests.tokens_of(answer), self._attention.words_after(answer)
        )


class Outbox:
    """Hold the newest caption of each segment and language.

    A slow reader thus skips replaced captions, but no final, because nothing replaces finals.
    Captions are read in the order in which their segment and language began to wait.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._captions: dict[tuple[str, str | None], Caption] = {}
        self._changed = asyncio.Event()
        self._ended = False

    def __len__(self) -> int:
        """Return the number of waiting captions."""
        return len(self._captions)

    def put(self, caption: Caption) -> None:
        """Add a caption, replacing an older one of its segment and language."""
        self._captions[caption.segment, caption.target] = caption
        self._changed.set()

    def end(self) -> None:
        """Mark the end of the captions."""
        self._ended = True
        self._changed.set()

    async def get(self) -> Caption | None:
        """Wait for a caption and remove it; return None at the end."""
        while not self._captions:
            if self._ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._captions.pop(next(iter(self._captions)))


_MOST_TIMES = 2  # how often a repeated sentence is translated
_LEAST_WIDTH = 8  # in letters and digits, wide ones counted twice; short ones may repeat


class Echoes:
    """Detects finals that repeat the previous ones too often."""

    def __init__(self) -> None:
        """Start without sentences."""
        self._last = ""
        self._times = 0

    def has(self, update: SegmentUpdate) -> bool:
        """Return whether an update repeats, or begins to repeat, the last finals.

        Args:
            update: A final, which is counted, or an earlier update of a segment.
        """
        letters = "".join(filter(str.isalnum, update.text.casefold()))
        if not update.final:
            return self._times >= _MOST_TIMES and self._last.startswith(letters)
        if letters != self._last or width(letters) < _LEAST_WIDTH:
            self._last, self._times = letters, 0
        self._times += 1
        return self._times > _MOST_TIMES
