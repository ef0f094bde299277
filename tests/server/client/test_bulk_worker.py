# SPDX-License-Identifier: Apache-2.0
"""A block of ct2-translate bulk, translated in this process as a worker does it: no Ray."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import grpc
import pytest

from ct2_triton.bulk.blocks import (
    Block,
    check_columns,
    cut,
    finish,
    open_blocks,
    open_parts,
    read_table,
    remove_parts,
)
from ct2_triton.bulk.cli import add_arguments
from ct2_triton.bulk.worker import Task, Translator
from ct2_triton.errors import ClientError
from ct2_triton.translate.files import Job
from server.client.conftest import Prepared
from support.fault_server import FaultServer, echo, serving_in_a_thread

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

HALF = "Hi \ud83d there."
LANGUAGES = {"de": "deu_Latn", "fr": "fra_Latn"}
Translate = Callable[..., tuple[dict[str, Any], list[Block]]]


@pytest.fixture
def translate(prepared: Prepared) -> Translate:
    """A function that translates the only block of a file with a server that answers so."""

    def run(
        source: Path, output: Path, answer: Any = echo, targets: str = "de"
    ) -> tuple[dict[str, Any], list[Block]]:
        parser = ArgumentParser()
        add_arguments(parser)
        with serving_in_a_thread(FaultServer, answer) as (_, url):
            tokenizer = prepared("nllb").tokenizer_folder
            command = ["-i", source, "-o", output, "--model=m", "--from=en", "--url", url]
            command += ["--tokenizer", tokenizer, "--to", targets]
            args = parser.parse_args(list(map(str, command)))
            blocks = list(cut(source, output, 5000))
            assert len(blocks) == 1
            blocks[0].part.parent.mkdir(exist_ok=True)
            open_blocks(blocks)
            codes = tuple(LANGUAGES[target] for target in targets.split(","))
            return Translator(Task(args, codes))(asdict(blocks[0])), blocks

    return run


async def refuse_long(server: FaultServer, request: Any, context: Any) -> Any:
    if len(request.raw_input_contents[0]) > 60:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "too long today")
    return await echo(server, request, context)


def _objects(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_failed_line_is_sent_again_and_then_listed(translate: Translate, tmp_path: Path) -> None:
    seen: Counter[bytes] = Counter()

    async def fail(server: FaultServer, request: Any, context: Any) -> Any:
        content = request.raw_input_contents[0]
        seen[content] += 1
        if len(content) > 60:  # the long line; the short one goes well at its second try
            await context.abort(grpc.StatusCode.INTERNAL, "the engine failed")
        if seen[content] == 1:
            await context.abort(grpc.StatusCode.INTERNAL, "the engine failed once")
        return await echo(server, request, context)

    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Short.\n\n" + "A long line. " * 9 + "\n", encoding="utf-8")
    done, blocks = translate(source, output, fail)
    assert done == {"count": 3, "failed": 1, "error": ""}
    assert sorted(seen.values()) == [2, 3]
    assert finish(Job(source, output), blocks, {}) == 1
    short, blank, long, end = output.read_text(encoding="utf-8").split("\n")
    assert (bool(short), blank, long, end) == (True, "", "", "")
    (failed,) = _objects(tmp_path / "out.txt.failed.jsonl")
    assert (failed["line"], failed["error"]) == (3, "the engine failed")


def test_another_try_for_one_language_keeps_the_translations_of_the_others(
    translate: Translate, tmp_path: Path
) -> None:
    """The first request of a try goes well, then the other one: never both in one try."""
    seen: Counter[bytes] = Counter()
    first: list[bytes] = []

    async def fail(server: FaultServer, request: Any, context: Any) -> Any:
        language = request.raw_input_contents[1]
        first.append(language)
        seen[language] += 1
        if seen[language] != (1 if language == first[0] else 2):
            await context.abort(grpc.StatusCode.INTERNAL, "the engine failed")
        return await echo(server, request, context)

    source, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("Short.\n", encoding="utf-8")
    done, blocks = translate(source, output, fail, "de,fr")
    assert done == {"count": 1, "failed": 0, "error": ""}
    assert sorted(seen.values()) == [2, 2]
    assert finish(Job(source, output), blocks, {}) == 0
    (line,) = _objects(output)
    assert [answer["target"] for answer in line["translations"]] == ["deu_Latn", "fra_Latn"]


def test_half_a_surrogate_pair_fails_its_line_alone(translate: Translate, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [{"text": HALF}, {"text": "Grüß Gott.", "note": HALF}, {"text": "Grüß Gott."}]
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    done, blocks = translate(source, output)
    assert done == {"count": 3, "failed": 1, "error": ""}
    assert finish(Job(source, output), blocks, {}) == 1
    half, beside, good = _objects(output)
    assert (half["text"], beside["text"], beside["note"]) == (HALF, "Grüß Gott.", HALF)
    assert "not valid Unicode" in half["translations"][0]["error"]
    assert beside["translations"] == good["translations"]
    assert good["translations"][0]["text"]
    assert "Grüß Gott." in output.read_text(encoding="utf-8").splitlines()[2]
    (failed,) = _objects(tmp_path / "out.jsonl.failed.jsonl")
    assert (failed["line"], failed["text"]) == (1, HALF)


@pytest.mark.parametrize("kind", ["txt", "jsonl", "parquet"])
def test_another_run_sends_only_the_lines_that_failed(
    translate: Translate, tmp_path: Path, kind: str
) -> None:
    seen: Counter[bytes] = Counter()
    refuses = True

    async def fail(server: FaultServer, request: Any, context: Any) -> Any:
        seen[request.raw_input_contents[0]] += 1
        return await (refuse_long if refuses else echo)(server, request, context)

    source, output, whole = tmp_path / "in.txt", tmp_path / f"out.{kind}", tmp_path / f"all.{kind}"
    source.write_text("Short.\n" + "A long line. " * 9 + "\nLast.\n", encoding="utf-8")
    for _ in range(2):
        done, blocks = translate(source, output, fail)
        assert done == {"count": 3, "failed": 1, "error": ""}
        assert finish(Job(source, output), blocks, {}) == 1
    assert sorted(seen.values()) == [1, 1, 2]
    refuses = False
    done, blocks = translate(source, output, fail)
    assert done == {"count": 3, "failed": 0, "error": ""}
    assert sorted(seen.values()) == [1, 1, 3]
    assert finish(Job(source, output), blocks, {}) == 0
    _, blocks = translate(source, whole)
    finish(Job(source, whole), blocks, {})
    assert output.read_bytes() == whole.read_bytes()
    names = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert names == {source.name, output.name, whole.name}


def test_a_worker_that_ends_while_it_writes_loses_no_failure(
    translate: Translate, tmp_path: Path
) -> None:
    """Its block is translated again from any of the states that it may leave."""
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Short.\n" + "A long line. " * 9 + "\n", encoding="utf-8")
    _, blocks = translate(source, output, refuse_long)
    part, failures = blocks[0].part, blocks[0].failures
    kept, listed = part.read_bytes(), failures.read_bytes()
    for state in (
        {part.name: kept, failures.name: listed, blocks[0].earlier.name: kept},
        {failures.name: listed, blocks[0].earlier.name: kept},
        {part.name: kept, failures.name: listed},
        {failures.name: b""},
        {},
    ):
        for path in part.parent.iterdir():
            path.unlink()
        for name, content in state.items():
            (part.parent / name).write_bytes(content)
        done, _ = translate(source, output, refuse_long)
        assert done["failed"] == 1
        done, _ = translate(source, output)
        assert done["failed"] == 0
        assert all(part.read_text(encoding="utf-8").split("\n")[:2])


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\v", "\x1c"])
def test_a_failed_line_with_another_end_of_line_is_translated_by_the_next_run(
    translate: Translate, tmp_path: Path, end: str
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Short.\n" + f"A long{end}line. " * 9 + "\n", encoding="utf-8")
    done, _ = translate(source, output, refuse_long)
    assert done == {"count": 2, "failed": 1, "error": ""}
    done, blocks = translate(source, output)
    assert done == {"count": 2, "failed": 0, "error": ""}
    assert finish(Job(source, output), blocks, {}) == 0
    assert all(output.read_text(encoding="utf-8").split("\n")[:2])


def test_an_output_that_is_kept_leaves_the_parts_of_other_settings(tmp_path: Path) -> None:
    job = Job(tmp_path / "in.txt", tmp_path / "out.txt")
    open_parts(job, {"targets": ["deu_Latn"], "block_lines": 5})
    remove_parts(job, {"targets": ["fra_Latn"]})
    assert (tmp_path / "out.txt.blocks").exists()
    remove_parts(job, {"targets": ["deu_Latn"]})
    assert not (tmp_path / "out.txt.blocks").exists()


def test_parts_that_a_removal_left_when_it_was_cut_off_are_not_used(
    translate: Translate, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Short.\n", encoding="utf-8")
    _, blocks = translate(source, output)
    assert blocks[0].part.exists()  # and nothing says how it was translated
    open_parts(Job(source, output), {"targets": ["fra_Latn"]})
    assert not blocks[0].part.exists()
    _, blocks = translate(source, output)
    open_parts(Job(source, output), {"targets": ["fra_Latn"]})
    assert blocks[0].part.exists()


def test_a_malformed_line_of_json_fails_alone(translate: Translate, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('"One."\nTwo.\n{"text": "Three.", "line": 7}\n', encoding="utf-8")
    done, blocks = translate(source, output)
    assert done == {"count": 3, "failed": 1, "error": ""}
    assert finish(Job(source, output), blocks, {}) == 1
    one, two, three = _objects(output)
    assert "cannot be read as JSON" in two["translations"][0]["error"]
    assert one["translations"][0]["text"]
    assert (three["line"], three["input"]) == (3, {"line": 7})
    (failed,) = _objects(tmp_path / "out.jsonl.failed.jsonl")
    assert failed["line"] == 2


@pytest.mark.parametrize("kind", ["parquet", "txt"])
def test_an_empty_input_becomes_a_table_with_its_columns(
    translate: Translate, tmp_path: Path, kind: str
) -> None:
    source, output = tmp_path / f"in.{kind}", tmp_path / "out.parquet"
    columns = {"id": pyarrow.int64(), "text": pyarrow.string()}
    if kind == "parquet":
        parquet.write_table(pyarrow.schema(columns).empty_table(), source)
    else:
        source.touch()
        columns = {"line": pyarrow.int64(), "text": pyarrow.string()}
    done, blocks = translate(source, output)
    assert done == {"count": 0, "failed": 0, "error": ""}
    assert finish(Job(source, output), blocks, {}) == 0
    found = parquet.read_table(output)
    assert found.schema == pyarrow.schema({**columns, "deu_Latn": pyarrow.string()})
    assert found.num_rows == 0
    assert list(cut(source, tmp_path / "out.txt", 5000)) == []


def test_a_damaged_part_is_an_error_of_the_command(translate: Translate, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.parquet"
    source.write_text("Short.\n", encoding="utf-8")
    _, blocks = translate(source, output)
    good = blocks[0].part.read_bytes()
    blocks[0].part.write_bytes(b"no table")
    with pytest.raises(ClientError, match="cannot join the tables of"):
        finish(Job(source, output), blocks, {})
    blocks[0].part.write_bytes(good)
    assert finish(Job(source, output), blocks, {}) == 0


def test_a_block_that_cannot_be_written_is_named(translate: Translate, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Short.\n", encoding="utf-8")
    part = tmp_path / "out.txt.blocks" / "000000000"
    part.with_suffix(".failed").mkdir(parents=True)
    done, _ = translate(source, output)
    assert done["error"] == f"{source}: cannot write {part}: Is a directory"
    part.with_suffix(".failed").rmdir()
    assert translate(source, output)[0]["error"] == ""


def test_another_encoding_is_said_once_before_anything_is_translated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes("one\ncafé\nthé\nfour\n".encode("latin-1"))
    blocks = list(cut(source, tmp_path / "out.txt", 3))
    assert [(block.count, block.offset) for block in blocks] == [(3, 0), (1, 13)]
    (warning,) = caplog.messages
    assert warning.startswith(f"{source}:2: it has U+FFFD")
    caplog.clear()
    source.write_text("one\ncafé\n", encoding="utf-8")
    assert len(list(cut(source, tmp_path / "out.txt", 3))) == 1
    assert caplog.messages == []


def test_a_column_of_translations_must_be_new(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    parquet.write_table(pyarrow.table({"text": ["One."], "deu_Latn": ["Eins."]}), source)
    with pytest.raises(ClientError, match="has a column 'deu_Latn' already"):
        check_columns(source, "text", ["fra_Latn", "deu_Latn"])
    check_columns(source, "text", ["fra_Latn"])
    check_columns(source, "text", [])


def test_a_block_of_a_long_row_group_is_not_the_row_group(tmp_path: Path) -> None:
    """Counted by Arrow itself, at the highest."""
    source, rows = tmp_path / "in.parquet", 20_000
    texts = [f"{number} {'word ' * 100}" for number in range(rows)]
    table = pyarrow.table({"id": range(rows), "text": texts})
    for size in (rows, 7_000):
        parquet.write_table(table, source, row_group_size=size, use_dictionary=False)
        blocks = list(cut(source, tmp_path / "out.parquet", 1_500))
        outer = pyarrow.default_memory_pool()
        pool = pyarrow.proxy_memory_pool(outer)
        pyarrow.set_memory_pool(pool)
        try:
            found = [read_table(block) for block in blocks[:1]]
            most = pool.max_memory()
            found += [read_table(block) for block in blocks[1:]]
        finally:
            pyarrow.set_memory_pool(outer)
        assert 0 < most < table.nbytes / 2
        assert pyarrow.concat_tables(found).equals(table)
        del found
