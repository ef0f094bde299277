# SPDX-License-Identifier: Apache-2.0
"""What a type checker says of calls of both clients."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.checkout import ROOT

api = pytest.importorskip("mypy.api")

CALLS = """\
from ct2_triton.client import SyncTranslationClient, TranslationClient

async def calls(there: TranslationClient) -> None:
    reveal_type(await there.translate("a", targets="de"))
    reveal_type(await there.translate(["a"], targets=["de"]))

def blocking(here: SyncTranslationClient) -> None:
    reveal_type(here.translate("a", targets="de"))
    reveal_type(here.translate("a", targets=["de"]))
    reveal_type(here.translate(["a"]))
    reveal_type(here.translate(["a"], targets=["de"]))
    reveal_type(here.stream(["a"]))
    here.translate("a", timeout_s="long")
    here.stream(["a"], order="sorted")

SyncTranslationClient("localhost:8001")
TranslationClient("localhost:8001")
"""


def test_both_clients_have_the_same_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "calls.py").write_text(CALLS)
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    said, problems, _ = api.run(["--config-file=", "--ignore-missing-imports", "--follow-imports",
                                 "silent", str(tmp_path / "calls.py")])  # fmt: skip
    assert problems == ""
    shown = re.findall(r'Revealed type is "(.*)"', said)
    plain = [re.sub(r"\b(?:\w+\.)+", "", one) for one in shown]
    assert plain == [
        "Translation",
        "list[list[Translation]]",
        "Translation",
        "list[Translation]",
        "list[Translation]",
        "list[list[Translation]]",
        "Iterator[StreamItem]",
    ]
    codes = re.findall(r"error: .* \[([\w-]+)\]", said)
    assert codes == ["call-overload", "arg-type", "call-arg", "call-arg"]
