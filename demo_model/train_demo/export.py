# SPDX-License-Identifier: Apache-2.0
"""Writes the trained model as the package ships it: the checkpoint, and its converted form."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from train_demo.corpus import HELD_OUT_SHARE, training_sentences
from train_demo.grammar import FOLDER, read_grammar
from train_demo.languages import FLORES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import M2M100ForConditionalGeneration, NllbTokenizer

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "ct2_triton" / "demo_model"
CHECKPOINT = "checkpoint"
CARD = Path(__file__).parent / "card.md"
LICENCE = Path(__file__).resolve().parents[2] / "LICENSE"
RECORD = "training.json"
# Keys of the preparation's record that are valid for every copy of the result.
_RECORDED = ("conversion", "versions", "family", "repairs", "verification", "placeholders")
_QUALITY_SENTENCES = 2500  # some of them equal
_PACKAGES = ("torch", "transformers", "sentencepiece", "ctranslate2", "babel", "numpy")


def write_checkpoint(
    model: M2M100ForConditionalGeneration, tokenizer: NllbTokenizer, folder: Path
) -> None:
    """Write a Hugging Face checkpoint: safetensors in float16, tokenizer, card, licence."""
    model.half().save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    shutil.copyfile(CARD, folder / "README.md")
    shutil.copyfile(LICENCE, folder / "LICENSE")


def write_record(folder: Path, training: Mapping[str, object]) -> None:
    """Write how the weights came about: seed, sizes, versions, checksums of grammar and files."""
    record = {
        **training,
        "held_out_share": HELD_OUT_SHARE,
        "python": ".".join(map(str, sys.version_info[:3])),
        "versions": {name: metadata.version(name) for name in _PACKAGES},
        "grammar": grammar_checksums(),
        "files": {
            path.name: _sha256(path)
            for path in sorted(folder.iterdir())
            if path.name != RECORD and path.is_file()
        },
    }
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def grammar_checksums() -> dict[str, str]:
    """SHA-256 of each file of the grammar."""
    return {path.name: _sha256(path) for path in sorted(FOLDER.glob("*.yaml"))}


def convert_for_package(checkpoint: Path, package: Path = PACKAGE) -> None:
    """Run ct2-prepare on the checkpoint and put its result beside the checkpoint.

    Args:
        checkpoint: What `write_checkpoint` wrote; also the one in the package.
        package: The folder in the package; what it has of an earlier checkpoint is replaced.
    """
    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepare.pipeline import prepare
    from ct2_triton.prepare.shipped import ALIGNMENT
    from ct2_triton.prepared_model import LANGUAGES_NAME, MANIFEST_NAME, write_json

    with tempfile.TemporaryDirectory() as folder:
        texts = (_quality_text(Path(folder) / "quality.txt"),)
        made = Path(folder) / "repository"
        prepared = prepare(
            PrepareOptions(
                str(checkpoint.resolve()),
                made,
                "demo",
                quality_texts=texts,
                settings={ALIGNMENT.name: ALIGNMENT.value},
            ),
            report=print,
        )
        if checkpoint.resolve() != (package / CHECKPOINT).resolve():
            _replace(package / CHECKPOINT, checkpoint)
        _replace(package / "model", prepared.directory / "1" / "model")
        shutil.copyfile(prepared.tokenizer_folder / LANGUAGES_NAME, package / LANGUAGES_NAME)
        write_json(package / MANIFEST_NAME, {name: prepared.manifest[name] for name in _RECORDED})
    size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file())
    print(f"{package}: {size / 1e6:.1f} MB, {len(FLORES)} languages")


def _quality_text(file: Path) -> str:
    """Write sentences that training may see, for the statistics of the verdicts.

    Texts that a server splits are left out: the model has not learnt their parts.
    """
    from ct2_triton.engine_library import load_core

    core = load_core()
    source, *targets = FLORES.values()
    sentences = training_sentences(read_grammar(), _QUALITY_SENTENCES, seed=4)
    texts = [one.texts["eng"] for one in sentences]
    whole = [text for text in texts if len(core.segment(text.encode(), source)) == 1]
    file.write_text("".join(f"{text}\n" for text in whole), encoding="utf-8")
    return f"{source}:{','.join(targets)}={file}"


def _replace(folder: Path, source: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
