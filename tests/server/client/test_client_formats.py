# SPDX-License-Identifier: Apache-2.0
"""ct2-translate reads and writes JSON lines and subtitles."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pysubs2
import pytest

from ct2_triton.subtitles import read_subtitles, write_subtitles
from server.client.conftest import Command
from support import forked
from support.commands import piped, run

Expected = Callable[[list[str]], list[str]]

SRT = """1
00:00:01,000 --> 00:00:02,500
How is <i>your</i> day,
old sailor?

2
01:00:03,125 --> 01:00:04,000
Good bye.
"""
VTT = """WEBVTT

NOTE for nobody

first
00:01.000 --> 00:02.500 align:left
How is <i>your</i> day,
old sailor?

01:00:03.125 --> 01:00:04.000
Good bye.
"""
TEXTS = ["How is your day, old sailor?", "Good bye."]
HALF = "half of \ud83d"
TIMES = [(1000, 2500), (3_603_125, 3_604_000)]


@pytest.mark.parametrize("suffix", ["srt", "vtt"])
@pytest.mark.parametrize("written", [SRT, VTT], ids=["from srt", "from vtt"])
def test_subtitles_keep_their_times(
    command: Command, expected: Expected, tmp_path: Path, written: str, suffix: str
) -> None:
    source = tmp_path / ("film.srt" if written == SRT else "film.vtt")
    source.write_text(f"\ufeff{written}", encoding="utf-8")
    output = tmp_path / f"film.de.{suffix}"

    assert run(*command("-i", source, "-o", output)).stderr == ""

    assert output.read_text(encoding="utf-8").startswith("WEBVTT" if suffix == "vtt" else "1\n")
    events = pysubs2.load(str(output), format_=suffix)
    assert [(event.start, event.end) for event in events] == TIMES
    assert [" ".join(event.plaintext.split()) for event in events] == [
        " ".join(text.split()) for text in expected(TEXTS)
    ]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {source.name, output.name, f".{output.name}.ct2-translate.json"}


def test_interrupted_subtitles_are_gone_on_with(
    command: Command, expected: Expected, tmp_path: Path
) -> None:
    texts = [f"Number {number}." for number in range(5)]
    times = [f"00:00:0{n},000 --> 00:00:0{n},900" for n in range(5)]
    source, output = tmp_path / "film.srt", tmp_path / "film.de.srt"
    cues = [f"{n + 1}\n{times[n]}\n{texts[n]}\n" for n in range(5)]
    source.write_text("\n".join(cues), encoding="utf-8")
    run(*command("-i", source, "-o", output))
    whole = output.read_bytes()

    # As a killed run leaves them: two lines, a half one, and what they are made of.
    output.unlink()
    record = tmp_path / ".film.de.srt.ct2-translate.json"
    made_of = json.loads(record.read_text(encoding="utf-8"))["made_of"]
    (tmp_path / "film.de.srt.partial.json").write_text(json.dumps(made_of), encoding="utf-8")
    record.unlink()
    two = "".join(f"{line}\n" for line in expected(texts[:2]))
    (tmp_path / "film.de.srt.partial").write_text(f"{two}Num", encoding="utf-8")
    run(*command("-i", source, "-o", output))

    assert output.read_bytes() == whole


def test_long_subtitles_have_several_lines(tmp_path: Path) -> None:
    source, output = tmp_path / "a.srt", tmp_path / "b.srt"
    source.write_text(SRT, encoding="utf-8")

    write_subtitles(source, ["word " * 20, ""], output, ".srt")

    lines = output.read_text(encoding="utf-8").split("\n\n")[0].splitlines()[2:]
    assert len(lines) > 2
    assert max(map(len, lines)) <= 42
    assert [text for text, _ in read_subtitles(output)] == ["word " * 19 + "word", ""]


def test_json_lines_keep_what_else_they_say(
    command: Command, expected: Expected, tmp_path: Path
) -> None:
    rows = [{"id": 7, "text": "One."}, "Two.", {"text": "Three.", "tags": ["a"]}]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "in.jsonl").write_text(text, encoding="utf-8")
    translated = expected(["One.", "Two.", "Three."])

    run(*command("--json", "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl"))
    piped = run(*command("--json", "--json-input"), text=text).stdout

    for written, place in ((tmp_path / "out.jsonl").read_text(), True), (piped, False):
        answers = [json.loads(line) for line in written.splitlines()]
        assert [answer["translations"][0]["text"] for answer in answers] == translated
        assert [answer["text"] for answer in answers] == ["One.", "Two.", "Three."]
        assert [answer.get("id") for answer in answers] == [7, None, None]
        assert answers[2]["tags"] == ["a"]
        assert ("file" in answers[0]) is place


def test_half_of_a_surrogate_pair_fails_its_line_alone(
    command: Command, expected: Expected, tmp_path: Path
) -> None:
    rows = [HALF, {"text": "One.", "note": HALF}, {"text": HALF, "id": 2}, "Two."]
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    done = run(*command("--json", "-i", source, "-o", output), code=1)

    assert f"{source}:1, deu_Latn: text that is not valid Unicode" in done.stderr
    answers = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    found = [answer["translations"][0] for answer in answers]
    assert [one.get("text") for one in found] == [
        None,
        *expected(["One."]),
        None,
        *expected(["Two."]),
    ]
    assert "not valid Unicode" in found[2]["error"]
    assert (answers[0]["text"], answers[1]["note"], answers[2]["id"]) == (HALF, HALF, 2)
    plain = run(*command("--json-input"), code=1, text=source.read_text()).stdout
    assert plain.splitlines() == ["", *expected(["One."]), "", *expected(["Two."])]


def test_subtitles_as_json_name_their_times(command: Command, tmp_path: Path) -> None:
    (tmp_path / "film.vtt").write_text(VTT, encoding="utf-8")
    result = run(*command("--json", "--to=de,fr", tmp_path / "film.vtt"))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["start_ms"], answer["end_ms"]) for answer in answers] == TIMES
    assert [answer["text"] for answer in answers] == TEXTS


def test_what_cannot_be_read_or_written_so_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text(SRT, encoding="utf-8")
    (tmp_path / "text.txt").write_text("One.\n", encoding="utf-8")
    (tmp_path / "no.srt").write_text("One.\nTwo.\n", encoding="utf-8")
    (tmp_path / "bytes.srt").write_bytes(SRT.replace("sailor", "s\xe4ilor").encode("latin-1"))

    def refused(*arguments: str | Path, text: str | None = None) -> str:
        return run(*command(*arguments), code=1, text=text).stderr

    assert "text.txt has no times" in refused("-i", tmp_path / "text.txt", "-o", tmp_path / "a.srt")
    one = refused("--json", "-i", tmp_path / "film.srt", "-o", tmp_path / "a.srt")
    assert "--json writes no subtitles" in one
    assert "no.srt holds no subtitles: their times are" in refused(tmp_path / "no.srt")
    assert "bytes.srt is not UTF-8: byte 61 is 0xe4" in refused(tmp_path / "bytes.srt")
    assert run(*command("--json-input"), text='"One."\n').stdout != ""


def test_a_malformed_line_of_json_fails_alone(
    command: Command, expected: Expected, tmp_path: Path
) -> None:
    rows = ['"One."', "Two.", "[" * 100_000, '{"sentence": "One."}', "", '{"text": 7}', '"Three."']
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(rows), encoding="utf-8")
    first, last = expected(["One.", "Three."])

    piped = run(*command("--json-input"), code=1, text=source.read_text())
    assert piped.stdout.splitlines() == [first, "", "", "", "", "", last]
    assert "line 2, deu_Latn: the line cannot be read as JSON (" in piped.stderr
    assert "line 3, deu_Latn: the line cannot be read as JSON (" in piped.stderr
    assert "line 5" not in piped.stderr  # a blank line is an empty text, as in other formats
    for number in (4, 6):
        assert (
            f"line {number}, deu_Latn: the line has no text: it must be a JSON string or"
            in piped.stderr
        )

    run(*command("--json", "-i", source, "-o", output), code=1)
    answers = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [answer["line"] for answer in answers] == [1, 2, 3, 4, 5, 6, 7]
    found = [answer["translations"][0] for answer in answers]
    assert [one.get("text") for one in found] == [first, None, None, None, "", None, last]
    assert "cannot be read as JSON" in found[1]["error"]
    assert answers[3]["sentence"] == "One."  # what the line says is there with its error
    assert answers[5]["input"] == {"text": 7}
    assert "text" not in answers[1]

    rows[1] = '"Two."'  # the text is another one: the command works again
    source.write_text("\n".join(rows[:2]), encoding="utf-8")
    run(*command("--json", "-i", source, "-o", output))
    assert len(output.read_text(encoding="utf-8").splitlines()) == 2


def test_a_number_that_json_lacks_fails_its_line_alone(command: Command) -> None:
    numbers = ("NaN", "[-Infinity]", "1e999", "1.5e3")
    rows = [f'{{"text": "One.", "a": {number}}}' for number in numbers]
    done = run(*command("--json", "--json-input"), code=1, text="\n".join(rows))

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    answers = [json.loads(row, parse_constant=no_constant) for row in done.stdout.splitlines()]
    found = [answer["translations"][0].get("error") for answer in answers]
    for error, number in zip(found, ("NaN", "-Infinity", "1e999"), strict=False):
        assert error == f"the line cannot be read as JSON ({number} is not a finite number)"
    assert found[3] is None
    assert answers[3]["a"] == 1500.0


def test_fields_with_the_names_of_answers_are_nested(command: Command) -> None:
    row = {"id": 7, "text": "One.", "line": 12, "translations": ["Un."], "file": "a", "input": 1}
    done = run(*command("--json", "--json-input"), text=f"{json.dumps(row)}\n")
    answer = json.loads(done.stdout)
    assert (answer["id"], answer["line"], answer["text"]) == (7, 1, "One.")
    assert answer["translations"][0]["target"] == "deu_Latn"
    assert answer["input"] == {"line": 12, "translations": ["Un."], "file": "a", "input": 1}


def test_the_version_that_answered_is_told(command: Command) -> None:
    done = run(*command("--json"), text="One.\n")
    assert json.loads(done.stdout)["translations"][0]["version"] == "1"


def test_an_interrupt_is_one_line(command: Command) -> None:
    with piped(*command()) as process:
        process.stdin.write("One.\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(600) == 130
        assert process.stderr.read() == "ct2-translate: interrupted\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_file_is_said_to_go_on(
    command: Command, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\n" * 2000)
    line = command("-i", source, "-o", output, "--max-in-flight", "1")
    with forked.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        while not (partial := tmp_path / "out.txt.partial").exists() or not partial.stat().st_size:
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(600) == code
        assert process.stderr is not None
        said = "ct2-translate: interrupted: the same command continues from here\n"
        assert process.stderr.read() == said
    run(*command("-i", source, "-o", output))
    assert len(output.read_text().splitlines()) == 2000
