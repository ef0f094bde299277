# SPDX-License-Identifier: Apache-2.0
"""A text model tokenizes a sentence once for all of its target languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import run
from support.native import ROOT, built_core, link
from support.tokenizers import write_demo_tokenizer
from tiny_corpus import sentences

pytestmark = pytest.mark.plain_process  # its program is linked without a sanitizer

SIX = ("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "nld_Latn", "por_Latn")
SPLIT = "_ZNK9ct2triton10PieceModel5SplitESt17basic_string_viewIcSt11char_traitsIcEE"


class Counter:
    """Counts what the rows of a text take."""

    def __init__(self, folder: Path) -> None:
        self._program, self._tokenizer = folder / "tokenizations", folder / "tokenizer"
        write_demo_tokenizer(self._tokenizer)
        link(
            self._program,
            "tokenizations.cc",
            ROOT / "backend/src/serving/row_maker.cc",
            built_core() / "libct2triton_core.a",
            f"-Wl,--wrap={SPLIT}",
        )

    def count(self, text: str, targets: tuple[str, ...], longest: int = 500) -> dict[str, int]:
        arguments = (self._tokenizer, longest, ",".join(targets))
        counts: dict[str, int] = json.loads(run(self._program, *arguments, text=text).stdout)
        return counts


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Counter:
    return Counter(tmp_path_factory.mktemp("tokenizations"))


def test_a_sentence_is_tokenized_once_for_six_languages(counter: Counter) -> None:
    text = " ".join(sentences(50, seed=4))
    one, six = (counter.count(text, targets) for targets in (SIX[:1], SIX))
    assert one["rows"] == one["calls"] == six["calls"]
    assert six["rows"] == 6 * one["rows"]
    assert six["bytes"] == one["bytes"] < len(text.encode())


def test_a_part_of_a_long_sentence_is_looked_for_and_tokenized_once(counter: Counter) -> None:
    text = " ".join(f"gate {i}" for i in range(2_000))
    one, six = (counter.count(text, targets, longest=100) for targets in (SIX[:1], SIX))
    assert one["rows"] > 100
    assert one["calls"] == six["calls"] == 2 * one["rows"]
    assert six["rows"] == 6 * one["rows"]
    assert six["bytes"] == one["bytes"] < 5 * len(text)
