# SPDX-License-Identifier: Apache-2.0
"""Makes inputs of a fuzz target from its corpus: the same ones from the same corpus and seed.

libFuzzer's own inputs differ from run to run, also with a fixed seed: what it tries next depends on
what it reached, thus on the order of threads and on addresses. CI needs the same inputs each time.

    python tests/fuzz/made_inputs.py <corpus> <folder to write> <count> <seed>
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

_MOST_CHANGES = 4
_LONGEST = 4096  # libFuzzer's own bound


def _change(content: bytes, others: Sequence[bytes], chooser: random.Random) -> bytes:
    """One change as libFuzzer makes them; FuzzedDataProvider takes numbers from the end."""
    at = chooser.randint(0, len(content))
    upto = min(len(content), at + chooser.randint(1, 8))
    kind = chooser.randrange(5)
    if kind == 0 and content:  # a bit
        at = min(at, len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1 << chooser.randrange(8)]) + content[at + 1 :]
    if kind == 1:
        return content[:at] + content[upto:]
    if kind == 2:  # other bytes in the place of some
        return content[:at] + chooser.randbytes(upto - at) + content[upto:]
    if kind == 3:
        return content[:at] + chooser.randbytes(chooser.randint(1, 8)) + content[at:]
    other = chooser.choice(others)
    return content[:at] + other[chooser.randint(0, len(other)) :]


def make_inputs(corpus: Sequence[bytes], count: int, seed: int) -> list[bytes]:
    """Inputs that are 1 to 4 changes away from one of the corpus.

    Args:
        corpus: What to start from, in an order that is always the same.
        count: How many to make.
        seed: Of all choices.
    """
    chooser = random.Random(seed)
    made = []
    for _ in range(count):
        content = chooser.choice(corpus)
        for _ in range(chooser.randint(1, _MOST_CHANGES)):
            content = _change(content, corpus, chooser)
        made.append(content[:_LONGEST] or b"\0")  # libFuzzer runs no empty file
    return made


def main() -> None:
    corpus, folder, count, seed = sys.argv[1:]
    contents = [file.read_bytes() for file in sorted(Path(corpus).iterdir())]
    Path(folder).mkdir(parents=True)
    for number, content in enumerate(make_inputs(contents, int(count), int(seed))):
        (Path(folder) / f"{number:05}").write_bytes(content)


if __name__ == "__main__":
    main()
