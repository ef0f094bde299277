# SPDX-License-Identifier: Apache-2.0
"""Speech as samples: 16,000 a second, 16 bits each, one channel."""

from __future__ import annotations

import wave
from typing import TYPE_CHECKING

from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader

SAMPLE_RATE = 16_000
SAMPLE_BYTES = 2
_PIECE_BYTES = SAMPLE_RATE * SAMPLE_BYTES // 10
_CONVERT = "convert it: ffmpeg -i FILE -ar 16000 -ac 1 -sample_fmt s16 speech.wav"


class AudioError(ClientError):
    """The audio is of another kind: convert it as the message says."""


def read_audio(file: BufferedReader) -> Iterator[bytes]:
    """Read speech: a .wav file, or samples without a header.

    Args:
        file: The file, read from its current position; it may be a pipe.

    Yields:
        Samples, a tenth of a second at a time.

    Raises:
        AudioError: The .wav file has another rate, another width or several channels.
    """
    if file.peek(4)[:4] == b"RIFF":
        yield from _read_wave(file)
        return
    while samples := file.read(_PIECE_BYTES):
        yield samples[: len(samples) - len(samples) % SAMPLE_BYTES]


def pieces(audio: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Divide audio into pieces of one size; the last may be shorter.

    Args:
        audio: Pieces of any sizes.
        size: Bytes of a piece.
    """
    kept = b""
    for piece in audio:
        kept += piece
        whole = len(kept) - len(kept) % size
        yield from (kept[at : at + size] for at in range(0, whole, size))
        kept = kept[whole:]
    if kept:
        yield kept


def _read_wave(file: BufferedReader) -> Iterator[bytes]:
    try:
        wav = wave.open(file, "rb")  # noqa: SIM115 - the file is the caller's to close
    except (wave.Error, EOFError) as error:
        raise AudioError(f"the .wav file cannot be read: {error}; {_CONVERT}") from error
    rate, width, channels = wav.getframerate(), wav.getsampwidth(), wav.getnchannels()
    if (rate, width, channels) != (SAMPLE_RATE, SAMPLE_BYTES, 1):
        raise AudioError(
            f"the .wav file has {rate} samples a second of {8 * width} bits in {channels} "
            f"channel(s); {SAMPLE_RATE} of {8 * SAMPLE_BYTES} bits in 1 are needed: {_CONVERT}"
        )
    while samples := wav.readframes(_PIECE_BYTES // SAMPLE_BYTES):
        yield samples
