# SPDX-License-Identifier: Apache-2.0
"""The synchronous client: the asynchronous client on an event loop in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from ct2_triton.client.client import TranslationClient
from ct2_triton.client.tasks import cancel_all, iterate_in_thread
from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from types import EllipsisType

    from ct2_triton.client.calls import OptionValue
    from ct2_triton.client.results import TextPart, Translation
    from ct2_triton.client.stream import Sentence, StreamItem

Result = TypeVar("Result")
First = TypeVar("First")
Own = TypeVar("Own")
P = ParamSpec("P")


def parameters_of(
    method: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[Concatenate[Own, ...], Result]], Callable[Concatenate[Own, P], Result]]:
    """Declare for type checkers that a method has the parameters of another one."""
    return lambda own: own


def further_parameters_of(
    method: Callable[Concatenate[Any, Any, P], object],
) -> Callable[
    [Callable[Concatenate[Own, First, ...], Result]], Callable[Concatenate[Own, First, P], Result]
]:
    """Declare the parameters of another method except its first, as `parameters_of` does."""
    return lambda own: own


class SyncTranslationClient:
    """`TranslationClient` without `await`.

    It can be used by several threads at once. A process that is forked needs a client of its own,
    and gRPC cannot connect there if the parent had a client in use. For example:

        with SyncTranslationClient("localhost:8001", "nllb", repository="models") as client:
            german = client.translate("Good morning.", source="en", targets="de")
    """

    @parameters_of(TranslationClient.__init__)
    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401
        """Start the thread; connect with the first call.

        Args:
            *arguments: Those of `TranslationClient`, which checks them.
            **settings: Those of `TranslationClient`.
        """
        self._client = TranslationClient(*arguments, **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_serve, args=(self._loop,), name="ct2-translation-client", daemon=True
        )
        self._process = os.getpid()
        self._streams: set[AsyncGenerator[Any, None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        # Orders what is sent to the loop before its end. A signal or the collector may interrupt
        # its owner, and call.
        self._sending = threading.RLock()
        self._end: concurrent.futures.Future[None] | None = None
        self._thread.start()

    def __enter__(self) -> SyncTranslationClient:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Close the connection and end the thread. May be called again.

        Calls of other threads end with an error. In a process that was forked, nothing is closed.
        """
        if self._is_of_parent():
            return
        self._check_thread()
        with self._sending:
            if self._end is None:
                self._end = asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop)
                self._end.add_done_callback(self._stop)
        self._thread.join()
        self._end.result()

    @property
    def takes_text(self) -> bool | None:
        """Whether the model takes text; see `TranslationClient.takes_text`."""
        return self._client.takes_text

    def connect(self) -> None:
        """Ask the server as `TranslationClient.connect` does."""
        self._run(self._client.connect())

    def wait_until_ready(self, timeout_s: float | None = 300.0) -> None:
        """Wait as `TranslationClient.wait_until_ready` does."""
        self._run(self._client.wait_until_ready(timeout_s))

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: str,
        *,
        source: str | None = ...,
        targets: str | None = ...,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> Translation: ...

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: str,
        *,
        source: str | None = ...,
        targets: Sequence[str],
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[Translation]: ...

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: Sequence[str],
        *,
        source: str | None = ...,
        targets: str | None = ...,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[Translation]: ...

    @overload
    def translate(
        self,
        text: Sequence[str],
        *,
        source: str | None = ...,
        targets: Sequence[str],
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[list[Translation]]: ...

    def translate(
        self,
        text: Any,
        **arguments: Any,
    ) -> Any:
        """Translate as `TranslationClient.translate` does, with the same arguments.

        An interrupt (Ctrl-C) cancels the requests in progress.

        Args:
            text: A sentence, or a sequence of them.
            **arguments: Those of `TranslationClient.translate`.

        Returns:
            The translations, as `TranslationClient.translate` does.
        """
        return self._run(self._client.translate(text, **arguments))

    @further_parameters_of(TranslationClient.stream)
    def stream(
        self,
        sentences: Iterable[str | Sentence],
        **arguments: Any,  # noqa: ANN401
    ) -> Iterator[StreamItem]:
        """Translate as `TranslationClient.stream` does, with the same arguments.

        Args:
            sentences: Read in a thread of their own, so an iterator may block.
            **arguments: Those of `TranslationClient.stream`.

        Returns:
            One item for each sentence and language, except superseded ones.
        """
        if isinstance(sentences, (str, bytes)) or not hasattr(sentences, "__iter__"):
            raise InvalidCallError(
                f"sentences is {sentences!r:.80}; it must be an iterable of sentences"
            )
        return self.iterate(lambda client: client.stream(iterate_in_thread(sentences), **arguments))

    @parameters_of(TranslationClient.stream_text)
    def stream_text(
        self,
        text: str,
        **arguments: Any,  # noqa: ANN401
    ) -> Iterator[TextPart]:
        """Translate as `TranslationClient.stream_text` does, with the same arguments.

        Args:
            text: One or more sentences.
            **arguments: Those of `TranslationClient.stream_text`.

        Returns:
            Each part as it arrives.
        """
        return self.iterate(lambda client: client.stream_text(text, **arguments))

    def iterate(
        self, start: Callable[[TranslationClient], AsyncGenerator[Result, None]]
    ) -> Iterator[Result]:
        """Iterate over an asynchronous generator of this client.

        Args:
            start: Makes the generator; called with the asynchronous client, in its event loop.

        Yields:
            The generator's items. Leaving the iteration closes the generator.
        """
        items = start(self._client)
        self._streams.add(items)
        try:
            while (item := self._run(_next(items))) is not None:
                yield item
        finally:
            self._streams.discard(items)
            self._leave(items)

    async def _shut_down(self) -> None:
        """Close the client and end all calls before the event loop stops."""
        await self._client.close()
        await cancel_all(
            [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        )
        for items in tuple(self._streams):  # their inputs are read no further
            await items.aclose()

    def _stop(self, _: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _leave(self, items: AsyncGenerator[Any, None]) -> None:
        """End a stream, and wait for its end unless that could block forever.

        The garbage collector ends a generator on any thread, including the client's own, and at the
        end of the interpreter, when that thread no longer runs.
        """
        if self._is_of_parent() or self._end is not None:  # its requests have ended
            return
        if threading.current_thread() is self._thread:
            task = self._loop.create_task(items.aclose())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        elif not sys.is_finalizing():
            with suppress(InvalidCallError):  # closed meanwhile, and its requests ended
                self._run(items.aclose())

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the client's loop and wait for it."""
        try:
            future = self._send(coroutine)
        except InvalidCallError:
            coroutine.close()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise InvalidCallError("the client was closed during the call") from error
        except BaseException:
            future.cancel()
            raise

    def _send(self, coroutine: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        """Hand a coroutine to the client's loop, which surely runs it or cancels it."""
        if self._is_of_parent():
            raise InvalidCallError(
                f"this client was made in process {self._process}, and process {os.getpid()} was "
                "forked from it; make a client in each process"
            )
        self._check_thread()
        with self._sending:
            if self._end is not None:
                raise InvalidCallError("this client is closed; make a new one")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _check_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise InvalidCallError(
                "this call comes from the client's own thread and would wait for itself; use "
                "TranslationClient in asynchronous code"
            )

    def _is_of_parent(self) -> bool:
        """Return whether the client's thread runs in the process that this one was forked from."""
        return os.getpid() != self._process


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped; with no reference to its client."""
    loop.run_forever()
    loop.close()


async def _next(items: AsyncGenerator[Result, None]) -> Result | None:
    return await anext(items, None)
