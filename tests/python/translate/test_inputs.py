# SPDX-License-Identifier: Apache-2.0
"""Files of a clumsy user: another encoding, a folder for a file, a device for an output."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ct2_triton.bulk.blocks import cut, read_lines
from ct2_triton.errors import ClientError
from ct2_triton.translate.files import Job, plan
from ct2_triton.translate.inputs import read_inputs


def test_text_in_another_encoding_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    latin, good = tmp_path / "latin.txt", tmp_path / "good.txt"
    latin.write_bytes("Gate C19.\nCafé.\nTést.\n".encode("latin-1"))
    good.write_text("Café.\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "ct2_triton"):
        texts = [line.text for line in read_inputs([latin, good], as_json=False)]
    assert texts == ["Gate C19.", "Caf\ufffd.", "T\ufffdst.", "Café."]
    assert [record.getMessage() for record in caplog.records] == [
        f"{latin}:2: it has U+FFFD, which stands for bytes that are not UTF-8; if the text is in "
        "another encoding, convert it first"
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    """It cost the first line of JSON, and was part of the first text."""
    plain, listed = tmp_path / "plain.txt", tmp_path / "list.jsonl"
    plain.write_text("One.\n\ufeffTwo.\n", encoding="utf-8-sig")
    listed.write_text('"One."\n', encoding="utf-8-sig")
    lines = list(read_inputs([plain, listed], as_json=False))
    assert [line.text for line in lines] == ["One.", "\ufeffTwo.", "One."]
    assert all(line.problem is None for line in lines)
    for source, read in ((plain, lines[:2]), (listed, lines[2:])):
        (block,) = cut(source, tmp_path / "output.txt", 10)
        assert [line.text for line in read_lines(block)] == [line.text for line in read]


def test_a_folder_or_a_device_is_no_file(tmp_path: Path) -> None:
    text, folder = tmp_path / "text", tmp_path / "folder"
    text.write_text("One.\n", encoding="utf-8")
    (folder / "text").mkdir(parents=True)
    for sources, output, message in (
        ([folder], tmp_path / "new", f"cannot read {folder}: it is a folder or a device"),
        ([tmp_path / "no"], tmp_path / "new", f"cannot read {tmp_path}/no: there is no such file"),
        ([text], Path("/dev/null"), "cannot write /dev/null: it is a folder or a device; leave"),
        ([text], folder, f"cannot write {folder}/text: it is a folder or a device; leave out"),
    ):
        with pytest.raises(ClientError) as caught:
            plan(sources, output)
        assert message in str(caught.value)
    assert plan([text], tmp_path / "new") == [Job(text, tmp_path / "new")]
