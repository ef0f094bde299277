# SPDX-License-Identifier: Apache-2.0
"""The emulated GPU shows faults that a GPU punishes: each is one edit of the kernels."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.gpu_faults import FAULTS
from support import emulated_gpu
from support.checkout import ROOT
from support.tiny import tiny_engine_model


def computed(library: Path, folder: Path) -> np.ndarray | str:
    """What a library computes, or how it ends."""
    images = emulated_gpu.no_images(folder / "kernels.bin")
    output = folder / f"{library.parent.name}.npy"
    command = [sys.executable, str(ROOT / "tests" / "core" / "gpu_faults.py")]
    arguments = [str(path) for path in (library, images, tiny_engine_model("marian"), output)]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    return np.load(output) if run.returncode == 0 else run.stderr or f"exit {run.returncode}"


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    answer = computed(emulated_gpu.emulated_gpu(), tmp_path_factory.mktemp("right"))
    assert not isinstance(answer, str)
    first, second = np.split(answer, 2)
    assert np.array_equal(first, second)  # in both orders of threads
    return answer


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_shows(what: str, right: np.ndarray, tmp_path: Path) -> None:
    file, old, new = FAULTS[what]
    folder = tmp_path / "gpu"
    shutil.copytree(emulated_gpu.SOURCES, folder)
    text = (folder / file).read_text()
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new))

    answer = computed(emulated_gpu.emulated_gpu(folder), tmp_path)

    assert isinstance(answer, str) or not np.array_equal(answer, right)
