# SPDX-License-Identifier: Apache-2.0
"""faster-whisper: Whisper on CTranslate2, asked again and again about the newest seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ct2_triton.errors import ClientError, UnknownLanguageError
from ct2_triton.live.updates import SegmentUpdate
from recognizers.audio import SAMPLE_BYTES, SAMPLE_RATE, pieces

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    import numpy.typing as npt

_SAMPLE_MAX = 32768.0


class FasterWhisperRecognizer:
    """Recognize any language that Whisper supports.

    Whisper cannot process a stream. It transcribes all audio that is not yet final again for each
    update. Text is final when Whisper has ended its segment and more speech or a pause followed.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - a type of an optional package
        *,
        language: str | None = None,
        speaker: str = "",
        step_s: float = 1.0,
        pause_s: float = 1.0,
        longest_s: float = 24.0,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Keep the settings.

        Args:
            model: A `faster_whisper.WhisperModel`, or the name of one, or the path of its folder.
            language: What is spoken, as Whisper calls it ("en"); None: Whisper finds out.
            speaker: Prefix of the names of the segments, which are 1, 2, ...
            step_s: Seconds of new audio between two transcriptions.
            pause_s: Seconds without speech that end a segment.
            longest_s: Seconds after which a segment ends in any case; Whisper takes at most 30.
            **options: Further options of `WhisperModel.transcribe`.

        Raises:
            ClientError: The package is not installed, there is no such model, or it does not know
                the language.
        """
        self._model = _load(model) if isinstance(model, str) else model
        _check_language(language, self._model.supported_languages)
        self._options = {
            "language": language,
            "condition_on_previous_text": False,  # so that a mistake does not carry over
            "vad_filter": True,  # Whisper invents text in silence
            **options,
        }
        self._speaker = speaker
        self._step_s, self._pause_s, self._longest_s = step_s, pause_s, longest_s
        self._segment = 1
        self._text = ""

    def updates(self, audio: Iterable[bytes]) -> Iterator[SegmentUpdate]:
        """Recognize speech; blocks while it computes.

        Args:
            audio: Samples, in pieces of any sizes (`read_audio`).

        Yields:
            An update whenever the text changes, and a final one at each end. Times are in seconds
            of audio.
        """
        samples, heard_s = np.zeros(0, np.float32), 0.0
        step = max(1, round(self._step_s * SAMPLE_RATE))
        for piece in pieces(audio, step * SAMPLE_BYTES):
            new = np.frombuffer(piece, "<i2").astype(np.float32) / _SAMPLE_MAX
            samples = np.concatenate([samples, new])
            heard_s += len(new) / SAMPLE_RATE
            left_s = yield from self._hear(samples, heard_s, is_last=False)
            samples = samples[round(left_s * SAMPLE_RATE) :]
        if len(samples):
            yield from self._hear(samples, heard_s, is_last=True)

    def _hear(
        self, samples: npt.NDArray[np.float32], heard_s: float, *, is_last: bool
    ) -> Generator[SegmentUpdate, None, float]:
        """Transcribe the samples, and yield updates for changed text.

        Returns:
            Seconds at the start of the samples whose text is final.
        """
        found, _ = self._model.transcribe(samples, **self._options)
        length_s, settled_s = len(samples) / SAMPLE_RATE, 0.0
        said = [one for one in found if one.text.strip()]
        for number, one in enumerate(said, start=1):
            text = one.text.strip()
            over = is_last or number < len(said) or one.end + self._pause_s <= length_s
            if over or length_s >= self._longest_s:
                yield self._update(text, heard_s, final=True)
                settled_s = min(one.end, length_s)
            elif text != self._text:
                self._text = text
                yield self._update(text, heard_s, final=False)
        if length_s >= self._longest_s:
            return length_s
        if said:
            return settled_s
        if self._text:  # Whisper now finds no speech there
            yield self._update("", heard_s, final=True)
        return max(0.0, length_s - self._step_s)  # a word may have begun

    def _update(self, text: str, heard_s: float, *, final: bool) -> SegmentUpdate:
        name = f"{self._speaker}{self._segment}"
        if final:
            self._segment += 1
            self._text = ""
        return SegmentUpdate(name, text, final=final, time=round(heard_s, 3))


def _check_language(language: str | None, known: Sequence[str]) -> None:
    if language is not None and language not in known:
        raise UnknownLanguageError(
            f"language is {language!r}; this model of Whisper hears {', '.join(sorted(known))}; "
            "leave it out, and Whisper finds out"
        )


def _load(name: str) -> Any:  # noqa: ANN401
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise ClientError("faster-whisper is not installed: pip install faster-whisper") from error
    try:
        return WhisperModel(name)
    except (OSError, RuntimeError, ValueError) as error:  # an unknown name, no hub, other files
        raise ClientError(f"Whisper's model {name!r} cannot be loaded: {error}") from error
