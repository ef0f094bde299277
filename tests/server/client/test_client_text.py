# SPDX-License-Identifier: Apache-2.0
"""The client and its commands with a model that takes text: the answers of the model of ids."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import Sentence, SyncTranslationClient, TranslationClient
from ct2_triton.errors import (
    InvalidCallError,
    RequestRejectedError,
    SupersededError,
    TokenizerError,
    UnexpectedResponseError,
)
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from reliability.observe import counts, settled
from server.client.conftest import ENDLESS_MODEL, endless_call
from server.helpers import Connection
from support.commands import run
from support.prepared import prepare_tiny
from support.waiting import wait_until

IDS, TEXT, STREAM = "client-both", "client-both-text", "client-both-stream"
TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn"]
LINES = ["The short day.", "A longer day, with more words in it.", "Rain"]
CALL: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 12}
MakeTextClient = Callable[..., TranslationClient]


@pytest.fixture(scope="module")
def both(server: TritonServer, server_repository: Path) -> Iterator[PreparedModel]:
    """The tiny model by ids and by text; it takes rows of `support.endless`."""
    made = prepare_tiny("nllb", server_repository, IDS, io="stream", **ENDLESS_MODEL)
    connection = Connection(server.grpc_url)
    for name in (IDS, TEXT, STREAM):
        connection.raw.load_model(name)
    yield made
    for name in (STREAM, TEXT, IDS):
        connection.raw.unload_model(name)
        shutil.rmtree(server_repository / name)
    connection.close()


@pytest.fixture
def make_text_client(
    both: PreparedModel, server: TritonServer, tmp_path: Path
) -> Callable[..., TranslationClient]:
    """A function that gives a client, by default of text, where there are no tokenizers."""

    def make(model: str = TEXT, **settings: Any) -> TranslationClient:
        return TranslationClient(server.grpc_url, model, repository=tmp_path, **settings)

    return make


@pytest.fixture
async def by_ids(
    both: PreparedModel, server: TritonServer, server_repository: Path
) -> AsyncIterator[TranslationClient]:
    async with TranslationClient(server.grpc_url, IDS, repository=server_repository) as client:
        yield client


BEAM = {"beam_size": 4, "num_hypotheses": 3}


@pytest.mark.parametrize(
    "options",
    [{}, {"beam_size": 3}, {"return_scores": True}, BEAM, {**BEAM, "return_scores": True}],
)
async def test_the_answers_are_those_of_the_model_of_ids(
    make_text_client: MakeTextClient, by_ids: TranslationClient, options: dict[str, Any]
) -> None:
    async with make_text_client() as client:
        assert client.takes_text is None
        texts = await client.translate(LINES, targets=TARGETS, **CALL, **options)
        assert client.takes_text is True
    ids = await by_ids.translate(LINES, targets=TARGETS, **CALL, **options)
    assert by_ids.takes_text is False
    for text_row, ids_row in zip(texts, ids, strict=True):
        for text, wanted in zip(text_row, ids_row, strict=True):
            assert (text.text, text.finish_reason) == (wanted.text, wanted.finish_reason)
            assert (text.source, text.target) == ("eng_Latn", wanted.target)
            assert [one.text for one in text.hypotheses] == [one.text for one in wanted.hypotheses]
            assert len(text.hypotheses) == options.get("num_hypotheses", 1)
            scores = [one.score for one in text.hypotheses]
            if "return_scores" in options:
                assert scores == pytest.approx([one.score for one in wanted.hypotheses], rel=1e-5)
            else:
                assert set(scores) == {None}


async def test_all_languages_are_one_request(
    make_text_client: MakeTextClient, server: TritonServer
) -> None:
    """Counted behind the answers: the server answers first."""
    async with make_text_client() as client:
        before = await asyncio.to_thread(settled, server, TEXT)
        await client.translate(LINES[0], targets=TARGETS, **CALL)
        await asyncio.to_thread(
            wait_until, lambda: counts(server, TEXT).success > before.success, "the count"
        )
        assert (await asyncio.to_thread(settled, server, TEXT)).success == before.success + 1


async def test_texts_and_options_of_texts(make_text_client: MakeTextClient) -> None:
    async with make_text_client() as client:
        parts = await client.translate(LINES[:2], targets="de", **CALL)
        whole = await client.translate("  ".join(LINES[:2]), targets="de", **CALL)
        assert whole.text == "  ".join(part.text for part in parts)
        unsplit = await client.translate(" ".join(LINES[:2]), targets="de", split="none", **CALL)
        assert unsplit.text != whole.text.replace("  ", " ")
        blank = await client.translate(" \n", targets=TARGETS, **CALL)
        assert [one.finish_reason for one in blank] == ["empty"] * 3


async def test_a_model_of_ids_without_a_tokenizer_is_refused(
    make_text_client: MakeTextClient, server_repository: Path, tmp_path: Path
) -> None:
    async with make_text_client(IDS) as client:
        with pytest.raises(TokenizerError, match="copy the folder tokenizer"):
            await client.translate(LINES[0], targets="de", **CALL)
        with pytest.raises(TokenizerError, match="copy the folder tokenizer"):
            await client.wait_until_ready(10)
        shutil.copytree(server_repository / IDS / "tokenizer", tmp_path / IDS / "tokenizer")
        german = await client.translate(LINES[0], targets="de", **CALL)
        assert (client.takes_text, german.target) == (False, "deu_Latn")


async def test_a_model_of_streams_is_refused(make_text_client: MakeTextClient) -> None:
    async with make_text_client(STREAM) as client:
        with pytest.raises(UnexpectedResponseError, match="while they grow"):
            await client.translate(LINES[0], targets="de", **CALL)
    async with make_text_client() as client:
        assert (await client.translate(LINES[0], targets="de", **CALL)).text


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"targets": "deu_Latin"}, RequestRejectedError, "deu_Latn"),
        ({"targets": None}, RequestRejectedError, "target language"),
        ({"targets": []}, InvalidCallError, "targets is empty"),
        ({"targets": ["de", "de"]}, InvalidCallError, "names a language twice: de, de"),
        ({"targets": "\ud800"}, InvalidCallError, "target_languages is not valid Unicode"),
        ({"targets": "de", "prefix": [5]}, InvalidCallError, "takes text; give a text"),
        ({"targets": "de", "num_hypotheses": 2}, RequestRejectedError, "num_hypotheses"),
        ({"targets": "de", "beam_sise": 2}, RequestRejectedError, "beam_size"),
        ({"targets": "de", "source": "klingon"}, RequestRejectedError, "klingon"),
    ],
)
async def test_what_cannot_be_is_refused(
    make_text_client: MakeTextClient, arguments: Any, kind: type[Exception], said: str
) -> None:
    async with make_text_client() as client:
        with pytest.raises(kind, match=said):
            await client.translate(LINES[0], **{**CALL, **arguments})
        with pytest.raises(InvalidCallError, match="text_input is not valid Unicode"):
            await client.translate("a\ud800", targets="de", **CALL)
        assert (await client.translate(LINES[0], targets="de", **CALL)).text


async def test_a_newer_call_ends_the_older_one_with_its_key(
    make_text_client: MakeTextClient,
) -> None:
    async with make_text_client() as client:
        older = await endless_call(client, "The long day.", "deu_Latn", "text-a")
        other = await endless_call(client, "The long day.", "fra_Latn", "text-a")
        await client.translate(LINES[0], targets="deu_Latn", supersede="text-a", **CALL)
        with pytest.raises(SupersededError, match="superseded by a newer request"):
            await older
        assert not other.done()
        await client.translate(LINES[0], targets=TARGETS, supersede="text-a", **CALL)
        with pytest.raises(SupersededError):
            await other


async def test_a_stream_in_several_languages(
    make_text_client: MakeTextClient, by_ids: TranslationClient
) -> None:
    async def sentences() -> AsyncIterator[Sentence]:
        for number, line in enumerate(LINES):
            yield Sentence(line, id=number)

    wanted = await by_ids.translate(LINES, targets=TARGETS, **CALL)
    async with make_text_client() as client:
        stream = client.stream(sentences(), targets=TARGETS, **CALL)
        async with aclosing(stream) as items:
            got = {(item.position, item.target): item.translation.text async for item in items}
    assert got == {
        (number, one.target): one.text for number, row in enumerate(wanted) for one in row
    }


def test_the_synchronous_client(both: PreparedModel, server: TritonServer, tmp_path: Path) -> None:
    with SyncTranslationClient(server.grpc_url, TEXT, repository=tmp_path) as client:
        client.connect()
        assert client.takes_text is True
        german, french = client.translate(LINES[0], targets=["de", "fr"], **CALL)
        assert german.text != french.text
        assert (german.target, french.target) == ("de", "fr")


def test_ct2_translate_needs_no_tokenizer(
    both: PreparedModel, server: TritonServer, server_repository: Path, tmp_path: Path
) -> None:
    text = "\n".join(LINES) + "\n"
    place = f"--model-repository={server_repository}"

    def translate(*arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        line = ["ct2-translate", "--url", server.grpc_url, "--from=en", "--to=deu_Latn,fra_Latn"]
        option = ["--option", "max_decoding_length=12", "-v"]
        return run(
            *line, *arguments, *option, code=code, folder=tmp_path, text=text,
            CT2_MODEL_REPOSITORY="",
        )  # fmt: skip

    by_text, by_ids = translate(f"--model={TEXT}"), translate(f"--model={IDS}", place)
    assert by_text.stdout == by_ids.stdout
    assert by_text.stdout.count("\n") == 6
    assert f"{TEXT} takes text" in by_text.stderr
    assert f"{IDS} takes token ids" in by_ids.stderr
    missing = translate(f"--model={IDS}", code=None)  # -v shows where
    assert missing.returncode == 1
    assert f"no tokenizer for model '{IDS}'" in missing.stderr
    assert f"name the model repository that holds {IDS}/tokenizer (--model" in missing.stderr


def test_ct2_live_needs_no_tokenizer(
    both: PreparedModel, server: TritonServer, tmp_path: Path
) -> None:
    update = '{"segment": "1", "text": "The short day.", "final": true}\n'
    line = ["ct2-live", "--url", server.grpc_url, f"--model={TEXT}", "--from=en", "--to=de"]
    done = run(*line, "--stdio", folder=tmp_path, text=update)
    assert done.stderr == ""
    assert '"target": "de"' in done.stdout
