# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of a model directory, read as CTranslate2 numbers their tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ct2_triton import _core
from support.tiny import tiny_engine_model
from tiny_models import FAMILIES


def tokens_of(directory: Path, unknown: str = "<unk>") -> list[list[str]]:
    """Of the source and the target; each token has its id, an unknown one the unknown one's."""
    *sides, _ = _core.vocabularies(str(directory), unknown)
    for tokens, ids in sides:
        first = {token: tokens.index(token) for token in set(tokens)}
        assert ids == [first[token] for token in tokens] + [first[unknown.encode()]]
    return [[token.decode() for token in tokens] for tokens, _ in sides]


def refused(directory: Path, code: str, text: str) -> None:
    with pytest.raises(_core.Error) as failure:
        _core.vocabularies(str(directory))
    assert failure.value.code == code
    assert text in str(failure.value)


@pytest.mark.parametrize("family", [*sorted(FAMILIES), "marian-two"])
def test_vocabularies_of_the_converter(family: str) -> None:
    directory = tiny_engine_model(family)
    shared = directory / "shared_vocabulary.json"
    files = [directory / f"{side}_vocabulary.json" for side in ("source", "target")]
    truth = [json.loads(file.read_text()) for file in ([shared] * 2 if shared.exists() else files)]
    assert tokens_of(directory) == truth
    assert _core.vocabularies(str(directory))[2] == shared.exists()


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        ("a\nb", ["a", "b", "<unk>"]),
        ("a\n<unk>\nb\n", ["a", "<unk>", "b"]),
        ("a\n\nb\n\n", ["a", "", "b", "", "<unk>"]),
        ("a\r\nb\r\n", ["a", "b", "<unk>"]),
        ("a\r\nb\n", ["a\r", "b", "<unk>"]),
        ("a\r\n\r\n", ["a", "", "<unk>"]),
        ("", ["<unk>"]),
        ("a\nb\na\n", ["a", "b", "a", "<unk>"]),
    ],
)
def test_lines(tmp_path: Path, content: str, tokens: list[str]) -> None:
    (tmp_path / "shared_vocabulary.txt").write_bytes(content.encode())
    assert tokens_of(tmp_path) == [tokens, tokens]


def test_which_file_counts(tmp_path: Path) -> None:
    refused(tmp_path, "not_found", "has no target vocabulary")
    (tmp_path / "target_vocabulary.txt").write_text("line\n")
    refused(tmp_path, "not_found", "has no source vocabulary")
    (tmp_path / "source_1_vocabulary.json").write_text('["one", "?"]')
    assert tokens_of(tmp_path, "?") == [["one", "?"], ["line", "?"]]
    (tmp_path / "source_2_vocabulary.txt").write_text("two\n")
    refused(tmp_path, "unsupported", "has 2 source vocabularies (factors)")
    (tmp_path / "source_vocabulary.txt").write_text("source\n")
    (tmp_path / "target_vocabulary.json").write_text('["target"]')
    assert tokens_of(tmp_path) == [["source", "<unk>"], ["target", "<unk>"]]
    (tmp_path / "shared_vocabulary.txt").write_text("shared\n")
    assert tokens_of(tmp_path) == [["shared", "<unk>"]] * 2


@pytest.mark.parametrize("content", ["", "[", '["a"] x', '{"a": 1}', '["a", 1]', '["\\ud800"]'])
def test_a_damaged_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "shared_vocabulary.json").write_text(content)
    refused(tmp_path, "invalid_argument", "shared_vocabulary.json is not a JSON array of strings")
    (tmp_path / "shared_vocabulary.json").unlink()
    (tmp_path / "shared_vocabulary.json").mkdir()
    refused(tmp_path, "unavailable", "shared_vocabulary.json cannot be read")
