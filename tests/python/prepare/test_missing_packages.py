# SPDX-License-Identifier: Apache-2.0
"""A package that is not installed is named before anything is written, and so is what brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ct2_triton.errors import MissingPackageError
from ct2_triton.prepare import PrepareOptions, environment, prepare
from ct2_triton.prepare.options import ShortlistOptions
from support.tiny import tiny_checkpoint


@pytest.mark.parametrize(
    ("package", "source", "said"),
    [
        ("langcodes", "nllb", r"langcodes; pip install 'ct2-triton\[prepare\]'"),
        ("language_data", "nllb", r"language_data; pip install 'ct2-triton\[prepare\]'"),
        ("regex", "demo with a shortlist", "not installed: regex"),
    ],
)
def test_a_missing_package_is_named(
    package: str, source: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = tmp_path / "german.txt"
    text.write_text("Guten Morgen.\n")
    shortlist = ShortlistOptions((f"deu={text}",)) if "shortlist" in source else None
    name = "demo" if source.startswith("demo") else str(tiny_checkpoint(source))
    repository = tmp_path / "repository"
    options = PrepareOptions(name, repository, "m", shortlist=shortlist)
    version = environment._version
    with monkeypatch.context() as patched:
        patched.setattr(environment, "_version", lambda one: "" if one == package else version(one))
        with pytest.raises(MissingPackageError, match=said):
            prepare(options)
    assert not list(tmp_path.glob("repository/*"))
