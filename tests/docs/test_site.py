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


def test_links_lead_to_files_and_to_their_headings() -> None:
    folders = ("", "docs/", "benchmarks/**/", "demo_model/**/", "examples/", "tests/**/")
    pages = [page for folder in folders for page in ROOT.glob(f"{folder}*.md")]
    assert len(pages) > 40
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)]+)\)", _prose(page))
        if "://" not in link and not _leads_somewhere(page, link)
    ]
    assert dead == []


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not heading or heading in _headings(target))


def _headings(page: Path) -> set[str]:
    """Give the anchors of a page's headings, as mkdocs and code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
