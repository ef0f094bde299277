# SPDX-License-Identifier: Apache-2.0
"""Recognizers: how audio is read, and what a recognizer that hears only whole seconds gives."""

from __future__ import annotations

import io
import sys
import wave
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hear as hear_command
from ct2_triton.cli import main
from ct2_triton.errors import ClientError
from ct2_triton.live import SegmentUpdate
from recognizers import (
    SAMPLE_RATE,
    FasterWhisperRecognizer,
    PocketSphinxRecognizer,
    read_audio,
)
from recognizers.audio import AudioError, pieces

SAMPLES = np.arange(5000, dtype="<i2").tobytes()


def wav(rate: int = SAMPLE_RATE, channels: int = 1) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(SAMPLES)
    return file.getvalue()


def read(data: bytes) -> bytes:
    return b"".join(read_audio(io.BufferedReader(io.BytesIO(data))))  # type: ignore[arg-type]


def test_samples_come_from_a_wav_file_or_from_a_pipe() -> None:
    assert read(wav()) == read(SAMPLES) == SAMPLES
    assert read(b"") == b""
    assert read(SAMPLES + b"x") == SAMPLES  # half a sample


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (wav(rate=22050), "has 22050 samples a second of 16 bits in 1 channel"),
        (wav(channels=2), "in 2 channel"),
        (b"RIFF1234", "cannot be read"),
    ],
)
def test_other_audio_is_refused_with_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(AudioError, match=message) as refusal:
        read(data)
    assert "ffmpeg" in str(refusal.value)


@given(st.lists(st.binary(max_size=50)), st.integers(1, 20))
def test_audio_that_is_cut_anew_is_the_same_audio(audio: list[bytes], size: int) -> None:
    cut = list(pieces(audio, size))
    assert b"".join(cut) == b"".join(audio)
    assert [len(piece) for piece in cut[:-1]] == [size] * (len(cut) - 1)


class StandIn:
    """Hears what was said when: the audio's samples are the seconds since the start.

    Takes Whisper's place: what is said up to the end of the audio, each sentence a segment.
    """

    supported_languages = ("en", "de")

    def __init__(self, *said: tuple[float, float, str]) -> None:
        self.said = said
        self.asked: list[float] = []

    def transcribe(self, audio: Any, **options: Any) -> tuple[Any, None]:
        assert options["language"] == "en"
        start, end = float(audio[0]) * 32.768, float(audio[-1]) * 32.768
        self.asked.append(end - start)
        heard = [one for one in self.said if start < one[1] - 0.1 and one[0] < end - 0.1]
        return (self._segment(*one, start, end) for one in heard), None

    def _segment(self, begin: float, over: float, text: str, start: float, end: float) -> Any:
        words = text.split()
        share = min(1.0, (end - begin) / (over - begin))
        known = words[: max(1, round(share * len(words)))]
        return SimpleNamespace(text=" " + " ".join(known), end=min(over, end) - start)


def clock(seconds: float) -> list[bytes]:
    """Audio whose samples say the time, in thousandths."""
    samples = np.arange(round(seconds * SAMPLE_RATE)) * 1000 / SAMPLE_RATE
    return [samples.astype("<i2").tobytes()]


def hear(model: StandIn, seconds: float, **options: Any) -> list[SegmentUpdate]:
    recognizer = FasterWhisperRecognizer(model, language="en", **options)
    return list(recognizer.updates(clock(seconds)))


def test_whisper_is_asked_again_until_a_sentence_is_settled() -> None:
    said = StandIn(
        (0.5, 2.4, "Good morning to all."), (2.6, 5.4, "It rains in Oslo now."), (9, 11.5, "Bye.")
    )
    updates = hear(said, 12)
    finals = [update for update in updates if update.final]
    assert [(one.segment, one.text) for one in finals] == [
        ("1", "Good morning to all."), ("2", "It rains in Oslo now."), ("3", "Bye."),
    ]  # fmt: skip
    partial = [one.text for one in updates if one.segment == "2" and not one.final]
    assert len(partial) >= 2
    assert all("It rains in Oslo now.".startswith(text) for text in partial)
    assert all(one.time <= other.time for one, other in pairwise(updates))  # type: ignore[operator]
    assert max(said.asked) < 6  # what is settled is not asked for again


def test_a_sentence_without_an_end_is_ended_by_its_length() -> None:
    said = StandIn((0.5, 30, " ".join(["on"] * 60)))
    updates = hear(said, 20, longest_s=8.0)
    assert sum(update.final for update in updates) == 3
    assert max(said.asked) <= 8.01


def test_what_whisper_takes_back_ends_empty_and_it_hears_on() -> None:
    class Fickle(StandIn):
        def transcribe(self, audio: Any, **options: Any) -> tuple[Any, None]:
            found, info = super().transcribe(audio, **options)
            return ([] if len(self.asked) == 2 else found), info

    updates = hear(Fickle((0.2, 9, "a b c d e f"), (12, 14, "Good.")), 16)
    finals = [update.text for update in updates if update.final]
    assert finals[0] == ""
    assert finals[-1] == "Good."


def test_the_command_writes_updates_no_sooner_than_spoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []
    whisper = SimpleNamespace(WhisperModel=lambda name: StandIn((0.5, 2.4, name)))
    monkeypatch.setitem(sys.modules, "faster_whisper", whisper)
    clock_that_stands = SimpleNamespace(sleep=slept.append, monotonic=lambda: 0.0)
    monkeypatch.setattr(hear_command, "time", clock_that_stands)
    (tmp_path / "said").write_bytes(*clock(5))
    command = ["--recognizer", "faster-whisper", "--whisper", "Hello there."]
    assert (
        main("hear", "hear", [*command, "--language", "en", "--real-time", str(tmp_path / "said")])
        == 0
    )
    updates = [SegmentUpdate.from_json(line) for line in capsys.readouterr().out.splitlines()]
    assert [update.text for update in updates if update.final] == ["Hello there."]
    assert slept == [update.time for update in updates]
    assert slept[-1] > 2


def test_a_language_that_whisper_does_not_know_is_refused_and_a_good_one_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    whisper = SimpleNamespace(WhisperModel=lambda name: StandIn((0.5, 2.4, name)))
    monkeypatch.setitem(sys.modules, "faster_whisper", whisper)
    (tmp_path / "said").write_bytes(*clock(5))
    command = ["--recognizer", "faster-whisper", "--whisper", "Hello there."]
    said = str(tmp_path / "said")
    assert main("hear", "hear", [*command, "--language", "xx", said]) == 1
    refused = capfd.readouterr()
    assert refused.out == ""
    assert "language is 'xx'; this model of Whisper hears de, en; leave it out" in refused.err
    assert main("hear", "hear", [*command, "--language", "en", said]) == 0
    assert '"Hello there."' in capfd.readouterr().out


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("pocketsphinx", PocketSphinxRecognizer),
        ("faster-whisper", lambda: FasterWhisperRecognizer("tiny")),
    ],
)
def test_a_missing_package_is_named(package: str, make: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(ClientError, match=rf"{package} is not installed: pip install {package}"):
        make()
