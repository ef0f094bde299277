# SPDX-License-Identifier: Apache-2.0
"""The site is built as its workflow builds it: a link or an anchor that leads nowhere fails it."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from ct2_triton import errors
from support.wheels import run_program

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_builds(tmp_path: Path) -> None:
    mkdocs = Path(sys.executable).with_name("mkdocs")
    run_program(
        mkdocs, "build", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", tmp_path
    )
    api = (tmp_path / "python-api" / "index.html").read_text()
    assert "TranslationClient.connect" in api
    anchors = set(re.findall(r'id="(ct2_triton[\w.]*)"', api))
    assert {name for name in _public_names() if name not in anchors} == set()
    parameters = (tmp_path / "parameters" / "index.html").read_text()
    assert "max_batch_tokens" in parameters
    for page in tmp_path.rglob("*.html"):
        assert 'href="../README.md' not in page.read_text(), page


def _public_names() -> set[str]:
    """What the packages of the first level export, and all errors."""
    folders = [path.parent.name for path in (ROOT / "python" / "ct2_triton").glob("*/__init__.py")]
    modules = [importlib.import_module(f"ct2_triton.{name}") for name in folders]
    names = {f"{one.__name__}.{name}" for one in modules for name in getattr(one, "__all__", ())}
    names |= {f"{errors.__name__}.{name}" for name, one in vars(errors).items() if _is_error(one)}
    assert len(names) > 40
    return names


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, errors.Ct2TritonError)


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
