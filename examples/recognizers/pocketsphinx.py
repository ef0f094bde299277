# SPDX-License-Identifier: Apache-2.0
"""PocketSphinx: a small recognizer with an English model in its package. It mishears a lot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.errors import ClientError
from ct2_triton.live.updates import SegmentUpdate
from recognizers.audio import SAMPLE_RATE, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class PocketSphinxRecognizer:
    """Recognize English with PocketSphinx, on a CPU and without a download.

    A segment is the speech between two pauses. All text is in lower case, without punctuation.
    """

    def __init__(self, speaker: str = "") -> None:
        """Load the model.

        Args:
            speaker: Prefix of the names of the segments, which are 1, 2, ...

        Raises:
            ClientError: The package is not installed.
        """
        try:
            from pocketsphinx import Decoder, Endpointer
        except ImportError as error:
            raise ClientError("pocketsphinx is not installed: pip install pocketsphinx") from error
        self._speaker = speaker
        self._decoder = Decoder(samprate=SAMPLE_RATE, loglevel="FATAL")
        self._pauses = Endpointer(sample_rate=SAMPLE_RATE)
        self._segment = 0
        self._text = ""

    def updates(self, audio: Iterable[bytes]) -> Iterator[SegmentUpdate]:
        """Recognize speech; blocks while it computes. May be called once.

        Args:
            audio: Samples, in pieces of any sizes (`read_audio`).

        Yields:
            An update whenever the text changes, and a final one at each pause. Times are in
            seconds of audio.
        """
        size, heard_s = self._pauses.frame_bytes, 0.0
        for frame in pieces(audio, size):
            was_speech = self._pauses.in_speech
            heard_s += self._pauses.frame_length * len(frame) / size
            if len(frame) == size:
                speech = self._pauses.process(frame)
            else:
                speech = self._pauses.end_stream(frame)
            if speech is not None:
                yield from self._hear(speech, heard_s, is_first=not was_speech)
        if self._pauses.in_speech:  # the audio ended with a whole frame
            yield from self._end(heard_s)

    def _hear(self, speech: bytes, heard_s: float, *, is_first: bool) -> Iterator[SegmentUpdate]:
        if is_first:
            self._segment += 1
            self._text = ""
            self._decoder.start_utt()
        self._decoder.process_raw(speech)
        if not self._pauses.in_speech:
            yield from self._end(heard_s)
        elif (text := self._hypothesis()) and text != self._text:
            self._text = text
            yield self._update(text, heard_s, final=False)

    def _end(self, heard_s: float) -> Iterator[SegmentUpdate]:
        self._decoder.end_utt()
        text = self._hypothesis()
        if text or self._text:  # else it was a noise
            yield self._update(text, heard_s, final=True)

    def _hypothesis(self) -> str:
        found = self._decoder.hyp()
        return found.hypstr if found else ""

    def _update(self, text: str, heard_s: float, *, final: bool) -> SegmentUpdate:
        name = f"{self._speaker}{self._segment}"
        return SegmentUpdate(name, text, final=final, time=round(heard_s, 3))
