# SPDX-License-Identifier: Apache-2.0
"""What README.md tells a user to type, typed.

The blocks run as they stand, but for what a test must not do: install again, take fixed ports, and
download 2.5 GB. The hub id becomes a local folder of the same name, a tiny model of the family.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import run
from support.ports import free_ports
from support.tiny import tiny_checkpoint

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
HUB_ID = "facebook/nllb-200-distilled-600M"
NAME = "nllb-200-distilled-600M"
README = (ROOT / "README.md").read_text(encoding="utf-8")
TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def _command(start: str) -> str:
    """The line of the README that starts like this."""
    (block, *_) = [block for block in _blocks("sh") if re.search(f"^{start}", block, re.MULTILINE)]
    (found,) = [line for line in block.splitlines() if line.startswith(start)]
    return found


def _shell(line: str, folder: Path, **variables: str) -> str:
    commands = Path(sys.executable).parent
    path = f"{commands}:{os.environ['PATH']}"
    return run("bash", "-c", line, folder=folder, PATH=path, **variables).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the user works; nothing is there but what stands for the hub."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(tiny_checkpoint("nllb"), folder / HUB_ID)
    return folder


@pytest.fixture(scope="module")
def grpc_url(folder: Path) -> Iterator[str]:
    """The server, started as the README says, on other ports."""
    line = _command("ct2-serve facebook").replace("ct2-serve", "exec ct2-serve")
    assert HUB_ID in line
    commands = Path(sys.executable).parent
    process = subprocess.Popen(
        ["bash", "-c", f"{line} --free-ports --log-file server.log"],
        cwd=folder,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"ready; models: {NAME}\n"
    yield process.stdout.readline().split()[1]
    process.terminate()
    assert process.wait() == 0


def test_a_sentence_is_translated_into_four_languages(folder: Path, grpc_url: str) -> None:
    (block,) = [block for block in _blocks("sh") if "--to deu_Latn" in block]
    output = _shell(block.replace("ct2-translate", f"ct2-translate --url {grpc_url}"), folder)
    assert [line.split()[0] for line in output.splitlines()] == TARGETS
    assert all(len(line.split()) > 1 for line in output.splitlines())


def test_the_first_commands_translate(tmp_path: Path) -> None:
    """The first block but its first line, on other ports: the server starts while a line waits."""
    install, serve, translate = _blocks("sh")[0].splitlines()
    assert install == 'pip install ".[server,client]"'
    ports = dict(zip(("http", "grpc", "metrics"), free_ports(), strict=True))
    flags = " ".join(f"--{name}-port {port}" for name, port in ports.items())
    url = f"ct2-translate --url localhost:{ports['grpc']}"
    script = "\n".join([
        serve.replace(" &", f" {flags} --log-file server.log >ready.txt &"),
        translate.replace("ct2-translate", url),
        "kill %1; wait",
    ])  # fmt: skip
    assert _shell(script, tmp_path).splitlines() == [
        "deu_Latn  Der Fahrkartenschalter \u00f6ffnet um 5:45 Uhr.",
        "fra_Latn  Le guichet ouvre \u00e0 5 h 45.",
        "spa_Latn  La taquilla abre a las 5:45.",
    ]


def test_the_python_example_translates_and_streams(folder: Path, grpc_url: str) -> None:
    (code,) = _blocks("python")
    assert '"localhost:8001"' in code
    script = folder / "example.py"
    script.write_text(code.replace("localhost:8001", grpc_url))
    output = _shell("python example.py", folder)
    translation, *items = output.splitlines()
    assert translation.strip()
    assert sorted(tuple(item.split()[:2]) for item in items) == [
        ("0", "deu_Latn"), ("0", "fra_Latn"), ("1", "deu_Latn"), ("1", "fra_Latn"),
    ]  # fmt: skip


def test_the_python_of_the_readme_is_the_one_that_is_checked() -> None:
    assert len(_blocks("python")) == 1
    assert len(_blocks("sh")) == len(re.findall(r"^```sh$", README, flags=re.MULTILINE)) > 3


def test_every_link_to_a_file_leads_somewhere() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_range_of_engines_is_the_one_that_pip_installs() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    match = re.search(r'"ctranslate2>=([\d.]+),<=([\d.]+)"', pyproject)
    assert match is not None
    assert f"wheels {match[1]} to {match[2]}" in README
