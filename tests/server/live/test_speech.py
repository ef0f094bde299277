# SPDX-License-Identifier: Apache-2.0
"""Speech by espeak-ng, heard by PocketSphinx, into captions. What it mishears is the point."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import groupby, pairwise
from pathlib import Path

import aiohttp
import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.live import LiveTranslator, SegmentUpdate
from server.live.conftest import Start, finals
from support.recognizers import live_packages, speak

pytestmark = pytest.mark.server

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
HEAR = [sys.executable, str(EXAMPLES / "hear.py")]
SAID = ["The rain has stopped.", "The goal stands, and it is now three to three in Bruges."]
TARGETS = ["deu_Latn", "fra_Latn"]


def hear(*arguments: str, audio: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*HEAR, *arguments],
        input=audio,
        env=live_packages(),
        capture_output=True,
        check=False,
        timeout=600,
    )


def samples_of(file: Path, seconds: float) -> bytes:
    """The start of a .wav file, without its header."""
    return file.read_bytes()[44:][: 2 * round(16_000 * seconds)]


@pytest.fixture(scope="session")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    live_packages()
    file = tmp_path_factory.mktemp("speech") / "said.wav"
    speak(file, *SAID)
    return file


@pytest.fixture(scope="session")
def updates(speech: Path) -> list[SegmentUpdate]:
    """What PocketSphinx hears."""
    heard = hear(str(speech))
    assert heard.returncode == 0, heard.stderr.decode()
    return [SegmentUpdate.from_json(line) for line in heard.stdout.splitlines()]


async def test_what_is_heard_is_translated_as_it_would_be_offline(
    updates: list[SegmentUpdate], client: TranslationClient
) -> None:
    assert all(a.time <= b.time for a, b in pairwise(updates))  # type: ignore[operator]
    segments = {name: list(mine) for name, mine in groupby(updates, lambda one: one.segment)}
    assert list(segments) == ["1", "2"]
    assert sum(map(len, segments.values())) == len(updates)  # one after the other
    for mine in segments.values():
        assert [update.final for update in mine] == [False] * (len(mine) - 1) + [True]
        assert len({update.text for update in mine}) > 2
        assert len(mine[-1].text.split()) >= 3
    revised = [
        (one, other)
        for one, other in pairwise(updates)
        if one.segment == other.segment and not other.text.startswith(one.text)
    ]
    assert revised  # it thinks again, as recognizers do

    async def spoken():  # noqa: ANN202
        for update in updates:
            yield update

    live = LiveTranslator(client, source="en", targets=TARGETS)
    captions = [caption async for caption in live.run(spoken())]
    texts = [mine[-1].text for mine in segments.values()]
    truth = await client.translate(texts, source="en", targets=TARGETS)
    assert {(c.segment, c.target): c.transcript for c in captions if c.final} == {
        (name, one.target): one.text
        for name, row in zip(segments, truth, strict=True)
        for one in row
    }


async def test_a_microphone_speaks_to_an_event(
    speech: Path, updates: list[SegmentUpdate], start: Start
) -> None:
    """Samples without a header on standard input; viewers get what the file would have given."""
    password = speech.with_name("password")
    password.write_text("k\n")
    live = start("--speaker-password-file", str(password))
    first = next(update for update in updates if update.final)
    samples = samples_of(speech, (first.time or 0.0) + 0.1)
    event = ["--event", live.url, "--speaker", "anna"]
    kept_out = hear(*event, audio=samples)
    assert kept_out.returncode == 1
    assert b"hear: the event at" in kept_out.stderr
    assert b"401" in kept_out.stderr
    done = hear(*event, "--password-file", str(password), audio=samples)
    assert done.returncode == 0, done.stderr.decode()
    async with (
        aiohttp.ClientSession() as web,
        web.ws_connect(f"{live.url}/captions?to=source") as viewer,
    ):
        found = await finals(viewer, {"source"})
    assert found["source"]["segment"] == "anna/1"
    assert found["source"]["transcript"] == first.text
    refused = hear(
        *event, "--password-file", str(password), audio=samples
    )  # the same segment once more
    assert refused.returncode == 1
    assert b"segment 'anna/1' is final already" in refused.stderr


def test_audio_of_another_rate_and_no_audio(speech: Path) -> None:
    own = speech.with_name("own-said.wav")  # espeak-ng's own rate
    refused = hear(str(own))
    assert refused.returncode == 1
    assert b"22050 samples a second" in refused.stderr
    assert b"Traceback" not in refused.stderr
    assert b"cannot read" in hear("nothing.wav").stderr
    assert hear(audio=b"").stdout == b""
    assert hear(audio=samples_of(speech, 2.5)).stdout


CHECK = """
import inspect, json, sys, types
sys.modules["av"] = types.ModuleType("av")  # reads files of other kinds, which nobody does here
from ct2_triton.errors import ClientError
from recognizers import FasterWhisperRecognizer
refused = []
for model in "huge", sys.argv[1]:
    try:
        FasterWhisperRecognizer(model)
    except ClientError as error:
        refused.append(str(error))
from faster_whisper import WhisperModel
from faster_whisper.transcribe import Segment
parameters = inspect.signature(WhisperModel.transcribe).parameters
print(json.dumps([refused, list(parameters), list(Segment.__annotations__),
                  list(inspect.signature(WhisperModel).parameters),
                  isinstance(WhisperModel.supported_languages, property)]))
"""


def test_faster_whisper_has_what_the_adapter_uses(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHECK, str(tmp_path)]
    done = subprocess.run(
        command, cwd=EXAMPLES, env=live_packages(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    (unknown, empty), options, segment, model, has_languages = json.loads(done.stdout)
    assert has_languages
    assert unknown.startswith("Whisper's model 'huge' cannot be loaded: Invalid model size 'huge'")
    assert f"Whisper's model '{tmp_path}' cannot be loaded: Unable to open file" in empty
    assert {"audio", "language", "condition_on_previous_text", "vad_filter"} <= set(options)
    assert {"text", "end"} <= set(segment)
    assert model[0] == "model_size_or_path"
