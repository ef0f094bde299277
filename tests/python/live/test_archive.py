# SPDX-License-Identifier: Apache-2.0
"""The journal of an event that did not end: each final comes back, whatever its text is."""

from __future__ import annotations

import asyncio
import json
import resource
from pathlib import Path

import pytest

from ct2_triton.errors import ClientError
from ct2_triton.live import Caption
from ct2_triton.live.archive import Archive, SubtitleFiles
from ct2_triton.live.cues import CueLimits
from ct2_triton.live.hub import SOURCE, Hub

LIMITS = CueLimits()


def say(hub: Hub, number: int, text: str) -> None:
    transcript = Caption(f"anna/{number}", SOURCE, text, "", True, 1, text)
    hub.put(transcript, float(number))


def crash(folder: Path, texts: list[str]) -> None:
    """Leaves the journal of an event with these finals."""
    hub, archive = Hub(len(texts)), Archive(folder, LIMITS)
    archive.begin(hub, is_new=False)
    for number, text in enumerate(texts):
        say(hub, number, text)
    archive.close()


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\r\n", "\r"])
def test_a_final_with_any_end_of_line_is_in_the_event_that_goes_on(
    end: str, tmp_path: Path
) -> None:
    crash(tmp_path, ["One.", f"Two.{end}Three.", "Four."])
    hub, archive = Hub(), Archive(tmp_path, LIMITS)
    assert archive.begin(hub, is_new=False) is not None
    said = [entry.caption.transcript for entry in hub.finals(SOURCE)]
    assert said == ["One.", f"Two.{end}Three.", "Four."]
    archive.end(hub)
    archive.close()
    assert "Three." in (tmp_path / "source.srt").read_text(encoding="utf-8")


def test_a_viewer_misses_nothing_after_two_crashes_without_a_final_between(tmp_path: Path) -> None:
    crash(tmp_path, ["One."])
    hub, archive = Hub(), Archive(tmp_path, LIMITS)
    archive.begin(hub, is_new=False)
    for revision in range(1, 4):
        hub.put(Caption("anna~2/1", SOURCE, "", "Two", False, revision), 1.0)
    seen = hub.message(hub.since(0, [SOURCE])[-1])
    archive.close()
    hub, archive = Hub(), Archive(tmp_path, LIMITS)
    archive.begin(hub, is_new=False)
    say(hub, 3, "Three.")
    archive.close()
    missed = hub.since(hub.position(json.loads(seen)["id"]), [SOURCE])
    assert [entry.caption.transcript for entry in missed] == ["Three."]


def test_a_new_event_writes_all_that_the_journal_of_a_long_one_has(tmp_path: Path) -> None:
    crash(tmp_path, ["First.", *["Yes."] * 20_001])
    archive = Archive(tmp_path, LIMITS)
    assert archive.begin(Hub(), is_new=True) is None
    archive.close()
    subtitles = (tmp_path / "source.srt").read_text(encoding="utf-8")
    assert subtitles.count("Yes.") == 20_001
    assert "First." in subtitles


def test_a_full_disk_leaves_no_part_of_the_subtitles_and_keeps_the_journal(tmp_path: Path) -> None:
    crash(tmp_path, ["One.", "Two. " * 4000])
    hub, archive = Hub(), Archive(tmp_path, LIMITS)
    archive.begin(hub, is_new=False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    try:
        with pytest.raises(ClientError, match=r"source\.vtt: File too large"):
            archive.end(hub)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert {path.name for path in tmp_path.iterdir()} == {".ct2-live.jsonl", ".ct2-live.lock"}
    archive.end(hub)
    archive.close()
    assert "Two." in (tmp_path / "source.vtt").read_text(encoding="utf-8")


def test_the_subtitles_have_what_viewers_no_longer_get(tmp_path: Path) -> None:
    """Of three processes; a translation that came later replaces an error."""
    for process in range(3):
        hub, archive = Hub(max_entries=4), Archive(tmp_path, LIMITS)
        archive.begin(hub, is_new=False)
        for number in range(10 * process, 10 * process + 10):
            say(hub, number, f"Number {number}.")
            failed = process == 0 and number == 0
            text, error = ("", "no answer") if failed else (f"Nummer {number}.", None)
            german = Caption(f"anna/{number}", "de", text, "", True, 1, text, error=error)
            hub.put(german, float(number))
        if process == 1:
            late = Caption("anna/0", "de", "Nummer 0.", "", True, 2, "Nummer 0.")
            hub.put(late, 0.0)
        if process < 2:
            archive.close()
    archive.end(hub)
    archive.close()
    assert len(hub.entries()) == 4
    for language, word in (("source", "Number"), ("de", "Nummer")):
        lines = (tmp_path / f"{language}.srt").read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if word in line] == [f"{word} {i}." for i in range(30)]
    assert not (tmp_path / ".ct2-live.jsonl").exists()


def test_the_subtitles_have_finals_that_a_full_disk_kept_from_the_journal(tmp_path: Path) -> None:
    hub, archive = Hub(), Archive(tmp_path, LIMITS)
    archive.begin(hub, is_new=False)
    say(hub, 1, "One.")
    hub.on_final = lambda _: None
    say(hub, 2, "Two.")
    archive.end(hub)
    archive.close()
    assert (tmp_path / "source.srt").read_text(encoding="utf-8").count("-->") == 2


async def test_subtitles_of_an_event_are_written_once_for_each_new_final() -> None:
    """Of 20,000 captions they take half a second, and viewers ask for them at any time."""
    hub = Hub()
    files = SubtitleFiles(hub, LIMITS)
    say(hub, 1, "One.")
    first, beside = await asyncio.gather(*(files.text(SOURCE, "srt") for _ in range(2)))
    again = await files.text(SOURCE, "srt")
    assert first is beside
    assert first is again  # the same object: nothing was written anew
    say(hub, 5, "Two.")
    longer = await files.text(SOURCE, "srt")
    assert "Two." not in first
    assert "Two." in longer
