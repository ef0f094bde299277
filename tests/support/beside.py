# SPDX-License-Identifier: Apache-2.0
"""What .ci/run runs beside the other tests, at the lowest priority."""

from __future__ import annotations

from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]

# Folders and files of tests/ that compute and start no server: they wait for nobody, and nobody
# waits for them. Single tests of other files have the marker `beside`.
BESIDE = (
    "bench/test_figures.py",
    "core",
    "packaging/test_release.py",
    "python/prepare",
    "python/terms",
    "tiny",
    "tools/test_demo_training.py",
    "tools/test_plan_scale.py",
    "tools/test_roofline.py",
    "tools/test_simulate_calls.py",
    "tools/test_simulate_loops.py",
)


def is_beside(path: Path) -> bool:
    """Whether a file of tests runs beside the others."""
    return path.is_relative_to(_TESTS) and any(path.is_relative_to(_TESTS / one) for one in BESIDE)
