# SPDX-License-Identifier: Apache-2.0
r"""Hear speech, and write the updates that live captions take, a JSON object a line.

Speech is a .wav file, or samples from a microphone: 16,000 a second, 16 bits, one channel. The
updates go to standard output, or as a speaker to a ct2-live that runs:

    python examples/hear.py talk.wav | ct2-live --stdio --model demo --from en --to de
    arecord -q -t raw -r 16000 -f S16_LE | \
      python examples/hear.py --event http://127.0.0.1:8090
    python examples/hear.py --recognizer faster-whisper --whisper small --language en talk.wav
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import secret
from ct2_triton.cli import main
from ct2_triton.errors import ClientError
from recognizers import (
    FasterWhisperRecognizer,
    PocketSphinxRecognizer,
    read_audio,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from ct2_triton.live.updates import SegmentUpdate

_LOG = logging.getLogger("ct2_triton.hear")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    recognizers = ("pocketsphinx", "faster-whisper")
    add("audio", nargs="?", type=Path, metavar="FILE", help="the speech (default: stdin)")
    add("--recognizer", choices=recognizers, default=recognizers[0], help="(default: %(default)s)")
    add("--whisper", default="small", metavar="MODEL", help="name or folder (default: %(default)s)")
    add("--language", help="what is spoken, for Whisper (default: it finds out)")
    add("--real-time", action="store_true", help="give updates of a file no sooner than spoken")
    add("--event", metavar="URL", help="the ct2-live to speak to (default: write to stdout)")
    add("--speaker", default="speaker", help="name at the event (default: %(default)s)")
    add("--password-file", type=secret, metavar="FILE", help="password of speakers at the event")


def run(args: argparse.Namespace) -> int:
    """Recognize speech until it ends.

    Returns:
        0, or 1 if the event refused an update.

    Raises:
        Ct2TritonError: Recognition or sending cannot start or continue.
    """
    with ExitStack() as stack:
        if args.audio is None:
            file = sys.stdin.buffer
        else:
            try:
                file = stack.enter_context(args.audio.open("rb"))
            except OSError as error:
                raise ClientError(f"cannot read {args.audio}: {error.strerror}") from error
        updates = _recognizer(args).updates(read_audio(file))  # type: ignore[arg-type]
        if args.real_time:
            updates = _in_real_time(updates)
        if args.event:
            return asyncio.run(_speak(args, updates))
        for update in updates:
            print(_json(update), flush=True)
    return 0


def _recognizer(args: argparse.Namespace) -> PocketSphinxRecognizer | FasterWhisperRecognizer:
    if args.recognizer == "pocketsphinx":
        return PocketSphinxRecognizer()
    return FasterWhisperRecognizer(args.whisper, language=args.language)


def _in_real_time(updates: Iterable[SegmentUpdate]) -> Iterator[SegmentUpdate]:
    start = time.monotonic()
    for update in updates:
        time.sleep(max(0.0, start + (update.time or 0.0) - time.monotonic()))
        yield update


async def _speak(args: argparse.Namespace, updates: Iterable[SegmentUpdate]) -> int:
    """Send updates to an event, as one of its speakers."""
    try:
        import aiohttp
    except ImportError as error:
        raise ClientError(
            "--event needs an extra: pip install 'ct2-triton-client[live]'"
        ) from error
    headers = {"Authorization": f"Bearer {args.password_file}"} if args.password_file else {}
    place, query = f"{args.event.rstrip('/')}/speak", {"speaker": args.speaker}
    refused = 0
    try:
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(place, params=query, heartbeat=20) as socket,
        ):
            heard = iter(updates)
            while update := await asyncio.to_thread(next, heard, None):
                await socket.send_str(_json(update))
                answer = await socket.receive_json()
                if answer["type"] == "refused":
                    refused += 1
                    _LOG.error("segment %s: %s", update.segment, answer["error"])
    except (aiohttp.ClientError, OSError, TypeError) as error:
        raise ClientError(f"the event at {args.event} is not there: {error}") from error
    return 1 if refused else 0


def _json(update: SegmentUpdate) -> str:
    members = {name: value for name, value in asdict(update).items() if value is not None}
    return json.dumps(members, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main("hear", "hear"))
