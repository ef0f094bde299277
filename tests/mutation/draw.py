# SPDX-License-Identifier: Apache-2.0
"""Draws mutants by a seed, the same number for each area, and writes their list.

    python tests/mutation/draw.py --seed 2026 > tests/mutation/mutants.json

The list is committed before the first run, so that nobody chooses the faults that the tests find.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

from areas import AREAS
from operators import faults

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """A line of a file, and what takes its place. `number`: of the line when it was drawn."""

    area: str
    file: str
    number: int
    operator: str
    line: str
    fault: str


def candidates(area: str) -> dict[str, list[Mutant]]:
    """All faults of an area's files, by operator: each of these is drawn equally often."""
    found: dict[str, list[Mutant]] = {}
    folder = ROOT / AREAS[area].folder
    for path in sorted([*folder.glob("*.cc"), *folder.glob("*.py")]):
        in_text = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            in_text ^= line.count('"""') % 2 == 1
            if in_text or '"""' in line:
                continue
            for name, fault in faults(line, path.suffix):
                file = str(path.relative_to(ROOT))
                found.setdefault(name, []).append(Mutant(area, file, number, name, line, fault))
    return found


def draw(seed: int, count: int) -> list[Mutant]:
    """So many mutants, of as many areas in turn as there are; no two change one line."""
    chooser = random.Random(seed)
    drawn: list[Mutant] = []
    pools = {area: candidates(area) for area in AREAS}
    for number in range(count):
        pool = pools[list(AREAS)[number % len(AREAS)]]
        taken = {(mutant.file, mutant.number) for mutant in drawn}
        operator = chooser.choice(sorted(pool))
        free = [one for one in pool[operator] if (one.file, one.number) not in taken]
        drawn.append(chooser.choice(free))
    return drawn


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    arguments = parser.parse_args()
    drawn = draw(arguments.seed, arguments.count)
    print(json.dumps([asdict(mutant) for mutant in drawn], indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
