# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, rendered, and manifests held against published schemas."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "ct2-triton"
KSERVE = ROOT / "deploy" / "kserve"
TOOLS = ROOT / ".venvs" / "kubernetes"
CHECKER = ROOT / "tests" / "deploy" / "check_manifests.py"


def helm_binary() -> str | None:
    """The helm of the set-up, else one on PATH; None: there is none."""
    unpacked = TOOLS / "bin" / "helm"
    return str(unpacked) if unpacked.exists() else shutil.which("helm")


needs_helm = pytest.mark.skipif(
    helm_binary() is None, reason="`make test` could fetch no helm from npm"
)
needs_schemas = pytest.mark.skipif(
    not (TOOLS / "schemas" / "kserve").is_dir(),
    reason="`make test` could not fetch the schemas in tests/deploy/schemas.txt",
)


def helm(
    *arguments: str | Path, values: dict[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm; the values go in as a file would."""
    binary = helm_binary()
    assert binary is not None
    further = [] if values is None else ["--values", "-"]
    return subprocess.run(
        [binary, *map(str, arguments), *further],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The manifests of a release `news` in the namespace `translation`."""
    text = _rendered(json.dumps(values or {}))
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


@cache
def _rendered(values: str) -> str:
    place = ("--namespace", "translation")
    result = helm("template", "news", CHART, *place, values=json.loads(values))
    assert result.returncode == 0, result.stderr
    return result.stdout


def of_kind(manifests: list[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    """The one manifest of this kind (and this end of its name)."""
    (found,) = (
        manifest
        for manifest in manifests
        if manifest["kind"] == kind and manifest["metadata"]["name"].endswith(name or "")
    )
    return found


def mistakes(manifests: list[dict[str, Any]]) -> list[str]:
    """What the published schemas say against them, a line a mistake."""
    result = subprocess.run(
        [sys.executable, CHECKER],
        input=yaml.safe_dump_all(manifests),
        env={**os.environ, "PYTHONPATH": str(TOOLS / "schemas")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]
