# SPDX-License-Identifier: Apache-2.0
"""The site is built as its workflow builds it: a link or an anchor that leads nowhere fails it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from support.wheels import run_program

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_builds(tmp_path: Path) -> None:
    mkdocs = Path(sys.executable).with_name("mkdocs")
    run_program(
        mkdocs, "build", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", tmp_path
    )
    api = (tmp_path / "python-api" / "index.html").read_text()
    for name in (
        "TranslationClient.translate",
        "TranslationClient.connect",
        "ServerOptions",
        "prepare",
    ):
        assert name in api, f"{name} is not in the API reference"
    parameters = (tmp_path / "parameters" / "index.html").read_text()
    assert "max_batch_tokens" in parameters
    for page in tmp_path.rglob("*.html"):
        assert 'href="../README.md' not in page.read_text(), page


def test_links_of_pages_outside_of_the_site_lead_to_files() -> None:
    names = ["*.md", "benchmarks/*.md", "demo_model/**/*.md", "examples/*.md", "tests/**/*.md"]
    pages = [page for name in names for page in ROOT.glob(name)]
    assert len(pages) > 8
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert dead == []
