# SPDX-License-Identifier: Apache-2.0
"""The script for a checkpoint of the hub, against a hub of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton.prepare.shipped import FOLDER
from support.checkout import ROOT
from support.hub_server import running_hub

HUB_ID = "test-org/demo"
TEXT = "The ticket office opens at 5:45.\nOn the A12, a bus has broken down.\n"


def _real_model(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    with running_hub() as hub:
        hub.add(HUB_ID, FOLDER / "checkpoint")
        return subprocess.run(
            [sys.executable, ROOT / "benchmarks/real_model.py", HUB_ID, *options],
            env={**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "cache")},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.server
def test_a_checkpoint_of_the_hub_becomes_a_page_of_results(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT)
    (tmp_path / "reference").write_text(
        "Der Schalter öffnet um 5:45 Uhr.\nAuf der A12 blockiert ein Bus.\n"
    )
    options = ["--text", "text", "--reference", "reference", "--minutes", "0.03"]
    options += ["--contender", "ct2-triton-int8", "--contender", "ctranslate2-int8"]
    result = _real_model(tmp_path, *options, "--scenario", "single:1")
    assert result.returncode == 0, result.stderr

    page = (tmp_path / "real-model" / "page.md").read_text()
    translation = (tmp_path / "real-model" / "translation.de.txt").read_text().splitlines()
    assert "5:45" in translation[0]
    assert "A12" in translation[1]
    assert f"# {HUB_ID}\n" in page
    assert "chrF2 = " in page
    assert '"decoded_rows"' in page
    assert "## single:1" in page
    assert "| ct2-triton-int8 | 1 |" in page
    assert "$ ct2-bench --model real-model/model_repository/model " in result.stdout


@pytest.mark.server
def test_a_checkpoint_of_a_released_models_sizes_becomes_a_page(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT)
    options = ["--from", "eng_Latn", "--to", "deu_Latn", "--text", "text", "--minutes", "0.03"]
    options += ["--contender", "ct2-triton-int8", "--scenario", "single:1"]
    script = ROOT / "benchmarks/real_model_shape.py"
    command = [sys.executable, script, "transformer-base", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    page = (tmp_path / "real-model" / "page.md").read_text()
    assert "# random/transformer-base\n" in page
    assert "| ct2-triton-int8 | 1 |" in page
    translation = (tmp_path / "real-model" / "translation.deu_Latn.txt").read_text()
    assert len(translation.splitlines()) == len(TEXT.splitlines())


def test_a_reference_of_another_length_is_refused_before_a_download(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT)
    (tmp_path / "reference").write_text("Guten Morgen.\n")
    result = _real_model(tmp_path, "--text", "text", "--reference", "reference")
    assert result.returncode == 1
    assert "text has 2 lines and reference has 1" in result.stderr
    assert not list((tmp_path / "real-model").iterdir())


def test_too_short_a_text_is_refused_before_a_download(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT)
    result = _real_model(tmp_path, "--text", "text")
    assert result.returncode == 1
    assert "text has 2 different sentences; single:16 needs 32" in result.stderr
    assert not list((tmp_path / "real-model").iterdir())
