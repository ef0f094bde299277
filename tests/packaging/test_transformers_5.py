# SPDX-License-Identifier: Apache-2.0
"""Preparation and tokenizers again, with the newest transformers of the supported range.

The first run uses the oldest one, which constraints.txt pins. The newest lies with its
huggingface_hub and tokenizers in a folder that make fills; first on the module path, it is what is
imported. All other packages, PyTorch too, are those of the first run, which also makes the tiny
checkpoints.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.commands import run
from support.tiny import tiny_checkpoint, tiny_engine_model
from tiny_families import FAMILIES
from tiny_models import TinyOptions

ROOT = Path(__file__).resolve().parents[2]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints-transformers-5.txt").read_text().splitlines()
    if "==" in line
)
FOLDER = ROOT / ".venvs" / f"transformers-{PINS['transformers']}"
TESTS = (
    "test_tokenizers.py",
    "test_families.py::test_outputs_are_those_of_transformers",
    "test_added_tokens.py",
    "test_hub.py",
)
# Whole preparations whose calls of huggingface_hub the other tests of the file make, too.
LEFT_OUT = (
    "test_hub.py::test_a_converted_repository",
    "test_hub.py::test_a_download_that_keeps_breaking_is_resumed_by_the_next_run",
    "test_hub.py::test_a_revision_is_asked_for_and_recorded",
)


def test_the_first_run_uses_the_oldest() -> None:
    assert "transformers==4.57.6\n" in (ROOT / "constraints.txt").read_text()
    assert "transformers>=4.57.6," in (ROOT / "pyproject.toml").read_text()


def test_models_are_prepared_with_the_newest() -> None:
    assert FOLDER.is_dir(), f"no {FOLDER}: run 'make test' once, or 'make {FOLDER}/.installed'"
    make_checkpoints()
    environment = {"PYTHONPATH": str(FOLDER), "OMP_NUM_THREADS": "1"}
    assert run(sys.executable, "-c", _PRINT_VERSIONS, **environment).stdout.split() == [
        PINS["transformers"],
        PINS["huggingface_hub"],
        PINS["tokenizers"],
    ]
    tests = [f"tests/python/prepare/{name}" for name in TESTS]
    left_out = [f"--deselect=tests/python/prepare/{name}" for name in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *left_out, *tests]
    run(*command, folder=ROOT, **environment)


def make_checkpoints() -> None:
    """What the tests need; a version of transformers cannot make them all alike."""
    for family in FAMILIES:
        tiny_checkpoint(family)
    tiny_engine_model("nllb", quantization="int8")
    tiny_checkpoint("nllb", TinyOptions(vocab_size=60_000))


_PRINT_VERSIONS = """
import huggingface_hub, tokenizers, transformers
print(transformers.__version__, huggingface_hub.__version__, tokenizers.__version__)
"""
