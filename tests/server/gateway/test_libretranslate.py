# SPDX-License-Identifier: Apache-2.0
"""The gateway answers as LibreTranslate 1.9.6 did, but for the differences on record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compare_libretranslate import KEY, LIMITS, RECORD, answer_of
from ct2_triton.gateway.catalog import Catalog, read_catalog
from ct2_triton.gateway.detection import Detector, detector_of
from ct2_triton.prepare import PrepareOptions, prepare
from server.gateway.conftest import MODEL, MakeSite

pytestmark = pytest.mark.server


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """The demo model's own pairs of languages."""
    prepare(PrepareOptions("demo", tmp_path / "models", MODEL, io="text"))
    return read_catalog([MODEL], tmp_path / "models")


@pytest.fixture
def detector(catalog: Catalog) -> Detector:
    return detector_of(catalog)


async def test_the_gateway_answers_as_libretranslate(make_site: MakeSite) -> None:
    most = [int(LIMITS[f"{name}-limit"]) for name in ("char", "batch", "alternatives")]
    sites = {
        "usual": await make_site(
            **dict(zip(("max_chars", "max_texts", "max_alternatives"), most, strict=True))
        ),
        "keys": await make_site(keys=[KEY]),
        "no files": await make_site(files=None),
    }
    record = json.loads(RECORD.read_text())
    for name, one in record.items():
        found = await answer_of(
            sites[one["server"]].session, sites[one["server"]].url, one["request"]
        )
        assert found == one.get("gateway", one["libretranslate"]), name
    assert all(one.get("gateway") != one["libretranslate"] for one in record.values())
