# SPDX-License-Identifier: Apache-2.0
"""Who only serves and translates installs no gigabytes."""

from __future__ import annotations

import pytest

import installed_sizes
from installed_sizes import CLIENT, PACKAGE, SERVER, needed, size_of

_FOR_CONVERSION = {"torch", "transformers", "safetensors"}


@pytest.mark.parametrize("extras", ["server", "gateway", "server,live", "prepare"])
def test_only_conversion_needs_pytorch(extras: str) -> None:
    assert not needed(PACKAGE, frozenset(extras.split(","))) & _FOR_CONVERSION
    assert needed(PACKAGE, frozenset({"convert"})) >= _FOR_CONVERSION


def test_serving_and_translating_takes_less_than_450_mb_beside_the_server() -> None:
    packages = needed(PACKAGE, frozenset({"server", "prepare"}))
    assert {SERVER, "ctranslate2", "sentencepiece", "tritonclient"} <= packages
    beside = sum(size_of(name) for name in packages - {SERVER})
    assert 100e6 < beside < 450e6


def test_a_client_needs_no_engine() -> None:
    extras = frozenset({"live", "gateway", "bulk"})
    assert not needed(CLIENT, extras) & {*_FOR_CONVERSION, SERVER, "ctranslate2"}
    assert sum(map(size_of, needed(CLIENT))) < 250e6


def test_the_table_has_a_row_for_each() -> None:
    rows = installed_sizes.table().splitlines()
    assert len(rows) == 2 + len(installed_sizes.ROWS)
    assert "torch" in rows[-1]
