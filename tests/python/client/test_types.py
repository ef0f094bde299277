# SPDX-License-Identifier: Apache-2.0
"""What a type checker says of calls of both clients."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.checkout import ROOT

pytest.importorskip("mypy")

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


def test_both_clients_have_the_same_types(tmp_path: Path) -> None:
    """In a process of its own, because mypy changes how often Python collects garbage."""
    (tmp_path / "calls.py").write_text(CALLS)
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports", "silent"]
    said = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(tmp_path / "calls.py")],
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
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
