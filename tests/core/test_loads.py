# SPDX-License-Identifier: Apache-2.0
"""Models load side by side; those of one folder load once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MEETING = Path(__file__).parents[1] / "native" / "meeting_loads.cc"
LOAD = """
import sys, threading
from ct2_triton import _core
models = {}
def load(i, folder):
    models[i] = _core.Translator(folder, {"decoding": "loop"})
threads = [threading.Thread(target=load, args=each) for each in enumerate(sys.argv[1:])]
for thread in threads: thread.start()
for thread in threads: thread.join()
options = {"beam_size": 1, "max_decoding_length": 5}
print(len({str(models[i].translate([[300, 50]], None, options)[0][0]["ids"]) for i in models}))
"""


@pytest.mark.plain_process
def test_two_models_load_side_by_side(tmp_path: Path, engine_model: Path) -> None:
    """Each of them waits, before it packs its first weights, until the other one is there, too."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    library, report = tmp_path / "meeting.so", tmp_path / "report"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", MEETING, "-o", library], check=True)
    folders = [str(shutil.copytree(engine_model, tmp_path / name)) for name in ("one", "two")]
    environment = {**os.environ, "LD_PRELOAD": str(library), "CT2_TEST_MEETING": str(report)}
    result = subprocess.run(
        [sys.executable, "-c", LOAD, *folders], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert report.read_text() == "22", "models that were there: alone 1, together 2"
    assert result.stdout.strip() == "1"  # both give the same answer
