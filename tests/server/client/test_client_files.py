# SPDX-License-Identifier: Apache-2.0
"""ct2-translate -i ... -o ...: a line for each line, whatever happens on the way."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from reliability.observe import settled
from server.client.conftest import Command, Prepared
from support import forked
from support.commands import run
from support.servers import MakeServer
from tiny_corpus import sentences


def test_each_line_has_one_line(
    command: Command, expected: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    lines = ["One.", "", "Two\u2028halves.", "  ", "\x0c", "The last has no end."]
    (tmp_path / "in.txt").write_text("\n".join(lines), encoding="utf-8")
    result = run(*command("-i", tmp_path / "in.txt", "-o", tmp_path / "new" / "out.txt"))
    assert (result.stdout, result.stderr) == ("", "")
    output = (tmp_path / "new" / "out.txt").read_bytes().decode()
    assert output.split("\n") == [*expected(lines), ""]
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {"out.txt", ".out.txt.ct2-translate.json"}


def test_a_killed_run_is_gone_on_with_and_nothing_is_twice_or_lost(
    command: Command,
    expected: Callable[[list[str]], list[str]],
    make_server: MakeServer,
    server_repository: Path,
    prepared: Prepared,
    tmp_path: Path,
) -> None:
    """On a server of its own: what is killed cancels its calls, which Triton may not survive."""
    model = prepared("nllb").name  # before the server looks for models
    server = make_server(server_repository)
    lines = [f"{number} {text}" for number, text in enumerate(sentences(1500, seed=3))]
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    part = tmp_path / "out.txt.partial"
    # A busy server may take longer than the second that is the default.
    whole = command("--url", server.grpc_url, "--retry-for", "300", "-i", source, "-o", output)
    slow = [*whole, "--max-in-flight", "4"]
    kills = 0
    for wanted in (1, 200, 500):
        with forked.Popen(slow, stderr=subprocess.PIPE) as process:
            while process.poll() is None and _lines_in(part) < wanted:
                time.sleep(0.002)
            kills += process.poll() is None
            process.kill()
        with suppress(OSError):  # of a server that has ended
            settled(server, model)
        if not server.is_alive():
            server.restart()
    assert kills == 3
    assert not output.exists()
    done = _lines_in(part)
    assert 500 <= done < 1500
    with part.open("ab") as file:
        file.write("ein zerrissenes W\u00f6".encode()[:-1])  # as a full disk leaves it
    run(*whole)
    assert output.read_text(encoding="utf-8").split("\n") == [*expected(lines), ""]
    assert not part.exists()


def _lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_several_files_go_to_a_folder_and_those_that_are_there_are_kept(
    command: Command, expected: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"File {name}.\n", encoding="utf-8")
    both = command("-i", tmp_path / "a.txt", "-i", tmp_path / "b.txt", "-o", tmp_path / "german")
    run(*both)
    for name in ("a.txt", "b.txt"):
        [text] = expected([f"File {name}."])
        assert (tmp_path / "german" / name).read_text(encoding="utf-8") == f"{text}\n"
    (tmp_path / "german" / "b.txt").unlink()
    again = run(*both)
    assert again.stderr == f"ct2-translate: {tmp_path}/german/a.txt is complete: nothing to do\n"
    assert (tmp_path / "german" / "b.txt").exists()


def test_a_line_that_fails_is_empty_and_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"One.\n{'word ' * 3000}\nTwo.\n", encoding="utf-8")
    result = run(*command("-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt"), code=1)
    assert result.stderr.startswith(f"ct2-translate: {tmp_path}/in.txt:2, deu_Latn: ")
    first, second, third, end = (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")
    assert (bool(first), second, bool(third), end) == (True, "", True, "")


def test_several_languages_are_written_as_json(command: Command, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("One.\nTwo.\n", encoding="utf-8")
    line = command("-i", tmp_path / "in.txt", "-o", tmp_path / "out.jsonl", "--to=de,fr")
    assert "needs --json" in run(*line, code=1).stderr
    run(*line, "--json")
    rows = [json.loads(row) for row in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["line"], row["text"], len(row["translations"])) for row in rows] == [
        (1, "One.", 2), (2, "Two.", 2),
    ]  # fmt: skip


def test_what_does_not_fit_together_is_refused(command: Command, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\nTwo.\n", encoding="utf-8")
    (tmp_path / "out.txt.partial").write_text("Eins.\n", encoding="utf-8")
    assert (
        "another text or other settings" in run(*command("-i", source, "-o", output), code=1).stderr
    )
    (tmp_path / "out.txt.partial").unlink()
    (tmp_path / "out.txt.partial.json").write_text("of a run that was killed at its end")
    assert "is also an input" in run(*command("-i", source, "-o", source), code=1).stderr
    assert "would both become" in run(*command("-i", source, source, "-o", tmp_path), code=1).stderr
    assert "name them with --input" in run(*command("-o", output), code=1).stderr
    assert "no such file" in run(*command("-i", tmp_path / "none", "-o", output), code=1).stderr
    run(*command("-i", source, "-o", output))


def test_progress_has_percent_and_the_time_left(command: Command, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("One.\nTwo.\nThree.\n", encoding="utf-8")
    terminal, side = pty.openpty()
    line = command("-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    forked.run(line, stderr=side, check=True)
    os.close(side)
    shown = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert "33 %, 1 of 3 lines, " in shown
    assert shown.rstrip().endswith("100 %, 3 of 3 lines, 0:00 left")
