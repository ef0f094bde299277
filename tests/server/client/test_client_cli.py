# SPDX-License-Identifier: Apache-2.0
"""ct2-translate as a process, against the live server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.client import SyncTranslationClient
from server.helpers import Connection
from support import commands, forked
from support.commands import piped
from support.ports import free_port
from support.waiting import wait_until
from tiny_corpus import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from ct2_triton.serve import TritonServer
    from server.client.conftest import Prepared
    from support.servers import MakeServer

Command = list[str]
SHORT = ["--option", "max_decoding_length=8"]


@pytest.fixture
def command(
    server: TritonServer, server_repository: Path, prepared: Prepared
) -> Callable[..., Command]:
    """The command line that translates English with the tiny NLLB model."""

    def line(*arguments: str, to: str = "deu_Latn,fra_Latn") -> Command:
        start = [str(Path(sys.executable).with_name("ct2-translate"))]
        place = ["--url", server.grpc_url, "--model-repository", str(server_repository)]
        model = ["--model", prepared("nllb").name, "--from", "eng_Latn", "--to", to]
        return [*start, *model, *place, *SHORT, *arguments]

    return line


def run(command: Command, text: str = "") -> subprocess.CompletedProcess[str]:
    return commands.run(*command, code=None, text=text)


def has_model(server: TritonServer, name: str) -> bool:
    try:
        return bool(Connection(server.grpc_url).raw.is_model_ready(name))
    except InferenceServerException:  # it has hung up
        return False


@pytest.fixture
def expected(
    server: TritonServer, server_repository: Path, prepared: Prepared
) -> Callable[[str, str], str]:
    """A function that gives the translation of a text into a language."""

    def text_in(text: str, target: str) -> str:
        with SyncTranslationClient(
            server.grpc_url, prepared("nllb").name, repository=server_repository
        ) as client:
            answer = client.translate(
                text, source="eng_Latn", targets=target, max_decoding_length=8
            )
        return answer.text

    return text_in


def test_a_line_is_answered_before_the_input_ends(
    command: Callable[..., Command], expected: Callable[[str, str], str]
) -> None:
    with piped(*command()) as process:
        for text in ("How is your day going?", "Thank you very much."):
            process.stdin.write(text + "\n")
            process.stdin.flush()
            for target in ("deu_Latn", "fra_Latn"):
                assert process.stdout.readline() == f"{target}  {expected(text, target)}\n"
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(600) == 0


def test_lines_come_in_order_and_an_empty_line_gives_empty_results(
    command: Callable[..., Command], expected: Callable[[str, str], str]
) -> None:
    result = run(command(), "One.\n\nTwo.")
    targets = ("deu_Latn", "fra_Latn")
    lines = [
        f"{t}  {expected(text, t) if text else ''}"
        for text in ("One.", "", "Two.")
        for t in targets
    ]
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split("\n") == [*lines, ""]


def test_json_lines_hold_what_there_is_to_know(command: Callable[..., Command]) -> None:
    options = ["--beam-size", "2", "--option", "num_hypotheses=2", "--option", "return_scores=true"]
    result = run(command("--json", *options), "日本.\n\n")
    first, empty = map(json.loads, result.stdout.splitlines())
    assert (first["line"], first["text"]) == (1, "日本.")
    german, french = first["translations"]
    assert (german["target"], french["target"]) == ("deu_Latn", "fra_Latn")
    assert len(german["hypotheses"]) == 2
    assert german["hypotheses"][0]["text"] == german["text"]
    assert german["hypotheses"][0]["score"] == german["score"]
    assert german["unknown_tokens"] == 1
    assert german["finish_reason"] == "length"
    assert [(t["text"], t["finish_reason"]) for t in empty["translations"]] == [("", "empty")] * 2


def test_files_are_read_one_after_another(command: Callable[..., Command], tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"File {name}.\n", encoding="utf-8")
    files = [str(tmp_path / name) for name in ("a", "b")]
    result = run(command("--json", *files))
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["file"], one["line"], one["text"]) for one in found] == [
        (files[0], 1, "File a."),
        (files[1], 1, "File b."),
    ]


def test_a_wrong_request_ends_the_run_once_and_a_wrong_line_does_not(
    command: Callable[..., Command], expected: Callable[[str, str], str], tmp_path: Path
) -> None:
    lines = "\n" + "".join(f"Line {number}.\n" for number in range(50))
    wrong = run(command("--option", "no_such_option=1", to="deu_Latn"), lines)
    assert (wrong.returncode, wrong.stdout) == (1, "\n")
    [said] = wrong.stderr.splitlines()
    assert said.startswith("ct2-translate: not translated from line 2 on: ")
    assert "no_such_option" in said
    (tmp_path / "in.txt").write_text(lines)
    files = ["-i", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.txt")]
    assert run(command("--option", "no_such_option=1", *files, to="deu_Latn")).returncode == 1
    assert run(command(*files, to="deu_Latn")).returncode == 0
    long = run(command(to="deu_Latn"), f"{'word ' * 3000}\nOne.\n")
    assert long.returncode == 1
    assert long.stdout == f"\n{expected('One.', 'deu_Latn')}\n"
    [said] = long.stderr.splitlines()
    assert "line 1, deu_Latn: the sentence: it has 3002 ids, more than the 512" in said


@pytest.mark.parametrize(
    "content", ["One.\nTwo.\n".encode("utf-16"), "One.".encode("utf-16-le"), b"\x7fELF\x02\0\0"]
)
def test_what_is_no_text_is_refused(
    command: Callable[..., Command], tmp_path: Path, content: bytes
) -> None:
    for name in ("in.txt", "in.srt"):
        (tmp_path / name).write_bytes(content)
        output = tmp_path / f"out.{name}"
        done = run(command("-i", str(tmp_path / name), "-o", str(output), to="deu_Latn"))
        assert done.returncode == 1
        [said] = done.stderr.splitlines()
        assert str(tmp_path / name) in said
        assert "is not UTF-8: line 1 has bytes of UTF-16 or of a binary file" in said
        assert {path.name for path in tmp_path.iterdir()} <= {"in.txt", "in.srt"}
    (tmp_path / "in.txt").write_text("One.\n")
    good = run(command("-i", str(tmp_path / "in.txt"), "-o", str(tmp_path / "o"), to="deu_Latn"))
    assert good.returncode == 0


def test_a_line_is_numbered_in_its_own_file(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        long = "word " * 3000
        (tmp_path / name).write_text(f"File {name}.\n{long}\nEnd.\n", encoding="utf-8")
    files = [str(tmp_path / name) for name in ("a", "b")]
    result = run(command(*files, to="deu_Latn"))
    where = [line.split(": ")[1] for line in result.stderr.splitlines()]
    assert where == [f"{file}:2, deu_Latn" for file in files]


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_an_outage_loses_no_line(
    ending: signal.Signals,
    make_server: MakeServer,
    server_repository: Path,
    prepared: Prepared,
    command: Callable[..., Command],
    expected: Callable[[str, str], str],
) -> None:
    """The server ends with lines under way, and is gone for longer than a call waits.

    Asked to end, it refuses lines for a second before it hangs up.
    """
    only = ["--model-control-mode=explicit", f"--load-model={prepared('nllb').name}"]
    first = make_server(server_repository, server_arguments=only)
    texts = sentences(60, seed=9)
    place = ["--url", first.grpc_url, "--max-in-flight", "8"]
    with piped(*command(*place, to="deu_Latn")) as process:
        process.stdin.write("".join(f"{text}\n" for text in texts[:20]))
        process.stdin.flush()
        answers = [process.stdout.readline() for _ in range(10)]
        first.process.send_signal(ending)
        wait_until(lambda: not has_model(first, prepared("nllb").name))
        process.stdin.write("".join(f"{text}\n" for text in texts[20:]))
        process.stdin.close()
        told = process.stderr.readline()
        assert "waiting up to" in told, told  # a call has waited in vain
        first.process.wait()
        make_server(server_repository, server_arguments=only, ports=first.ports)
        answers += process.stdout.readlines()
        assert process.wait(600) == 0
        assert "the server answers again" in process.stderr.read()
    assert answers == [f"{expected(text, 'deu_Latn')}\n" for text in texts]


def test_an_outage_that_does_not_end_names_the_first_line_that_is_missing(
    make_server: MakeServer,
    server_repository: Path,
    prepared: Prepared,
    command: Callable[..., Command],
) -> None:
    only = ["--model-control-mode=explicit", f"--load-model={prepared('nllb').name}"]
    own = make_server(server_repository, server_arguments=only)
    line = command("--url", own.grpc_url, "--retry-for", "1", to="deu_Latn")
    with piped(*line) as process:
        process.stdin.write("One.\n")
        process.stdin.flush()
        process.stdout.readline()
        own.stop()
        _, told = process.communicate("Two.\nThree.\n", timeout=600)
    assert process.returncode == 1
    assert "not translated from line 2 on: no connection" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--to", "deu_Lat"], 1, "deu_Latn"),
        (["--option", "beam_size"], 2, "NAME=VALUE"),
        (["--to", ","], 2, "at least one"),
        (["no-such-file"], 1, "no-such-file"),
        (["--timeout", "0"], 2, "above 0"),
    ],
)
def test_misuse_is_one_sentence_and_an_exit_code(
    command: Callable[..., Command], arguments: list[str], code: int, message: str
) -> None:
    result = run(command(*arguments), "One.\n")
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--option", b"\xff=1"],
            "'\\udcff' cannot be the name of an option: it is not valid Unicode",
        ),
        (["--option", "beam_size=" + "[" * 10_000], 'parameter "beam_size": the value'),
        (["--model", b"\xff"], "model is '\\udcff'; give the name"),
    ],
)
def test_arguments_that_are_no_text_are_refused_in_a_line(
    command: Callable[..., Command], arguments: list[str | bytes], said: str
) -> None:
    result = run([*command(), *map(os.fsdecode, arguments)], "One.\n")
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert run(command(), "One.\n").returncode == 0


def test_no_server_and_no_tokenizer_say_what_to_do(command: Callable[..., Command]) -> None:
    lost = run([*command(), "--url", f"127.0.0.1:{free_port()}", "--timeout", "1"], "One.\n")
    assert lost.returncode == 1
    assert "check the URL" in lost.stderr
    bare = command()
    place = bare.index("--model-repository")
    del bare[place : place + 2]
    untold = run(bare, "One.\n")
    assert untold.returncode == 1
    assert "there is no folder model_repository/client-nllb/tokenizer" in untold.stderr
    assert "CT2_MODEL_REPOSITORY" in untold.stderr
    assert "Traceback" not in lost.stderr + untold.stderr


def test_a_reader_that_has_had_enough_ends_it_quietly(command: Callable[..., Command]) -> None:
    with piped(*command()) as process:
        process.stdin.write("One.\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write("Two.\nThree.\n")
        process.stdin.close()
        assert process.wait(600) == 1
        assert process.stderr.read() == ""


def test_progress_goes_to_a_terminal_only(command: Callable[..., Command]) -> None:
    terminal, end = os.openpty()
    with forked.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=end, text=True
    ) as process:
        os.close(end)
        shown, _ = process.communicate("One.\nTwo.\n", timeout=600)
    assert len(shown.splitlines()) == 4
    assert os.read(terminal, 4096).replace(b"\r\n", b"\n") == b"\r1 lines\r2 lines\n"
    os.close(terminal)


def test_a_folder_as_input_and_a_full_disk_as_output_are_said_in_a_line(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    result = run(command(str(tmp_path)))
    assert result.returncode == 1
    assert result.stderr == f"ct2-translate: cannot read {tmp_path}: Is a directory\n"
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = forked.run(
            command(),
            input="One.\n",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            check=False,
        )
    assert result.returncode == 1
    reason = "cannot write the translations: No space left on device"
    assert result.stderr == f"ct2-translate: {reason}\n"
