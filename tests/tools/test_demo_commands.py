# SPDX-License-Identifier: Apache-2.0
"""The commands of train_demo: what they print, and a sentence where something is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import run

TOOL = Path(__file__).resolve().parents[2] / "demo_model" / "train_demo"


def train_demo(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, TOOL, *arguments, code=None, **variables)


def test_samples_stand_below_their_english() -> None:
    done = train_demo("sample", "--domain", "weather", "--language", "deu", "--count", "3")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in lines] == ["1.", "deu", "2.", "deu", "3.", "deu"]
    assert all("[weather_" in line for line in lines[::2])


def test_one_file_is_checked_and_shown() -> None:
    done = train_demo("lint", "--file", str(TOOL / "grammar" / "keynote.yaml"), "--draws", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    templates = sum(line.startswith("# keynote_") for line in lines)
    assert lines[-1] == f"{templates} templates, 0 mistakes"
    assert sum(line.startswith("  nld  ") for line in lines) == 2 * templates > 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sample", "--domain", "wether"], 1, "no domain is called 'wether'; there are cycling,"),
        (["lint", "--file", "keynotes.yaml"], 1, "no domain is called 'keynotes'"),
        (["sample", "--count", "0"], 2, "argument --count: '0' is not a whole number of 1 or more"),
        (["evaluate", "--checkpoint", "nowhere"], 2, "there is no checkpoint in nowhere"),
        (["package", "--checkpoint", "nowhere"], 2, "there is no checkpoint in nowhere"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], code: int, said: str) -> None:
    done = train_demo(*arguments)
    assert done.returncode == code
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("package", "command"),
    [("babel", "sample"), ("yaml", "lint"), ("tqdm", "train"), ("sacrebleu", "evaluate")],
)
def test_a_missing_package_is_named(tmp_path: Path, package: str, command: str) -> None:
    folder = ["--folder", str(tmp_path / "training")] if command == "train" else []
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    done = train_demo(command, *folder, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"train_demo: {package}")
    assert "is not installed: make install, or pip install" in line


def test_text_is_parallel(tmp_path: Path) -> None:
    train_demo("text", str(tmp_path / "a"), "--count", "30")
    train_demo("text", str(tmp_path / "held-out"), "--count", "5", "--held-out", "--seed", "1")
    lines = {path.stem: path.read_text("utf-8").splitlines() for path in tmp_path.glob("a/*.txt")}
    assert sorted(lines) == sorted(["eng", "deu", "fra", "spa", "ita", "por", "nld"])
    assert {len(texts) for texts in lines.values()} == {30}
    held_out = (tmp_path / "held-out" / "eng.txt").read_text("utf-8").splitlines()
    assert len(held_out) == 5
    assert not set(held_out) & set(lines["eng"])


def test_alignments_find_values() -> None:
    done = train_demo("alignments", "--count", "60")
    assert done.returncode == 0, done.stderr
    head, _, *rows, last = done.stdout.splitlines()
    assert head == "| layer | heads | right |"
    right = {
        (layer, heads): float(share.rstrip("%"))
        for layer, heads, share in (row.strip("| ").split(" | ") for row in rows)
    }
    assert len(right) == 10
    assert right["1", "0, 1, 2, 3"] > max(75, right["0", "0, 1, 2, 3"])
    assert last.endswith("tokens of values, 60 sentences")
