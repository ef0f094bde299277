# SPDX-License-Identifier: Apache-2.0
"""SentencePiece models rewritten for SentencePiece Lite: byte for byte as its own release does.

That release needs a protobuf that the rest of the package does not run with. It lies in a folder
that make fills, and runs in a process of its own.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from ct2_triton import _core
from ct2_triton.prepare import shipped
from support.commands import run
from tiny_corpus import sentences

ROOT = Path(__file__).resolve().parents[2]
_VERSION = re.search(
    r"^version=(\S+)$", (ROOT / "tools" / "vendor_sentencepiece_lite.sh").read_text(), re.MULTILINE
)
assert _VERSION is not None
VERSION = _VERSION[1]
FOLDER = ROOT / ".venvs" / f"sentencepiece-{VERSION}"

_CONVERT = """
import sys, sentencepiece
assert sentencepiece.__version__ == sys.argv[1], sentencepiece.__version__
sentencepiece.convert_to_flatbuffer(model_file=sys.argv[2], output_file=sys.argv[3])
"""

MODELS: dict[str, dict[str, Any]] = {
    "bpe": {"model_type": "bpe"},
    "unigram": {"model_type": "unigram"},
    "bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 700},
    "symbols": {"model_type": "unigram", "user_defined_symbols": ["<2fr>", "▁<ent>", "New York"]},
    "merged symbols": {"model_type": "bpe", "user_defined_symbols": ["the ri", "<2fr>"]},
    "identity": {"model_type": "bpe", "normalization_rule_name": "identity"},
    "suffix": {"model_type": "unigram", "treat_whitespace_as_suffix": True},
    "all spaces": {
        "model_type": "unigram", "remove_extra_whitespaces": False, "add_dummy_prefix": False,
    },
    "other ids": {
        "model_type": "bpe", "unk_id": 3, "bos_id": 0, "eos_id": 2, "pad_id": 1,
        "unk_surface": "??", "bos_piece": "[CLS]",
    },
}  # fmt: skip


def trained(**options: Any) -> bytes:
    model = io.BytesIO()
    arguments = {"vocab_size": 400, "minloglevel": 2, "num_threads": 1, **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(1500, 1)), model_writer=model, **arguments
    )
    return model.getvalue()


def convert(model: bytes, scratch: Path) -> bytes:
    """The release's own conversion."""
    assert FOLDER.is_dir(), f"no {FOLDER}: run 'make test' once, or 'make {FOLDER}/.installed'"
    source, target = scratch / "a.model", scratch / "a.fb"
    source.write_bytes(model)
    run(sys.executable, "-c", _CONVERT, VERSION, source, target, PYTHONPATH=str(FOLDER))
    return target.read_bytes()


@pytest.mark.parametrize("kind", MODELS)
def test_a_trained_model_becomes_the_same_bytes(kind: str, tmp_path: Path) -> None:
    model = trained(**MODELS[kind])
    assert _core.flat_model(model) == convert(model, tmp_path)


def test_the_demo_model_becomes_the_same_bytes(tmp_path: Path) -> None:
    model = (shipped.FOLDER / "checkpoint" / "sentencepiece.bpe.model").read_bytes()
    assert _core.flat_model(model) == convert(model, tmp_path)


@pytest.mark.parametrize("kind", ["char", "word"])
def test_what_lite_does_not_split_is_refused(kind: str) -> None:
    model = trained(model_type=kind, vocab_size=60 if kind == "char" else 200)
    with pytest.raises(_core.Error, match="neither by unigrams nor by byte pair") as refused:
        _core.flat_model(model)
    assert refused.value.code == "unsupported"
