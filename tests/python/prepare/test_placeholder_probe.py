# SPDX-License-Identifier: Apache-2.0
"""Which placeholders a model copies is tried when it is prepared."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.new_model import NewModel
from ct2_triton.prepare.placeholder_probe import Copied, _try_each, add_placeholders
from ct2_triton.prepared_model import PreparedModel, TokenRules
from ct2_triton.terms.finding import TermText
from ct2_triton.terms.placeholders import KINDS, mark, restore
from python.prepare.conftest import Prepared
from support.models_command import ct2_models
from support.prepared import prepare_tiny

pytestmark = pytest.mark.usefixtures("short_proofs")


class Copier:
    """Copies all but some letters."""

    def __init__(self, lost: str) -> None:
        self._lost = str.maketrans("", "", lost)
        self.asked: list[Any] = []

    def survivors(self, marks: Iterable[tuple[TermText, Any]]) -> list[tuple[Any, bool]]:
        found = []
        for text, kind in marks:
            self.asked.append(kind)
            marked = mark(text, kind)
            assert marked is not None
            answer = marked.text.translate(self._lost)
            found.append((kind, restore(text, marked, answer) is not None))
        return found


@pytest.mark.parametrize(
    ("lost", "kinds"),
    [
        ("", ("X{}", "ID{}")),
        ("XD", ("#{}", "[{}]")),
        ("".join(KINDS), ()),
    ],
)
def test_the_kinds_that_come_back_are_chosen(lost: str, kinds: tuple[str, ...]) -> None:
    model: Any = Copier(lost)
    assert Copied(_try_each(model, KINDS)).kinds == kinds
    assert model.asked.count("X{}") == (2 if "X" in lost else 6)  # the second round is for some


def test_a_kind_that_comes_back_rarely_is_none_to_try() -> None:
    assert Copied({"X{}": 0.2, "[{}]": 0.9, "#{}": 0.3, ("Ada", "Bo"): 0.95}).kinds == (
        ("Ada", "Bo"),
        "[{}]",
    )


@pytest.mark.core
def test_a_model_without_sense_copies_nothing_and_this_is_written(prepared: Prepared) -> None:
    model = prepared("nllb")
    assert model.rules.placeholders == ()
    assert model.manifest["placeholders"] == {"chosen": ["none"], "shares": {}}
    shown = ct2_models(model.directory.parent, "show", "nllb")
    assert "placeholders:\n  chosen: none\n" in shown


@pytest.mark.core
def test_a_family_with_two_vocabularies_is_tried_too(prepared: Prepared) -> None:
    assert prepared("marian").rules.placeholders == ()


@pytest.mark.core
def test_the_cost_is_told_and_it_can_be_left_out(tmp_path: Path) -> None:
    lines: list[str] = []
    options = PrepareOptions("demo", tmp_path, "float", quantization="float32")
    model = prepare(options, lines.append)
    [line] = [line for line in lines if line.startswith("placeholders that it copies: ")]
    assert " rows in " in line
    [names] = model.rules.placeholders or ()
    assert len(names) == 8  # it loses every sign, and knows many names
    without = prepare_tiny("nllb", tmp_path, "without", placeholders=False)
    assert without.rules.placeholders is None
    assert "placeholders" not in without.manifest


def test_without_the_compiled_core_it_is_said_and_the_model_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CT2_TRITON_CORE", "/nonexistent")
    monkeypatch.delitem(sys.modules, "ct2_triton._core", raising=False)
    rules = prepare_tiny("nllb", tmp_path, "made", placeholders=False).rules
    lines: list[str] = []
    options = PrepareOptions("demo", tmp_path)
    assert add_placeholders(NewModel(tmp_path, options, lines.append), rules) == {}
    [line] = lines
    assert line == (
        "placeholders were not tried: CT2_TRITON_CORE names /nonexistent, which is not there"
    )


def test_the_shipped_model_names_what_it_copies(tmp_path: Path) -> None:
    shipped = prepare(PrepareOptions("demo", tmp_path))
    assert shipped.rules.placeholders is not None
    assert "Lindner" in shipped.rules.placeholders[0]
    assert shipped.manifest["placeholders"]["chosen"]


def test_versions_may_copy_different_kinds(tmp_path: Path) -> None:
    model = prepare_tiny("nllb", tmp_path, "demo")
    prepare_tiny("nllb", tmp_path, "demo", as_version=2, placeholders=True)
    assert PreparedModel.read(model.directory).rules.placeholders is None


def test_a_folder_of_an_earlier_version_has_none(prepared: Prepared, tmp_path: Path) -> None:
    rules = prepared("nllb").rules
    rules.write(tmp_path)
    assert TokenRules.read(tmp_path) == rules
    text = (tmp_path / "languages.json").read_text().replace('"placeholders"', '"other"')
    (tmp_path / "languages.json").write_text(text)
    assert TokenRules.read(tmp_path).placeholders is None
