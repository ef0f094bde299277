# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, run as their README says, against the demo's model."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from support.commands import run
from support.servers import ServerStack

pytestmark = pytest.mark.server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENGLISH = "The ticket office opens at 5:45."
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."
FRENCH = "Le guichet ouvre à 5 h 45."


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of a user whose server runs elsewhere."""
    repository = tmp_path_factory.mktemp("examples") / "model_repository"
    prepare(PrepareOptions("demo", repository, io="stream"))
    with ServerStack() as stack:
        server = stack.start(repository)
        place = {"CT2_URL": server.grpc_url, "CT2_MODEL_REPOSITORY": str(repository)}
        yield {**os.environ, **place, "CT2_HTTP": server.http_url}


@pytest.fixture(scope="module")
def service(environment: dict[str, str]) -> Iterator[str]:
    """The web handler, on a port of its own."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", EXAMPLES, "web_handler:app"]
    with subprocess.Popen(
        [*command, "--port", "0"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            yield _address(process.stderr)
        finally:
            process.terminate()


def _address(log: IO[str]) -> str:
    seen = []
    for line in log:
        seen.append(line)
        if found := re.search(r"running on (http://\S+)", line):
            return found[1]
    raise AssertionError("".join(seen))


def test_every_example_is_listed_and_run_here() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    listed = set(re.findall(r"\]\((\w+\.\w+)\)", (EXAMPLES / "README.md").read_text()))
    assert names - {"texts.csv"} == listed
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert all(Path(name).stem in tests for name in listed)


def test_a_live_stream_answers_while_it_goes_on(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, EXAMPLES / "live_stream.py"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{ENGLISH}\n")
        process.stdin.flush()
        first = {process.stdout.readline() for _ in range(3)}  # before the input has ended
        assert f"0 deu_Latn {GERMAN}\n" in first
        assert f"0 fra_Latn {FRENCH}\n" in first
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


def test_a_text_is_printed_while_it_grows(environment: dict[str, str]) -> None:
    done = run(sys.executable, EXAMPLES / "growing_text.py", ENGLISH, **environment)
    assert done.stdout == f"{GERMAN}\n"


def test_a_batch_file_keeps_its_rows_and_names_a_refused_one(
    environment: dict[str, str], tmp_path: Path
) -> None:
    output = tmp_path / "translated.csv"
    script = EXAMPLES / "batch_file.py"
    run(sys.executable, script, EXAMPLES / "texts.csv", output, **environment)
    assert output.read_text(encoding="utf-8").splitlines() == [
        "id,text,german",
        f"a1,{ENGLISH},{GERMAN}",
        "a2,See you in Madrid on Thursday!,Wir sehen uns am Donnerstag in Madrid!",
    ]

    (tmp_path / "long.csv").write_text(f"id,text\n1,{'word ' * 3000}\n2,{ENGLISH}\n")
    done = run(sys.executable, script, tmp_path / "long.csv", output, code=1, **environment)
    assert done.stderr.startswith("row 1: ")
    assert output.read_text(encoding="utf-8").splitlines()[-1] == f"2,{ENGLISH},{GERMAN}"


def test_the_web_handler_has_a_status_for_each_error(service: str) -> None:
    def ask(**wish: object) -> tuple[int, dict[str, str]]:
        request = urllib.request.Request(  # noqa: S310  our own server
            f"{service}/translate",
            json.dumps(wish).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    status, wrong = ask(text=ENGLISH, targets=["xx"])
    assert status == 400
    assert "xx" in wrong["error"]
    assert ask(text="word " * 3000, targets=["de"])[0] == 400
    assert ask(text=ENGLISH)[0] == 422  # FastAPI's own: no targets
    assert ask(text=ENGLISH, targets=["de", "fr"]) == (200, {"de": GERMAN, "fr": FRENCH})


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_node_translates_over_http(environment: dict[str, str]) -> None:
    command: list[str | Path] = ["node", EXAMPLES / "client.mjs", ENGLISH]
    assert run(*command, **environment).stdout == f"de  {GERMAN}\nfr  {FRENCH}\n"
    wrong = run(*command, "xx", code=1, **environment)
    assert wrong.stderr.startswith("400: ")
    assert run(*command, "de", **environment).stdout == f"de  {GERMAN}\n"


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go_translates_over_http(environment: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "client"
    offline = {"GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOCACHE": str(tmp_path / "cache")}
    build: list[str | Path] = ["go", "build", "-o", program, EXAMPLES / "client.go"]
    run(*build, **environment, **offline)
    command: list[str | Path] = [program, ENGLISH, "de", "fr"]
    assert run(*command, **environment).stdout == f"de  {GERMAN}\nfr  {FRENCH}\n"
    wrong = run(*command, "xx", code=1, **environment)
    assert wrong.stderr.startswith("400: ")
    assert run(program, ENGLISH, "de", **environment).stdout == f"de  {GERMAN}\n"
