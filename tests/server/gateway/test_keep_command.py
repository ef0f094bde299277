# SPDX-License-Identifier: Apache-2.0
"""ct2-translate --keep, --glossary and --keep-patterns, for models of text and of token ids."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import RetryPolicy, TranslationClient
from ct2_triton.client.connection import Connection
from ct2_triton.client.retry import Deadline
from ct2_triton.errors import ClientError, ServerBusyError
from ct2_triton.serve import TritonServer
from ct2_triton.terms.arguments import read_glossary
from ct2_triton.terms.finding import Terms
from ct2_triton.terms.translation import stream_terms
from server.gateway.conftest import GERMAN, SENTENCE
from support.commands import run

pytestmark = pytest.mark.server

Translate = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def translate(demo_server: TritonServer, repository: Path) -> Translate:
    """A function that runs the command with some lines."""

    def translate(lines: str, *arguments: str, model: str = "demo-text", to: str = "de") -> Any:
        place = ["--url", demo_server.grpc_url, "--model-repository", repository]
        what = ["--model", model, "--from", "en", "--to", to]
        return run("ct2-translate", *place, *what, *arguments, code=None, text=lines)

    return translate


@pytest.mark.parametrize("model", ["demo-text", "demo"])
def test_phrases_and_marks_come_back(translate: Translate, model: str) -> None:
    lines = f"Penalty for Quixolab!\n\n{SENTENCE}\nPenalty for <dnt>Ximba</dnt>!\n"
    done = translate(lines, "--keep", "Quixolab", model=model)
    assert done.stdout.splitlines() == [
        "Elfmeter für Quixolab!",
        "",
        GERMAN,
        "Elfmeter für Ximba!",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_glossary_in_several_languages(translate: Translate, tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("Quixolab\tQuix AG\n\nXimba\n", encoding="utf-8-sig")
    done = translate("Penalty for Quixolab!\n", "--glossary", str(glossary), to="de,fr")
    assert done.stdout.splitlines() == [
        "de  Elfmeter für Quix AG!",
        "fr  Penalty pour Quix AG !",
    ]
    files = ("-i", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.txt"))
    (tmp_path / "in.txt").write_text("Penalty for Ximba!\n")
    assert translate("", "--glossary", str(glossary), *files).returncode == 0
    assert (tmp_path / "out.txt").read_text() == "Elfmeter für Ximba!\n"


def test_a_glossary_may_be_of_one_language(translate: Translate, tmp_path: Path) -> None:
    (tmp_path / "de.tsv").write_text("Quixolab\tQuix AG\n")
    (tmp_path / "all.tsv").write_text("Ximba\n")
    given = ("--glossary", f"de={tmp_path}/de.tsv", "--glossary", f"{tmp_path}/all.tsv")
    done = translate("Penalty for Ximba!\n", *given, to="de,fr")
    assert done.stdout.splitlines() == ["de  Elfmeter für Ximba!", "fr  Penalty pour Ximba !"]
    done = translate("Penalty for Quixolab!\n", *given, to="de,fr")
    german, french = done.stdout.splitlines()
    assert german == "de  Elfmeter für Quix AG!"
    assert "Quix" not in french
    done = translate("Penalty!\n", *given, to="fr")
    assert done.returncode == 1
    assert f"--glossary de={tmp_path}/de.tsv: de is not in --to" in done.stderr


def test_a_line_of_a_glossary_ends_where_a_line_of_text_ends(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_bytes("a\u2028b\tc\r\n\r\nd\x0be\n".encode())
    assert read_glossary([file]) == {"a\u2028b": "c", "d\x0be": "d\x0be"}


def test_a_csv_file_has_commas_and_quotation_marks(tmp_path: Path) -> None:
    file = tmp_path / "terms.CSV"
    file.write_bytes('\ufeffQuixolab,"Quix, AG"\r\n\r\n"a ""b""", c\r\nXimba\r\n'.encode())
    assert read_glossary([file]) == {"Quixolab": "Quix, AG", 'a "b"': "c", "Ximba": "Ximba"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "a,b\nc,d,en,de\n",
            "terms.csv, line 2: 'c,d,en,de' is neither a phrase nor a phrase, a comma",
        ),
        ('a,b\n"c,d\n', "cannot read the glossary .*terms.csv: unexpected end of data"),
        (",b\n", "line 1: ',b' is neither a phrase"),
    ],
)
def test_a_csv_file_that_cannot_be(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "terms.csv"
    file.write_text(content)
    with pytest.raises(ClientError, match=said):
        read_glossary([file])
    file.write_text("a,b\n")
    assert read_glossary([file]) == {"a": "b"}


def test_a_lost_term_is_told_and_the_line_is_translated(translate: Translate) -> None:
    text = "Penalty for " + ", ".join(f"<dnt>Quix{letter}</dnt>" for letter in "abcdefghi") + "!"
    done = translate(f"{text}\n{SENTENCE}\n", "--keep-patterns", "numbers")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == GERMAN
    assert ": lost 'Quixa', 'Quixb'" in done.stderr


@pytest.mark.parametrize("model", ["demo-text", "demo"])
def test_json_says_the_same_of_a_line_with_terms_and_without(
    translate: Translate, model: str
) -> None:
    options = ("--beam-size=3", "--option", "num_hypotheses=3", "--option", "return_scores=true")
    lines = f"{SENTENCE}\n\n"
    plain = translate(lines, "--json", *options, model=model)
    kept = translate(lines, "--json", *options, "--keep", "Quixolab", model=model)
    assert kept.stdout == plain.stdout
    answer = json.loads(plain.stdout.splitlines()[0])["translations"][0]
    assert {"target", "text", "score", "finish_reason", "hypotheses", "version"} <= answer.keys()

    line = "Penalty for Quixolab!\n"
    restored = translate(line, "--json", *options, "--keep", "Quixolab", model=model)
    answer = json.loads(restored.stdout)["translations"][0]
    assert answer["text"] == "Elfmeter für Quixolab!"
    assert (answer["version"], answer["finish_reason"]) == ("1", "stop")
    assert answer["score"] < 0
    hypotheses = answer.get("hypotheses", [answer])
    assert all(one["text"].count("Quixolab") == 1 and one["score"] < 0 for one in hypotheses)


def test_half_of_a_surrogate_pair_fails_its_line_alone(translate: Translate) -> None:
    lines = f'"half of \\ud83d"\n"{SENTENCE}"\n'
    done = translate(lines, "--json-input", "--keep", "Quixolab")
    assert (done.returncode, done.stdout) == (1, f"\n{GERMAN}\n")
    assert "line 1, de: text_input is not valid Unicode" in done.stderr


@pytest.mark.parametrize("busy", [1, 2])
async def test_each_attempt_after_an_outage_has_a_clock_of_its_own(
    demo_server: TritonServer, repository: Path, monkeypatch: pytest.MonkeyPatch, busy: int
) -> None:
    """Else --timeout would end what --retry-for waits for."""
    clocks: list[object] = []
    infer = Connection.infer

    async def first_busy(self: Connection, request: Any, deadline: Deadline, *given: Any) -> Any:
        clocks.append(deadline)
        if len(clocks) <= busy:
            raise ServerBusyError("away")
        return await infer(self, request, deadline, *given)

    async def lines() -> AsyncIterator[str]:
        yield "Penalty for Quixolab!"

    retry = RetryPolicy(outage_s=300, max_backoff_s=0.2)
    async with TranslationClient(
        demo_server.grpc_url, "demo-text", repository=repository, retry=retry
    ) as client:
        await client.connect()
        monkeypatch.setattr(Connection, "infer", first_busy)
        items = stream_terms(
            client, Terms(("Quixolab",)), lines(), source="en", targets=["de"], max_in_flight=1
        )
        assert [item.translation.text async for item in items] == ["Elfmeter für Quixolab!"]
    assert len({id(clock) for clock in clocks[: busy + 1]}) == busy + 1


def test_a_wrong_mark_fails_its_line_alone(translate: Translate) -> None:
    done = translate(f"Penalty for <dnt>Quixolab!\n{SENTENCE}\n", "--keep", "Quixolab")
    assert done.returncode == 1
    assert "has no </dnt>" in done.stderr
    assert done.stdout.splitlines()[-1] == GERMAN


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("", ["--keep", " "], "' ' cannot be a term: it has no visible character"),
        ("", ["--keep-patterns", "dates"], "no pattern is named 'dates'"),
        ("", ["--glossary", "nowhere.tsv"], "cannot read the glossary nowhere.tsv"),
        ("a\tb\tc\n", [], "line 1: 'a\\tb\\tc' is neither a phrase nor a phrase, a tab"),
        ("a\tb\n\na\tc\n", [], "line 3: 'a' has the translation 'c', and 'b' in an earlier line"),
        ("\tb\n", [], "line 1: '\\tb' is neither a phrase"),
        ("a\tb\n", ["--stream"], "--stream cannot keep terms"),
    ],
)
def test_terms_that_cannot_be(
    translate: Translate, tmp_path: Path, content: str, arguments: list[str], said: str
) -> None:
    (tmp_path / "terms.tsv").write_text(content)
    done = translate(f"{SENTENCE}\n", "--glossary", str(tmp_path / "terms.tsv"), *arguments)
    assert said in done.stderr
    assert (done.returncode, done.stdout) == (1, "")
    assert translate(f"{SENTENCE}\n", "--keep", "Quix").stdout == f"{GERMAN}\n"
