# SPDX-License-Identifier: Apache-2.0
"""The steps of GitHub's workflows: every line that runs is run here, or says why it cannot be."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import ct2_triton
from support.checkout import ROOT, git, needs_git

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What begins so is not run here, and why.
NOT_HERE = {
    ".ci/run": "it runs this test",
    "apt-get": "its job runs in a container of its own: tests/packaging/test_empty_machine.py",
    "cibuildwheel": "it starts Docker",
    "gh release": "it publishes",
    "mkdocs build": "tests/docs/test_site.py builds the site, as strictly",
    "pip install": "here it is installed: see the test of what other lines name",
    "tools/build_dist.sh": "tests/packaging/test_release.py runs it",
    "twine check": "the same",
}


def _jobs() -> dict[str, Any]:
    return {
        f"{path.stem}: {name}": job
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text())["jobs"].items()
    }


def _lines(job: Any) -> list[str]:
    return [step["run"] for step in job.get("steps", ()) if "run" in step]


RUN = {f"{name}: {line}": line for name, job in _jobs().items() for line in _lines(job)}
HERE = {name: line for name, line in RUN.items() if not line.startswith(tuple(NOT_HERE))}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a job gets: the tracked files, and nothing that was built."""
    for name in git("ls-files"):
        target = tmp_path / "checkout" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return tmp_path / "checkout"


def _run(line: str, checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """As GitHub does: a plain shell that stops at the first error."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line],
        cwd=checkout, env={"PATH": path, "HOME": str(checkout.parent), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip


@needs_git
@pytest.mark.parametrize("line", HERE.values(), ids=HERE)
def test_a_line_runs(line: str, checkout: Path) -> None:
    done = _run(line, checkout, GITHUB_REF_NAME=f"v{ct2_triton.__version__}")
    assert done.returncode == 0, done.stdout


@needs_git
def test_another_tag_than_the_version_is_refused(checkout: Path) -> None:
    (line,) = (line for line in RUN.values() if "GITHUB_REF_NAME" in line and "test" in line[:5])
    assert _run(line, checkout, GITHUB_REF_NAME="v0.0.0").returncode == 1


def test_what_other_lines_name_is_there() -> None:
    """And packages that a line installs are those that the tests use."""
    for begin in NOT_HERE:
        assert any(line.startswith(begin) for line in RUN.values()), begin
    pins = (ROOT / "constraints.txt").read_text()
    for line in RUN.values():
        if line.startswith("pip install"):
            option, constraints, *packages = shlex.split(line)[2:]
            assert (option, constraints) == ("-c", "constraints.txt"), line
            for package in packages:
                assert f"\n{package.partition('[')[0]}==" in pins, package
        elif line.startswith(("tools/", ".ci/")):
            assert os.access(ROOT / line.split()[0], os.X_OK), line


def test_an_action_is_pinned_by_its_commit() -> None:
    """A tag may be moved to other code; the comment names the release that the commit is."""
    used = [
        line.strip() for path in WORKFLOWS for line in path.read_text().splitlines()
        if "uses:" in line and "uses: ./" not in line
    ]  # fmt: skip
    assert len(used) > 10
    pinned = re.compile(r"(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+")
    assert [line for line in used if not pinned.fullmatch(line)] == []


@needs_git
def test_git_may_doubt_whose_the_checkout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user is not the one who checked out. git's own variable imitates that."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    plain = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=False)
    assert b"dubious ownership" in plain.stderr
    assert "pyproject.toml" in git("ls-files")
