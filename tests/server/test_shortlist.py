# SPDX-License-Identifier: Apache-2.0
"""The demo model with a vocabulary shortlist for German, prepared, served and asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.options import ShortlistOptions
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.test_demo_model import GERMAN, IN_SIX_LANGUAGES
from support.servers import ServerStack

pytestmark = pytest.mark.server

# Another one that the model knows, with words that the list lacks.
UNLISTED = "The train to Vienna departs from platform 7 in 4 minutes."


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`listed` has the words of the known answers; every tenth different line is not counted."""
    folder = tmp_path_factory.mktemp("shortlist")
    lines = [*GERMAN.values(), IN_SIX_LANGUAGES[0]]
    text = folder / "german.txt"
    text.write_text("\n".join([*lines, *(f"{line} 1" for line in lines)]), encoding="utf-8")
    settings = {"compute_type": "float32"}
    shortlist = ShortlistOptions((f"deu_Latn={text}",), licence="Apache-2.0")
    for name, asked in (("listed", shortlist), ("whole", None)):
        options = PrepareOptions(
            "demo", folder / "repository", name, settings=settings, shortlist=asked
        )
        prepare(options)
    return folder / "repository"


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture
def client(server: TritonServer, repository: Path) -> Iterator[SyncTranslationClient]:
    with SyncTranslationClient(server.grpc_url, "listed", repository=repository) as opened:
        yield opened


@pytest.fixture
def whole(server: TritonServer, repository: Path) -> Iterator[SyncTranslationClient]:
    with SyncTranslationClient(server.grpc_url, "whole", repository=repository) as opened:
        yield opened


def texts(client: SyncTranslationClient, lines: list[str], **call: object) -> list[str]:
    answers = client.translate(lines, source="en", targets="de", **call)  # type: ignore[arg-type]
    return [answer.text for answer in answers]


def test_the_list_is_short_and_its_answers_are_right(
    client: SyncTranslationClient, repository: Path
) -> None:
    record = PreparedModel.read(repository / "listed").manifest["shortlist"]
    assert record["share_of_vocabulary"] < 0.1
    assert texts(client, list(GERMAN)) == list(GERMAN.values())


def test_what_the_list_lacks_is_written_otherwise_unless_a_request_switches_it_off(
    client: SyncTranslationClient, whole: SyncTranslationClient
) -> None:
    expected = texts(whole, [UNLISTED])
    assert texts(client, [UNLISTED]) != expected
    assert texts(client, [UNLISTED], use_vmap=False) == expected


def test_the_log_tells_the_size_of_the_list(server: TritonServer, repository: Path) -> None:
    record = PreparedModel.read(repository / "listed").manifest["shortlist"]
    (line,) = [line for line in server.log_text().splitlines() if "vocabulary map of" in line]
    assert f"vocabulary map of {record['tokens']} of 4009 tokens" in line
