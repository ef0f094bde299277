# SPDX-License-Identifier: Apache-2.0
"""`--share`: the cases that a slow build or another library runs."""

from __future__ import annotations

from support.shares import of_each_function

CASES = [
    "a.py::test_alone",
    *(f"a.py::test_pair[{value}]" for value in ("calls", "loop")),
    *(f"a.py::test_many[{value}]" for value in range(20)),
    *(f"a.py::test_switch[{value}]" for value in ("calls", "loop")),
    *(f"b.py::test_pair[{value}]" for value in ("calls", "loop")),
]


def kept(share: int) -> list[str]:
    chosen = of_each_function(CASES, share)
    return [case for case, keep in zip(CASES, chosen, strict=True) if keep]


def test_each_function_keeps_cases_one_in_so_many() -> None:
    assert kept(1) == CASES
    assert kept(6) == [
        "a.py::test_alone",
        "a.py::test_pair[loop]",
        *(f"a.py::test_many[{value}]" for value in (2, 8, 14)),
        "a.py::test_switch[loop]",
        "b.py::test_pair[calls]",
    ]


def test_no_function_is_left_out() -> None:
    functions = {case.partition("[")[0] for case in CASES}
    for share in (2, 3, 7, 100):
        assert {case.partition("[")[0] for case in kept(share)} == functions
