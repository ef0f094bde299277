# SPDX-License-Identifier: Apache-2.0
"""The tests of core and backend again, on the oldest CTranslate2 of the supported range.

The first run uses the newest one, which constraints.txt pins. The oldest lies in a folder that
make fills; first on the module path, it is what `import ctranslate2`, the core and the servers
find. The binaries are the same.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support.commands import run

ROOT = Path(__file__).resolve().parents[2]
_RANGE = re.search(r'"ctranslate2>=([\d.]+),<=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
assert _RANGE is not None
OLDEST, NEWEST = _RANGE.groups()
FOLDER = ROOT / ".venvs" / f"ctranslate2-{OLDEST}"
# What knows no engine (tokenizers, cuts of texts, copies of a request's bytes, Triton's traces), or
# tests the commands around one.
LEFT_OUT = (
    "core/test_added_tokens.py",
    "core/test_segmenter.py",
    "core/test_tokenizer.py",
    "core/test_tokenizer_proof.py",
    "server/client",
    "server/gateway",
    "server/live",
    "server/test_ensemble.py",
    "server/test_mixed_load.py",  # a cancellation may end Triton 2.51 itself
    "server/test_request_memory.py",
    "server/test_rollout.py",
    "server/test_tracing.py",
)

SHARE = 4  # of the cases of each test; `make test` runs all of them on the newest


def test_the_first_run_uses_the_newest() -> None:
    assert f"ctranslate2=={NEWEST}\n" in (ROOT / "constraints.txt").read_text()


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    assert FOLDER.is_dir(), f"no {FOLDER}: run 'make test' once, or 'make {FOLDER}/.installed'"
    found = {"PYTHONPATH": str(FOLDER)}
    assert run(sys.executable, "-c", _PRINT_VERSIONS, **found).stdout.split() == [OLDEST, OLDEST]
    return found


def test_the_core_passes_on_the_oldest(environment: dict[str, str]) -> None:
    _run_tests(environment, "core")


@pytest.mark.server
def test_the_backend_passes_on_the_oldest(environment: dict[str, str]) -> None:
    _run_tests(environment, "server")


_PRINT_VERSIONS = """
import ctranslate2
from ct2_triton import _core
print(ctranslate2.__version__, _core.library_version())
"""


def _run_tests(environment: dict[str, str], folder: str) -> None:
    left_out = [name for name in LEFT_OUT if name.startswith(f"{folder}/")]
    assert left_out
    assert all((ROOT / "tests" / name).exists() for name in left_out)
    ignored = [f"--ignore=tests/{name}" for name in left_out]
    pytest_options = ["-q", "-p", "no:cacheprovider", "-m", "not long", "--share", str(SHARE)]
    command = [sys.executable, "-m", "pytest", *pytest_options, f"tests/{folder}", *ignored]
    run(*command, folder=ROOT, **environment)
