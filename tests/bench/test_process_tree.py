# SPDX-License-Identifier: Apache-2.0
"""What a tree of processes uses, on a real tree whose use is known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ct2_triton.bench import comparison

MIB = 2**20
# A parent whose child holds 64 MiB that were written to, has computed for a second and some ticks,
# to which the kernel rounds down, and says so.
CHILD = (
    "import sys, time; held = bytearray(b'1') * (64 << 20)\n"
    "while time.process_time() < 1.1: pass\n"
    "print('done', flush=True); sys.stdin.read()"
)
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


@pytest.fixture
def parent() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"done\n"
        yield process.pid
        process.stdin.close()


def test_a_child_counts_for_its_parent(parent: int) -> None:
    members = [one.pid for one in comparison._processes(parent)]
    assert members[0] == parent
    assert len(members) == 2
    assert os.getpid() not in members
    # The parent itself has hardly worked: nearly all of it is the child's second.
    assert comparison.cpu_s(parent) >= 1.0
    memory = comparison.memory_of(parent)
    assert memory.rss_bytes > 64 * MIB
    # Two interpreters share pages: proportional memory counts those once.
    assert 64 * MIB < memory.pss_bytes < memory.rss_bytes


def test_the_machine_has_been_busy_for_at_least_what_a_process_used(parent: int) -> None:
    assert comparison.machine_cpu_s() > comparison.cpu_s(parent)
