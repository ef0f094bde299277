# SPDX-License-Identifier: Apache-2.0
"""README, start pages and guides: each command and program runs, and prints what they show."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from docs import pages
from support.tiny import tiny_checkpoint

HUB_ID = "facebook/nllb-200-distilled-600M"
PAGES = (
    "README.md",
    "docs/quickstart.md",
    "docs/troubleshooting.md",
    "docs/preparing.md",
    "docs/shortlists.md",
    "docs/commands.md",
    "docs/text.md",
    "docs/terms.md",
    "docs/live.md",
    "docs/gateway.md",
    "docs/quality.md",
    "docs/migration.md",
)
# What a block ```bash holds instead, so that a test does not run it.
NOT_RUN = (
    r"pip install|apt-get|git clone|make ",  # installs; tests/packaging does
    r"docker|podman|install-backend",  # tests/packaging and tests/deploy
    r"arecord|faster-whisper|talk\.wav",  # a microphone, a model hub
    r"node |go run",  # tests/examples
    r"export |eval |^cd ",  # changes the shell itself
    r"madlad|opus-mt|argosmodel|my-",  # checkpoints that are not here
)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for the hub: a tiny model of the family, under the name of the page."""
    folder = tmp_path_factory.mktemp("hub")
    shutil.copytree(tiny_checkpoint("nllb"), folder / HUB_ID)
    return folder


@pytest.mark.server
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_and_prints_what_it_shows(name: str, hub: Path, tmp_path: Path) -> None:
    page = pages.ROOT / name
    if HUB_ID in page.read_text(encoding="utf-8"):
        shutil.copytree(hub, tmp_path, dirs_exist_ok=True)
    for block in pages.run(page, tmp_path):
        if block.expected is not None:
            pattern = pages.expected_pattern(block.expected)
            shown = (block.output + block.errors).rstrip() + "\n"
            assert re.fullmatch(pattern, shown), f"{block.code}\n{shown}"


@pytest.mark.parametrize("name", [*PAGES, "docs/installation.md"])
def test_what_does_not_run_has_a_reason(name: str) -> None:
    text = (pages.ROOT / name).read_text(encoding="utf-8")
    for code in re.findall(r"^```bash\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        assert any(re.search(reason, code) for reason in NOT_RUN), code


@pytest.mark.parametrize("name", ["README.md", "docs/installation.md"])
def test_the_range_of_engines_is_the_one_that_pip_installs(name: str) -> None:
    pyproject = (pages.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'"ctranslate2>=([\d.]+),<=([\d.]+)"', pyproject)
    assert match is not None
    page = (pages.ROOT / name).read_text(encoding="utf-8")
    assert set(match.groups()) <= set(re.findall(r"\d[\d.]*\d", page))


def test_every_way_of_leaving_out_output_is_understood() -> None:
    pattern = pages.expected_pattern("one ... (x)\n...\nlast\n")
    assert re.fullmatch(pattern, "one two (x)\nlast\n")
    assert re.fullmatch(pattern, "one two (x)\na\nb\nlast\n")
    assert not re.fullmatch(pattern, "one two (x)\na\nb\nlost\n")
