# SPDX-License-Identifier: Apache-2.0
"""The same ct2-translate -i ... -o ... again: what failed, what changed, and two at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from server.client.conftest import Command, Prepared
from support import forked
from support.commands import run
from support.fault_server import FaultServer, echo, serving_in_a_thread
from support.waiting import wait_until
from tiny_corpus import sentences

LONG = "A long line. " * 9


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


class Picky(FaultServer):
    """Refuses long rows as long as it is told to; may keep all answers back."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.refuses = True
        self.waits = False

    async def _answer(self, server: FaultServer, request: Any, context: Any) -> Any:
        if self.refuses and len(request.raw_input_contents[0]) > 60:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the line is too long today")
        while self.waits:
            self.started.set()
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        return await echo(server, request, context)


@pytest.fixture
def picky(prepared: Prepared) -> Callable[[], Any]:
    """A context that gives such a server, and the command line of its client."""

    @contextmanager
    def serve() -> Iterator[tuple[Picky, Command]]:
        folder = str(prepared("nllb").tokenizer_folder)
        with serving_in_a_thread(Picky) as (server, url):

            def line(*arguments: str | Path) -> list[str]:
                start = [str(Path(sys.executable).with_name("ct2-translate")), "--url", url]
                what = ["--model=m", "--tokenizer", folder, "--from=en", "--to=de"]
                return [*start, *what, *map(str, arguments)]

            yield server, line

    return serve


@pytest.mark.parametrize("form", ["txt", "jsonl", "srt"])
def test_lines_that_failed_are_translated_by_the_next_run(
    picky: Any, tmp_path: Path, form: str
) -> None:
    texts = ["One.", LONG, "Two.", LONG + "x", "Three."]
    source, output, whole = (tmp_path / f"{name}.{form}" for name in ("in", "out", "whole"))
    if form == "srt":
        cues = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{t}\n" for n, t in enumerate(texts, 1)]
        source.write_text("\n".join(cues), encoding="utf-8")
    else:
        rows = texts if form == "txt" else list(map(json.dumps, texts))
        source.write_text("\n".join(rows), encoding="utf-8")
    with picky() as (server, command):
        json_too = ["--json"] if form == "jsonl" else []
        line = command("-i", source, "-o", output, *json_too)
        for _ in range(2):  # nothing is missing: only then it ends with 0
            said = run(*line, code=1).stderr
            assert f"{source}:2, deu_Latn: the line is too long today" in said
            assert f"{source}:4, deu_Latn: " in said
        server.refuses = False
        calls = server.calls
        run(*line)
        assert server.calls - calls == (5 if form == "srt" else 2)
        assert "is complete: nothing to do" in run(*line).stderr
        run(*command("-i", source, "-o", whole, *json_too))
    assert output.read_bytes() == whole.read_bytes()
    shown = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert shown == {source.name, output.name, whole.name}


def test_a_failure_before_an_interruption_is_not_forgotten(picky: Any, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(f"{LONG}\nOne.\nTwo.\n", encoding="utf-8")
    with picky() as (server, command):
        line = command("-i", source, "-o", output)
        server.waits = True
        with forked.Popen(line, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: (tmp_path / "out.txt.partial").exists())
            wait_until(lambda: (tmp_path / "out.txt.partial").read_bytes() == b"\n")
            process.kill()
        server.waits = False
        assert "is too long today" not in run(*line, code=1).stderr
        first, *_ = _lines(output)
        assert first == ""
        server.refuses = False
        run(*line)
        assert all(_lines(output)[:3])


def test_an_output_that_is_kept_leaves_what_a_run_of_other_settings_has_begun(
    picky: Any, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\nTwo.\n", encoding="utf-8")
    partial = tmp_path / "out.txt.partial"
    with picky() as (server, command):
        line = command("-i", source, "-o", output)
        run(*line)
        before = output.read_bytes()
        server.waits = True
        other = command("-i", source, "-o", output, "--beam-size", "2")
        with forked.Popen(other, stderr=subprocess.DEVNULL) as process:
            wait_until(partial.exists)
            wait_until(server.started.is_set)
            process.kill()
        server.waits = False
        assert "is complete: nothing to do" in run(*line).stderr
        assert partial.exists()
        assert output.read_bytes() == before
        assert "these have changed: options" in run(*other).stderr
        shown = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
        assert shown == {source.name, output.name}


def test_a_second_run_on_one_output_is_refused(picky: Any, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\nTwo.\n", encoding="utf-8")
    with picky() as (server, command):
        line = command("-i", source, "-o", output)
        server.waits = True
        with forked.Popen(line, stderr=subprocess.DEVNULL) as first:
            wait_until(server.started.is_set)
            said = run(*line, code=1).stderr
            assert f"another ct2-translate (process {first.pid}) is writing {output}" in said
            server.waits = False
            assert first.wait(60) == 0
        assert all(_lines(output)[:2])
        assert "is complete: nothing to do" in run(*line).stderr


def test_another_setting_text_or_glossary_translates_again(
    command: Command, expected: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("nothing\n", encoding="utf-8")
    texts = sentences(3, seed=9)

    def again(*arguments: str | Path) -> tuple[str, list[str]]:
        said = run(*command("-i", source, "-o", output, *arguments)).stderr
        return said, _lines(output)

    source.write_text("\n".join(texts), encoding="utf-8")
    assert again() == ("", [*expected(texts), ""])
    source.touch()
    said, german = again()
    assert said == f"ct2-translate: {output} is complete: nothing to do\n"
    said, french = again("--to=fr")
    assert f"{output} is translated again, because these have changed: targets" in said
    assert french != german
    for arguments, changed in (
        (["--from=fr"], "source, targets"),
        (["--beam-size=2"], "options, source"),
        (["--glossary", glossary], "glossary, options"),
        (["--glossary", glossary, "--keep=No"], "keep"),
    ):
        assert f"these have changed: {changed}" in again(*arguments)[0]
    glossary.write_text("nothing\tnichts\n", encoding="utf-8")
    assert "these have changed: glossary" in again("--glossary", glossary, "--keep=No")[0]
    again()
    source.write_text("\n".join([*texts[:2], "Another."]), encoding="utf-8")
    said, found = again()
    assert "these have changed: input" in said
    assert found == [*expected([*texts[:2], "Another."]), ""]


def test_another_version_of_the_model_translates_again(
    command: Command, server_repository: Path, prepared: Prepared, tmp_path: Path
) -> None:
    """What is known of the model here: its config decides, too."""
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\n", encoding="utf-8")
    line = command("-i", source, "-o", output)
    run(*line)
    config = server_repository / prepared("nllb").name / "config.pbtxt"
    before = config.read_bytes()
    try:
        config.write_bytes(before + b"\n# edited\n")
        assert "is complete: nothing to do" in run(*line).stderr
        config.write_bytes(before + b'parameters { key: "beam_size" value { string_value: "1" } }')
        assert "these have changed: model_checksum" in run(*line).stderr
    finally:
        config.write_bytes(before)
    assert "these have changed: model_checksum" in run(*line).stderr
    assert "is complete: nothing to do" in run(*line).stderr


def test_what_this_command_did_not_write_is_not_written_over(
    command: Command, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\n", encoding="utf-8")
    output.write_text("Mine.\n", encoding="utf-8")
    line = command("-i", source, "-o", output)
    assert (
        f"{output} exists, but there is no record of what it was translated from"
        in run(*line, code=1).stderr
    )
    assert output.read_text() == "Mine.\n"
    output.unlink()
    run(*line)
    output.write_text("Edited.\n", encoding="utf-8")
    said = run(*line).stderr
    assert f"{output} was changed since it was translated, and is kept" in said
    assert "is complete: nothing to do" in said
    said = run(*command("-i", source, "-o", output, "--to=fr"), code=1).stderr
    assert f"{output} was changed since it was translated" in said
    assert output.read_text() == "Edited.\n"


def test_a_run_that_was_killed_at_its_end_leaves_a_finished_output(
    command: Command, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\n", encoding="utf-8")
    line = command("-i", source, "-o", output)
    run(*line)
    record = tmp_path / ".out.txt.ct2-translate.json"
    record.rename(record.with_suffix(".pending"))  # the output has its name, its record has not
    assert "is complete: nothing to do" in run(*line).stderr
    assert record.exists()


def test_an_input_that_is_cut_meanwhile_is_not_taken_for_all_of_it(
    picky: Any, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    text = "".join(f"Line {number}.\n" for number in range(5000))
    source.write_text(text, encoding="utf-8")
    with picky() as (server, command):
        line = command("-i", source, "-o", output)
        server.waits = True
        with forked.Popen(line, stderr=subprocess.PIPE, text=True) as process:
            wait_until(server.started.is_set)
            source.write_text(text[:100], encoding="utf-8")
            server.waits = False
            said = process.communicate()[1]
        assert process.returncode == 1
        assert f"{source} was changed while it was translated" in said
        assert not output.exists()
        assert "remove it and" in run(*line, code=1).stderr
        source.write_text(text, encoding="utf-8")  # as it was
        run(*line)
        assert len(_lines(output)) == 5001
