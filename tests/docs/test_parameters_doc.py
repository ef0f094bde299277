# SPDX-License-Identifier: Apache-2.0
"""docs/parameters.md is what the table says, and what it shows is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import parameters_doc
from ct2_triton import _core


def test_the_page_is_up_to_date() -> None:
    assert parameters_doc.main(["--check"]) == 0


def test_a_page_that_differs_fails_the_check_and_is_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    assert parameters_doc.main(["--check", "--file", str(page)]) == 1
    page.write_text(parameters_doc.PAGE.read_text(encoding="utf-8") + "x", encoding="utf-8")
    assert parameters_doc.main(["--check", "--file", str(page)]) == 1
    assert "page.md is out of date: run tools/parameters_doc.py" in capsys.readouterr().err
    assert parameters_doc.main(["--file", str(page)]) == 0
    assert page.read_bytes() == parameters_doc.PAGE.read_bytes()


def test_every_example_is_protobuf_text_with_the_tables_value() -> None:
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    text = parameters_doc.PAGE.read_text(encoding="utf-8")
    shown: dict[str, str] = {}
    for block in re.findall(r"```protobuf\n(.*?)```", text, flags=re.DOTALL):
        config = text_format.Parse(block, model_config_pb2.ModelConfig())
        shown |= {name: value.string_value for name, value in config.parameters.items()}
    rows = [row for row in _core.parameters() if row["scope"] != "request only"]
    assert shown == {row["name"]: row["example"] for row in rows}


def test_the_requests_of_the_page_are_accepted() -> None:
    text = parameters_doc.PAGE.read_text(encoding="utf-8")
    first, *others = map(ast.literal_eval, re.findall(r"parameters=(\{.*\})\)", text))
    kept = _core.check_decoding_options(first)
    assert (kept["beam_size"], kept["end_token"]) == (4, ["</s>"])
    rows = [row for row in _core.parameters() if row["scope"] == "request only"]
    assert others == [{row["name"]: row["example"]} for row in rows]
    for parameters in others:
        _core.check_decoding_options(parameters)
