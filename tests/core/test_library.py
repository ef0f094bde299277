# SPDX-License-Identifier: Apache-2.0
"""The CTranslate2 library under the core: checked, shared with the Python module, and private."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ctranslate2
import pytest

from ct2_triton import _core


def test_our_declarations_fit_the_library() -> None:
    _core.check_library()
    assert _core.library_version() == ctranslate2.__version__


def test_the_library_is_mapped_once() -> None:
    """The core and the Python module run on one copy."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    files = {line.split()[-1] for line in maps if "libctranslate2" in line}
    assert len(files) == 1


@pytest.mark.parametrize("first", ["ct2_triton", "torch", "ctranslate2"])
def test_it_lives_beside_torch(first: str) -> None:
    """Both carry an MKL and an OpenMP: neither may find the other's."""
    code = f"""
import {first}
from ct2_triton import _core
_core.check_library()
import torch, ctranslate2
layer = torch.nn.Linear(256, 256)
loss = layer(torch.randn(64, 256)).square().mean()
loss.backward()
print("fine", float(loss) > 0)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["fine", "True"]


def test_cores_are_counted_by_affinity() -> None:
    code = "import os; os.sched_setaffinity(0, {next(iter(os.sched_getaffinity(0)))});"
    code += "from ct2_triton import _core; print(_core.usable_cores())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "1"


def test_threads_that_need_the_core_first_get_one() -> None:
    """Python's lock around imports does not cover the core's: it is found and opened by us."""
    code = """
import threading, time
from importlib.machinery import ExtensionFileLoader
made, execute, gate = [], ExtensionFileLoader.exec_module, threading.Barrier(8)
def slow(loader, module):
    if module.__name__ == "ct2_triton._core":
        made.append(module)
        time.sleep(0.1)
    execute(loader, module)
ExtensionFileLoader.exec_module = slow
usable = []
def use():
    gate.wait()
    from ct2_triton import _core
    usable.append(len(_core.parameters()) > 0)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(made), len(usable))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == ["1", "8"], result.stderr
