# SPDX-License-Identifier: Apache-2.0
"""ct2-translate bulk: the lines of the plain client, whoever is killed on the way.

Each run starts Ray, which takes some seconds; so there are few runs, with much in each.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from tritonclient.grpc import service_pb2_grpc

from ct2_triton import cli
from ct2_triton.serve import TritonServer
from ct2_triton.translate import records
from server.client.conftest import Command
from support.commands import run
from support.fault_server import FaultServer, serving_in_a_thread
from support.waiting import wait_until
from tiny_corpus import sentences

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("ray")


@pytest.fixture
def bulk(command: Command) -> Command:
    """The command line of `command`, as a bulk run."""

    def line(*arguments: str | Path) -> list[str]:
        program, *others = command(*arguments)
        return [program, "bulk", *others]

    return line


def test_lines_json_lines_and_parquet_are_what_the_plain_client_gives(
    bulk: Command, command: Command, expected: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    texts = ["", "Two\u2028halves.", *sentences(40, seed=5)]
    lines, objects, table = (tmp_path / f"in.{end}" for end in ("txt", "jsonl", "parquet"))
    lines.write_text("\n".join([*texts, "word " * 3000, "No end."]), encoding="utf-8")
    rows = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    objects.write_text("\n".join([*rows, '"Only a text."']), encoding="utf-8")
    ids = list(range(len(texts)))
    columns = {"id": ids, "body": [None, *texts[1:]]}
    parquet.write_table(pyarrow.table(columns), table, row_group_size=9)

    settings = ("--column", "body", "--block-lines", "10")
    said = run(
        *bulk(
            *("-i", lines, "-i", objects, "-i", table, "-o", tmp_path / "out"),
            *settings,
        ),
        code=1,
    ).stderr
    (tmp_path / "plain").mkdir()
    run(*command("-i", lines, "-o", tmp_path / "plain" / "in.txt"), code=1)
    assert (tmp_path / "out" / "in.txt").read_bytes() == (
        tmp_path / "plain" / "in.txt"
    ).read_bytes()
    run(*command("-i", objects, "-o", tmp_path / "plain" / "in.jsonl", "--json"))
    assert (tmp_path / "out" / "in.jsonl").read_bytes() == (
        tmp_path / "plain" / "in.jsonl"
    ).read_bytes()
    found = parquet.read_table(tmp_path / "out" / "in.parquet").to_pydict()
    assert {name: found[name] for name in columns} == columns
    assert [" ".join(text.splitlines()) for text in found["deu_Latn"]] == expected(texts)

    assert "in.txt.failed.jsonl lists 1 translations that failed" in said
    assert f" of {2 * len(texts) + len(texts) + 3} lines" in said
    assert "lines/s" in said
    assert all(line.startswith("ct2-translate bulk: ") for line in said.splitlines())
    (failure,) = (tmp_path / "out" / "in.txt.failed.jsonl").read_text().splitlines()
    failed = json.loads(failure)
    assert (failed["line"], failed["target"]) == (len(texts) + 1, "deu_Latn")
    shown = [path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."]
    assert sorted(shown) == [
        "in.jsonl", "in.parquet", "in.txt", "in.txt.blocks", "in.txt.failed.jsonl",
    ]  # fmt: skip
    before = (tmp_path / "out" / "in.txt").read_bytes()
    again = run(*bulk("-i", objects, "-i", lines, "-o", tmp_path / "out", *settings), code=1).stderr
    assert "in.jsonl is complete: nothing to do" in again
    assert "in.txt.failed.jsonl lists 1 translations that failed" in again
    assert " 4 of 5 blocks are there: kept" in again
    assert (tmp_path / "out" / "in.txt").read_bytes() == before
    # How large blocks are decides nothing that is in an output.
    other = bulk("-i", objects, "-o", tmp_path / "out", "--column", "body", "--block-lines", "20")
    assert "in.jsonl is complete: nothing to do" in run(*other).stderr


class Held(FaultServer):
    """A way to a real server that keeps the answers back until it is let go."""

    def __init__(self, url: str) -> None:
        super().__init__(self._forward)
        self._url = url
        self._stub: Any = None
        self._free = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def _forward(self, _server: FaultServer, request: Any, _context: Any) -> Any:
        if self._stub is None:
            channel = grpc.aio.insecure_channel(self._url)
            self._stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        answer = await self._stub.ModelInfer(request)
        self.answered += 1
        await self._free.wait()
        return answer

    answered = 0

    def let_go(self) -> None:
        """Gives all answers, those to come, too."""
        self._loop.call_soon_threadsafe(self._free.set)


@pytest.fixture
def held(server: TritonServer) -> Iterator[list[tuple[Held, str, Callable[[], None]]]]:
    """Two of them, each with its URL, and a way to end it with all its connections."""
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            own = stack.enter_context(ExitStack())
            way, url = own.enter_context(serving_in_a_thread(Held, server.grpc_url))
            made.append((way, url, own.close))
        yield made


def _workers(run: subprocess.Popen[str]) -> set[int]:
    """The processes that translate."""
    found = set()
    for process in psutil.Process(run.pid).children(recursive=True):
        try:
            if "MapWorker" in " ".join(process.cmdline()):
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


def _family(run: subprocess.Popen[str]) -> list[psutil.Process]:
    return list(psutil.Process(run.pid).children(recursive=True))


def _listens_at(pids: set[int]) -> set[str]:
    """The addresses that others may connect to."""
    return {
        one.laddr.ip.removeprefix("::ffff:")
        for one in psutil.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.pid in pids
    }


def _has_ended(process: psutil.Process) -> bool:
    """Whether it runs no more; where nobody collects its status, it stays in the list."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_nothing_is_lost_when_the_run_a_worker_and_a_server_are_killed(
    bulk: Command,
    expected: Callable[[list[str]], list[str]],
    held: list[tuple[Held, str, Callable[[], None]]],
    tmp_path: Path,
) -> None:
    texts = [f"{number} {text}" for number, text in enumerate(sentences(190, seed=7))]
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    ways = [way for way, _, _ in held]
    line = bulk("-i", source, "-o", output, "--block-lines", "20", "--timeout", "600")
    line[line.index("--url") + 1] = ",".join(url for _, url, _ in held)

    parts = tmp_path / "out.txt.blocks"
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as job:
        # The first answer is that to the word that a run tries before it makes any block.
        wait_until(lambda: parts.exists() and sum(way.answered for way in ways) > 1)
        family = _family(job)
        workers = [process for process in family if process.pid in _workers(job)]
        job.kill()
    wait_until(lambda: all(map(_has_ended, workers)))
    for process in family:  # two of Ray's own would stay for a minute
        with suppress(psutil.Error):
            process.kill()
    assert [path.name for path in parts.iterdir()] == ["run.json"]
    # As if one block had been finished by then.
    (parts / "000000003").write_text("kept\n" * 20, encoding="utf-8")
    (parts / "000000003.failed").touch()

    before = [way.answered for way in ways]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as job:
        wait_until(lambda: len(_workers(job)) == 2)
        wait_until(lambda: sum(way.answered for way in ways) >= sum(before) + 40)
        family = _family(job)
        listens_at = _listens_at({job.pid, *(process.pid for process in family)})
        killed, other = _workers(job)
        psutil.Process(killed).kill()
        wait_until(lambda: len(_workers(job) - {killed, other}) == 1)
        # A worker that met one server first may have sent it all its lines.
        most = max((0, 1), key=lambda at: ways[at].answered - before[at])
        end = held[most][2]
        end()
        ways[1 - most].let_go()
        _, said = job.communicate(timeout=800)
        assert job.returncode == 0, said
    assert listens_at == {"127.0.0.1"}
    assert "1 of 10 blocks are there: kept" in said
    wanted = expected(texts)
    wanted[60:80] = ["kept"] * 20
    assert output.read_text(encoding="utf-8").split("\n") == [*wanted, ""]
    assert not parts.exists()
    wait_until(lambda: all(map(_has_ended, family)))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_is_said_to_go_on(
    bulk: Command, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\n" * 20_000)
    line = bulk("-i", source, "-o", output, "--block-lines", "10")
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(tmp_path.glob("out.txt.blocks/0*")))
        process.send_signal(number)
        said = process.communicate()[1]
    assert process.returncode == code
    assert said.endswith("interrupted: the same command continues from here\n")


def test_what_cannot_be_is_said_before_ray_starts(
    bulk: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(*arguments: str | Path) -> str:
        _, *line = bulk(*arguments)
        assert cli.translate(line) == 1
        return capsys.readouterr().err

    text, objects, table = (tmp_path / f"in.{end}" for end in ("txt", "jsonl", "parquet"))
    text.write_text("One.\n", encoding="utf-8")
    objects.write_text('"One."\n', encoding="utf-8")
    table.write_text("no table", encoding="utf-8")
    output = tmp_path / "out.txt"
    for arguments, said in (
        (["-i", text, "-o", output, "--to=de,fr"], "several target languages need an output named"),
        (["-i", objects, "-o", tmp_path / "out.parquet"], "the fields of JSON lines have no"),
        (["-i", table, "-o", output], "cannot read"),
        (["-i", tmp_path / "none", "-o", output], "no such file"),
        (["-i", text, "-o", output, "--from=xx"], "xx"),
        (
            ["-i", text, "-o", output, "--option", "beam_sise=2"],
            'nothing can be translated: unknown parameter "beam_sise"',
        ),
        (["-i", text, "-o", tmp_path / "out.srt"], "subtitles are for ct2-translate without"),
    ):
        assert said in refusal(*arguments)
    parquet.write_table(pyarrow.table({"body": ["One."], "id": [1]}), table)
    assert "has no column 'text': give one of body, id" in refusal("-i", table, "-o", output)
    assert "'id' of " in refusal("-i", table, "-o", output, "--column", "id")
    parquet.write_table(pyarrow.table({"text": ["One."], "deu_Latn": ["Eins."]}), table)
    said = refusal("-i", table, "-o", tmp_path / "out.parquet")
    assert "has a column 'deu_Latn' already" in said
    with records.held([output]):
        said = run(*bulk("-i", text, "-o", output), code=1).stderr  # of another process
    assert f"another ct2-translate (process {os.getpid()}) is writing {output}" in said
    (tmp_path / "out.txt.blocks").mkdir()
    (tmp_path / "out.txt.blocks" / "run.json").write_text("{}")
    assert "another text or other settings" in refusal("-i", text, "-o", output)
