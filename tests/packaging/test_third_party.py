# SPDX-License-Identifier: Apache-2.0
"""What is vendored: unchanged since its script made it, with versions and licences."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "third_party" / "sentencepiece_lite"
SCRIPT = ROOT / "tools" / "vendor_sentencepiece_lite.sh"


def test_vendored_files_are_those_that_the_script_made() -> None:
    lines = (FOLDER / "SHA256SUMS").read_text().splitlines()
    expected = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {
        str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in FOLDER.rglob("*")
        if path.is_file() and path.name not in ("README.md", "SHA256SUMS")
    }
    assert len(found) > 20
    assert found == expected


def test_the_readme_names_what_the_script_takes() -> None:
    readme, script = (FOLDER / "README.md").read_text(), SCRIPT.read_text()
    for name in ("version", "sdist_sha256"):
        match = re.search(rf"^{name}=(\S+)$", script, re.MULTILINE)
        assert match is not None
        assert match[1] in readme


def test_each_licence_is_there() -> None:
    assert "Apache License" in (FOLDER / "LICENSE").read_text()
    assert "Apache-2.0" in (FOLDER / "LICENSE.flatbuffers").read_text()
    assert "Susumu Yata" in (FOLDER / "LICENSE.darts-clone").read_text()
    licences = re.search(r"^license-files = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert licences is not None
    assert '"third_party/*/LICENSE*"' in licences[1]
