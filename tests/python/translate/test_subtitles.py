# SPDX-License-Identifier: Apache-2.0
"""Files of subtitles: what players take for markup, and lines of scripts without spaces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ct2_triton.errors import ClientError
from ct2_triton.subtitles import read_subtitles, write_subtitles

TIMES = "00:00:01,000 --> 00:00:02,500"


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.srt"
    path.write_text(f"1\n{TIMES}\nOne.\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_a_player_shows_what_was_translated(film: Path, suffix: str) -> None:
    """Braces were taken for markup, and what stood in them was lost; a `<` hid the rest in VTT."""
    output = film.with_name(f"out{suffix}")
    write_subtitles(film, ["Press {Enter} & say 1 < 2, Tom &amp; Jerry"], output, suffix)
    [(text, _)] = read_subtitles(output)
    assert text == "Press (Enter) & say 1 < 2, Tom &amp; Jerry"
    assert ("say 1 &lt; 2" in output.read_text(encoding="utf-8")) == (suffix == ".vtt")


def test_the_entities_of_web_vtt_are_read(film: Path) -> None:
    path = film.with_name("film.vtt")
    path.write_text(
        f"WEBVTT\n\n{TIMES.replace(',', '.')}\nTom &amp; Jerry &lt;3\n", encoding="utf-8"
    )
    assert [text for text, _ in read_subtitles(path)] == ["Tom & Jerry <3"]


def test_lines_of_scripts_without_spaces_are_as_wide_as_others(film: Path) -> None:
    output = film.with_name("out.srt")
    write_subtitles(film, ["售票处五点四十五分开门" * 4], output, ".srt")
    lines = output.read_text(encoding="utf-8").splitlines()[2:]
    assert [len(line) for line in lines] == [21, 21, 2]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_advice_on_another_encoding_is_of_that_encoding(film: Path, encoding: str) -> None:
    film.write_text(f"1\n{TIMES}\nÜber.\n", encoding=encoding)
    with pytest.raises(ClientError, match=r"not UTF-8: byte \d+ is 0x") as caught:
        read_subtitles(film)
    assert ("iconv -f UTF-16 " in str(caught.value)) == (encoding == "utf-16")
    film.write_text(f"1\n{TIMES}\nÜber.\n", encoding="utf-8")
    assert [text for text, _ in read_subtitles(film)] == ["Über."]


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("film.srt", "00:00:04,000 -->"),
        ("film.srt", "--> 00:00:05,000"),
        ("film.srt", "00:00:04 --> 00:00:05"),
        ("film.srt", "00:00:04,0"),
        ("film.srt", "100:00:01,000 --> 100:00:02,000"),
        ("film.vtt", "100:00:01.000 --> 100:00:02.000"),
        ("film.vtt", "00:04.000 -->"),
        ("film.vtt", "00:00:04,000 --> 00:00:05,000"),
    ],
)
def test_a_time_that_would_be_lost_or_changed_is_refused(
    name: str, times: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    good = "00:00:01.000 --> 00:00:02.000" if name == "film.vtt" else TIMES
    head = "WEBVTT\n\n" if name == "film.vtt" else ""
    path.write_text(f"{head}{good}\nOne.\n\n{times}\nGoal!\n", encoding="utf-8")
    with pytest.raises(
        ClientError, match=re.escape(f"{path}:{6 if head else 4}: {times!r} is not")
    ):
        read_subtitles(path)
    path.write_text(f"{head}{good}\nAt 12:30:45,\nA --> B\n12:30.\n", encoding="utf-8")
    assert read_subtitles(path)[0][0] == "At 12:30:45, A --> B 12:30."


def test_settings_after_times_are_read(tmp_path: Path) -> None:
    path = tmp_path / "film.vtt"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000 align:start\nOne.\n", encoding="utf-8")
    assert read_subtitles(path) == [("One.", {"start_ms": 1000, "end_ms": 2000})]


def texts_of(tmp_path: Path, name: str, content: str) -> list[str]:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return [text for text, _ in read_subtitles(path)]


def test_what_a_player_of_web_vtt_does_not_show_is_not_translated(tmp_path: Path) -> None:
    """Identifiers, as meetings are exported with, were taken for text of the cue before."""
    times = TIMES.replace(",", ".")
    content = (
        "WEBVTT - a meeting\n\nSTYLE\n::cue { color: lime }\n\n"
        f"chapter one\n{times}\n<v Ann><c.loud>One.</c></v>\n<00:00:02.000>Two.\n\n"
        f"NOTE not spoken\n\n4f6a-b2/17-0\n{times}\nThree.\n\nNOTE at the end\n"
    )
    assert texts_of(tmp_path, "meeting.vtt", content) == ["One. Two.", "Three."]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_line_that_is_only_a_number_is_text(tmp_path: Path, line_end: str) -> None:
    def of(name: str, *lines: str) -> list[str]:
        return texts_of(tmp_path, name, line_end.join(lines))

    times, dots = TIMES, TIMES.replace(",", ".")
    assert of("a.srt", "1", times, "It was", "1984", "", "2", times, "In", "1985") == [
        "It was 1984",
        "In 1985",
    ]
    assert of("b.srt", times, "1984", "", times, "1985") == ["1984", "1985"]  # without numbers
    assert of("c.srt", "1", times, "", "2", times, "One.", "3", times, "Two.", "", "4") == [
        "",
        "One.",
        "Two. 4",
    ]
    assert of("d.srt", "1", times, "One.", "", "of two lines", "", "2", "", times, "Two.") == [
        "One. of two lines",
        "Two.",
    ]
    assert of("e.vtt", "WEBVTT", "", "1", dots, "In", "1984", "", "2", dots, "1985", "") == [
        "In 1984",
        "1985",
    ]


@pytest.mark.parametrize("name", ["film.srt", "film.vtt"])
def test_only_markup_is_left_out(tmp_path: Path, name: str) -> None:
    times = TIMES if name == "film.srt" else f"WEBVTT\n\n{TIMES.replace(',', '.')}"
    text = r"{\an8}<i>See</i> <font color=red>C:\notes\home</font>, {laughs} I <3 it, 1 < 2 > 0"
    assert texts_of(tmp_path, name, f"{times}\n{text}\n") == [
        r"See C:\notes\home, {laughs} I <3 it, 1 < 2 > 0"
    ]


@pytest.mark.parametrize("name", ["film.srt", "film.vtt"])
def test_long_lines_of_open_tags_are_read(tmp_path: Path, name: str) -> None:
    """pysubs2 took quadratic time for them."""
    times = TIMES if name == "film.srt" else f"WEBVTT\n\n{TIMES.replace(',', '.')}"
    text = "<i " * 300_000 + "{" * 300_000 + "< " * 300_000
    [read] = texts_of(tmp_path, name, f"{times}\n{text}\n")
    assert read == " ".join(text.split())


def test_short_fractions_are_fractions(tmp_path: Path) -> None:
    path = tmp_path / "film.vtt"
    path.write_text("WEBVTT\n\n00:01.50 --> 1:00:02.000\nOne.\n", encoding="utf-8")
    assert read_subtitles(path) == [("One.", {"start_ms": 1500, "end_ms": 3_602_000})]
