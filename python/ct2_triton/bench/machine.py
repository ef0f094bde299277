# SPDX-License-Identifier: Apache-2.0
"""Describe the machine and the versions of a run."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ct2_triton
from ct2_triton.serve.model_configs import count_gpus

_PACKAGES = ("ctranslate2", "tritonclient", "nvidia-pytriton", "transformers", "torch", "fastapi")


def describe_machine() -> dict[str, str]:
    """Return processor, cores, memory, load and system."""
    allowed, present = len(os.sched_getaffinity(0)), os.cpu_count()
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": f"{allowed}" if allowed == present else f"{allowed} of {present}",
        "memory": _field("/proc/meminfo", "MemTotal"),
        "GPUs": str(count_gpus()),
        "system": platform.platform(),
        "load before the run": f"{os.getloadavg()[0]:.1f}",
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the packages that contenders may use."""
    versions = {"ct2-triton": ct2_triton.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
