# SPDX-License-Identifier: Apache-2.0
"""A share of the cases of each test: for builds and libraries on which every case costs a lot.

`--share N` keeps at least one case of each test function, and one in N of those that have more. The
choice depends on the order in the file only, so that each run keeps the same cases. Successive
functions begin at successive cases: all values of a parameter occur, also where it has only two.
"""

from __future__ import annotations

from collections import Counter

import pytest


def of_each_function(cases: list[str], share: int) -> list[bool]:
    """Which cases are kept; a case is the id of a test, and those of a function are neighbours."""
    functions = [case.partition("[")[0] for case in cases]
    totals = Counter(functions)
    number_of: dict[str, int] = {}  # a function's number in its file
    in_file: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    kept = []
    for function in functions:
        if function not in number_of:
            file = function.partition("::")[0]
            number_of[function] = in_file[file]
            in_file[file] += 1
        first = number_of[function] % min(share, totals[function])
        kept.append(seen[function] % share == first)
        seen[function] += 1
    return kept


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--share` does not keep."""
    share = config.getoption("--share")
    if share <= 1:
        return
    kept = of_each_function([item.nodeid for item in items], share)
    left_out = [item for item, keep in zip(items, kept, strict=True) if not keep]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item, keep in zip(items, kept, strict=True) if keep]
