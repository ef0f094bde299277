# SPDX-License-Identifier: Apache-2.0
"""Clients that end, or are used, where nobody expects it: collector, own thread, another loop."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton import errors
from ct2_triton.client import SyncTranslationClient, Tokenizer, TranslationClient
from ct2_triton.client.retry import closed_error
from support.fault_server import FaultServer, echo, hang, serving_in_a_thread
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from python.client.conftest import TokenizerFolder

TEXT = "The old sailor noticed the harbour."
CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn"}
GUARD_S = 60


@pytest.fixture
def url() -> Iterator[str]:
    with serving_in_a_thread(FaultServer) as (_, url):
        yield url


def test_the_collector_may_end_a_stream_on_the_clients_own_thread(
    tokenizer: Tokenizer, url: str
) -> None:
    with SyncTranslationClient(url, "m", tokenizer=tokenizer) as client:
        collected = threading.Event()

        def collect() -> None:
            gc.collect()
            collected.set()

        items = client.stream(["One.", "Two."] * 50, **CALL)
        next(items)
        ring: list[Any] = [items]
        ring.append(ring)  # only the collector ends it
        gc.disable()
        try:
            del items, ring
            client._loop.call_soon_threadsafe(collect)
            assert collected.wait(GUARD_S)
        finally:
            gc.enable()
        assert client.translate(TEXT, **CALL).text == TEXT


def test_leaving_a_stream_ends_it_on_the_server(tokenizer: Tokenizer) -> None:
    async def short_only(server: FaultServer, request: Any, context: Any) -> Any:
        """Tell the sentences by their lengths, since their calls arrive in any order."""
        is_short = len(request.raw_input_contents[0]) < len(TEXT)
        return await (echo if is_short else hang)(server, request, context)

    with (
        serving_in_a_thread(FaultServer, short_only) as (server, url),
        SyncTranslationClient(url, "m", tokenizer=tokenizer) as client,
    ):
        items = client.stream(["One.", TEXT], **CALL)
        next(items)
        wait_until(server.started.is_set)
        assert not server.cancelled.is_set()
        items.close()
        wait_until(server.cancelled.is_set)


def test_a_call_from_the_clients_own_thread_is_refused(tokenizer: Tokenizer, url: str) -> None:
    with SyncTranslationClient(url, "m", tokenizer=tokenizer) as client:
        found: list[BaseException] = []
        done = threading.Event()

        def call() -> None:
            try:
                client.translate(TEXT, **CALL)
            except BaseException as error:
                found.append(error)
            done.set()

        client._loop.call_soon_threadsafe(call)
        assert done.wait(GUARD_S)
        assert isinstance(found[0], errors.InvalidCallError)
        assert "own thread" in str(found[0])
        assert client.translate(TEXT, **CALL).text == TEXT


def test_a_program_may_end_in_the_middle_of_a_stream(
    tokenizer_folder: TokenizerFolder, url: str
) -> None:
    code = (
        "import sys\n"
        "from ct2_triton.client import SyncTranslationClient\n"
        "client = SyncTranslationClient(sys.argv[1], 'm', tokenizer=sys.argv[2])\n"
        "items = client.stream(['One.'] * 99, source='eng_Latn', targets='deu_Latn')\n"
        "print(next(items).position)\n"
    )
    command = [sys.executable, "-c", code, url, str(tokenizer_folder("nllb"))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S, check=False)
    assert (ended.returncode, ended.stdout) == (0, "0\n")


def test_a_call_that_comes_as_the_loop_stops_is_refused(
    tokenizer: Tokenizer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SyncTranslationClient(url, "m", tokenizer=tokenizer)
    client.translate(TEXT, **CALL)
    found: list[BaseException] = []

    def call() -> None:
        with pytest.raises(errors.InvalidCallError) as caught:
            client.translate(TEXT, **CALL)
        found.append(caught.value)

    late = threading.Thread(target=call, daemon=True)
    stop = client._loop.stop

    def stop_after_the_call() -> None:
        late.start()
        late.join(1)  # it waits for the loop, or was refused
        stop()

    monkeypatch.setattr(client._loop, "stop", stop_after_the_call)
    client.close()
    late.join(GUARD_S)
    assert "this client is closed" in str(found)


def test_threads_may_close_a_client_at_once_and_end_each_others_calls(tokenizer: Tokenizer) -> None:
    for _ in range(10):
        with serving_in_a_thread(FaultServer, hang) as (server, url):
            client = SyncTranslationClient(url, "m", tokenizer=tokenizer)
            found: list[BaseException | None] = []

            def note(work: Callable[[], object], found: list[BaseException | None] = found) -> None:
                try:
                    work()
                except BaseException as error:
                    found.append(error)
                else:
                    found.append(None)

            call = partial(client.translate, TEXT, **CALL)
            stream = partial(list, client.stream([TEXT], **CALL))
            threads = [_start(note, work) for work in (call, stream)]
            wait_until(lambda server=server: server.calls == 2)  # type: ignore[misc]
            threads += [_start(note, client.close) for _ in range(4)]
            for thread in threads:
                thread.join(GUARD_S)
            assert sorted(map(repr, found)) == [*2 * [repr(closed_error())], *4 * ["None"]]
            client.close()


def _start(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


FORK = """
import gc, os, sys
from ct2_triton.client import SyncTranslationClient
from ct2_triton.errors import InvalidCallError

url, folder, what = sys.argv[1:]
call = {"source": "eng_Latn", "targets": "deu_Latn", "timeout_s": 30}
client = SyncTranslationClient(url, "m", tokenizer=folder)
items = client.stream(["One."] * 99, **call)
if what == "used":
    client.translate("One.", **call)
reading, writing = os.pipe()
if not os.fork():
    said = []
    for work in (lambda: client.translate("One.", **call), lambda: next(items), client.connect):
        try:
            work()
        except InvalidCallError as error:
            said.append("make a client in each process" in str(error))
    own = SyncTranslationClient(url, "m", tokenizer=folder)
    try:
        said.append(own.translate("One.", **call).text)
    except InvalidCallError as error:
        said.append("close clients before the fork" in str(error))
    client.close()
    client.close()
    del client, items, work
    gc.collect()
    os.write(writing, repr(said).encode())
    os._exit(0)
os.close(writing)
print(os.read(reading, 999).decode(), client.translate("One.", **call).text)
client.close()
"""


@pytest.mark.parametrize(("what", "own"), [("used", "True"), ("unused", "'One.'")])
def test_a_forked_process_is_told_to_make_its_own_client(
    tokenizer_folder: TokenizerFolder, url: str, what: str, own: str
) -> None:
    """The parent's client goes on. gRPC does not work in the child of a process that uses it."""
    command = [sys.executable, "-c", FORK, url, str(tokenizer_folder("nllb")), what]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S, check=False)
    assert ended.stdout == f"[True, True, True, {own}] One.\n", ended.stderr


def test_a_client_goes_on_in_a_second_event_loop(tokenizer: Tokenizer, url: str) -> None:
    client = TranslationClient(url, "m", tokenizer=tokenizer)

    async def call() -> str:
        answer = await client.translate(TEXT, **CALL)
        return answer.text

    for _ in range(3):
        assert asyncio.run(call()) == TEXT
    asyncio.run(client.close())
    with pytest.raises(errors.InvalidCallError, match="closed"):
        asyncio.run(call())


def test_two_event_loops_at_once_are_refused(tokenizer: Tokenizer, url: str) -> None:
    client = TranslationClient(url, "m", tokenizer=tokenizer)

    async def call() -> None:
        await client.translate(TEXT, **CALL)

    async def both() -> None:
        await call()
        with pytest.raises(errors.InvalidCallError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, call())
        await call()
        await client.close()

    asyncio.run(both())
