# SPDX-License-Identifier: Apache-2.0
"""What the client reads of a verdict; tests/server/client has it from a real server."""

from __future__ import annotations

import pytest

from ct2_triton.client.results import Verdict
from ct2_triton.errors import UnexpectedResponseError


@pytest.mark.parametrize(
    ("sent", "flags", "missing"),
    [
        (b"[]", (), ()),
        (b'["repeats", "of a newer server"]', ("repeats", "of a newer server"), ()),
        (b'["values", {"not_computed": ["invented"], "new": 1}]', ("values",), ("invented",)),
    ],
)
def test_flags_are_read_also_unknown_ones(
    sent: bytes, flags: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    assert Verdict.read(0.25, sent) == Verdict(0.25, flags, missing)


def test_the_verdict_on_several_parts_is_the_worst_with_all_flags() -> None:
    parts = [
        Verdict(0.9, (), ("unsure",)),
        Verdict(0.2, ("values", "length")),
        Verdict(0.4, ("values",)),
    ]
    assert Verdict.of_all(parts) == Verdict(0.2, ("values", "length"), ("unsure",))
    assert Verdict.of_all([]) == Verdict(1.0)


@pytest.mark.parametrize("sent", [b"", b"{", b"3", b"null", b'[{"not_computed": 3}]'])
def test_other_flags_are_an_error(sent: bytes) -> None:
    with pytest.raises(UnexpectedResponseError, match="quality_flags is .*a JSON list of names"):
        Verdict.read(1.0, sent)
