# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from pathlib import Path

import pytest

from ct2_triton.serve import ServerOptions
from ct2_triton.serve.installation import DEFECTS, release_warnings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"


@pytest.mark.parametrize(
    ("hosts", "version", "warned"),
    [
        ({"host": "0.0.0.0"}, "2.51.0", ["HTTP port", "gRPC call", "gRPC port"]),
        ({"host": "0.0.0.0"}, "", ["HTTP port", "gRPC call", "gRPC port"]),
        ({"host": "0.0.0.0"}, "2.56.9", ["HTTP port", "gRPC call", "gRPC port"]),
        ({"host": "0.0.0.0"}, "2.57.0", ["HTTP port", "gRPC port"]),
        ({"host": "0.0.0.0"}, "2.59.0", ["HTTP port", "gRPC port"]),
        ({"host": "0.0.0.0"}, "2.59.1", ["HTTP port"]),
        ({"host": "0.0.0.0"}, "2.69.0", []),
        ({"host": "0.0.0.0"}, "3.0", []),
        ({"host": "0.0.0.0", "http_host": "127.0.0.1"}, "2.51.0", ["gRPC call", "gRPC port"]),
        ({"http_host": "0.0.0.0"}, "2.51.0", ["HTTP port"]),
        ({}, "2.51.0", []),
    ],
)
def test_what_ends_a_server_is_said_where_others_reach_it(
    hosts: dict[str, str], version: str, warned: list[str]
) -> None:
    warnings = release_warnings(ServerOptions([], **hosts), version)
    assert len(warnings) == len(warned)
    for warning, what in zip(warnings, warned, strict=True):
        assert what in warning
        assert (version or "of this version") in warning


def test_the_page_has_each_defect() -> None:
    """Beside the version stands the container that has it."""
    rows = PAGE.read_text()
    for defect in DEFECTS:
        version = ".".join(map(str, defect.fixed_in))
        assert re.search(rf"\| {version} \| {defect.release} \|.*{defect.port}", rows, re.I)
