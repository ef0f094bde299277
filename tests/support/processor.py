# SPDX-License-Identifier: Apache-2.0
"""What of the compiled core runs on this processor: nothing where it is not built, as on arm64."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

# Folders of tests/ that test the core or servers with the backend.
FOLDERS = ("bench", "core", "reliability", "sanitize", "serve", "server")


@cache
def kernels() -> tuple[str, ...]:
    """Names of the kernels that run here; none where the core is not built."""
    try:
        from ct2_triton import _core
    except ImportError:
        return ()
    return tuple(dict.fromkeys([*_core.kernels(), *_core.kernels("float32")]))


def use_exact_int8() -> None:
    """Have CTranslate2 multiply int8 with MKL where oneDNN cuts sums off: without VNNI.

    To be called before CTranslate2 first computes. Servers that tests start inherit it.
    """
    try:
        found = Path("/proc/cpuinfo").read_text()
    except OSError:
        return
    if ("avx2" in found and "vnni" not in found) or "DNNL_MAX_CPU_ISA" in os.environ:
        os.environ.setdefault("CT2_USE_MKL", "1")


def is_intel() -> bool:
    """Whether CTranslate2 multiplies floats with MKL by itself here."""
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@cache
def missing_core() -> str | None:
    """Why the compiled core cannot be imported; None where it can."""
    try:
        from ct2_triton import _core  # noqa: F401
    except ImportError as error:
        return str(error)
    return None


def require(wanted: list[str]) -> None:
    """End the run before its first test if the processor has not the instructions of a kernel."""
    if lacking := [name for name in wanted if name and name not in kernels()]:
        raise pytest.UsageError(
            f"--require-kernels: this processor does not run {', '.join(lacking)}; "
            f"it runs {', '.join(kernels()) or 'none, since the core is not built'}"
        )


def skip_what_needs_the_core(report: pytest.CollectReport) -> None:
    """Turn the collection of a module that imports a core that is not built into a skip."""
    reason = missing_core() if report.failed else None
    if reason is not None and reason in report.longreprtext:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: {reason}")


def skip_without_core(items: list[pytest.Item]) -> None:
    """Skip tests with the marker `core`, and those that start a server, which has no backend."""
    reason = missing_core()
    if reason is None:
        return
    for item in items:
        marked = item.get_closest_marker("core") or item.get_closest_marker("server")
        if marked or {"server", "make_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.skip(reason=f"needs the backend: {reason}"))
