# SPDX-License-Identifier: Apache-2.0
"""Measures what one encoding for all targets of a sentence saves, busy and in process.

    python benchmarks/measure_shared_encodings.py --shape transformer-base --targets 1,4,8,16

Several streams send one request after another, each of a sentence for N targets: N rows with
different prefixes. Alternately, the rows of a request have one source, or N different sources of
the same length. The first needs one encoding, the second N.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ct2_triton import _core
from random_rows import draw_length, random_row
from shape_model import add_model_arguments, model_of

FIRST_ID, LAST_ID, FIRST_PREFIX = 1000, 20_000, 100


@dataclass(frozen=True)
class Turn:
    """The results of one measurement of one way."""

    rows_per_s: float
    cpu_ms_per_row: float
    encodings_per_row: float


def main() -> int:
    """Prints a line for each search and number of targets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_arguments(parser)
    parser.add_argument("--targets", default="1,4,8,16", help="default: %(default)s")
    parser.add_argument("--beams", default="1,4", help="default: %(default)s")
    parser.add_argument("--streams", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=4, help="of a turn (default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = model_of(arguments, Path(scratch))
        settings = {"decoding": "loop", "compute_type": "int8"}
        translator = _core.Translator(str(directory), settings)
        for beams in map(int, arguments.beams.split(",")):
            for targets in map(int, arguments.targets.split(",")):
                compare(translator, beams, targets, arguments)
    return 0


def compare(
    translator: _core.Translator, beams: int, targets: int, arguments: argparse.Namespace
) -> None:
    """Measures both ways in turn, and prints medians and ranges of the rounds' ratios."""
    ratios, found = [], []
    for number in range(arguments.rounds + 1):
        shared, different = (
            turn(translator, beams, targets, arguments, one_source=one_source)
            for one_source in (True, False)
        )
        if number:  # the first warms up
            ratios.append(shared.rows_per_s / different.rows_per_s)
            found.append((shared, different))
    cpu = statistics.median(a.cpu_ms_per_row / b.cpu_ms_per_row for a, b in found)
    print(
        f"beam {beams}, {targets} targets: {statistics.median(ratios):.2f} times the rows/s "
        f"({min(ratios):.2f}-{max(ratios):.2f}), {cpu:.2f} of the processor's time; "
        f"{found[-1][0].rows_per_s:.0f} and {found[-1][1].rows_per_s:.0f} rows/s, "
        f"{found[-1][0].encodings_per_row:.2f} and {found[-1][1].encodings_per_row:.2f} encodings "
        "a row",
        flush=True,
    )


def turn(
    translator: _core.Translator,
    beams: int,
    targets: int,
    arguments: argparse.Namespace,
    *,
    one_source: bool,
) -> Turn:
    """Keeps all streams busy for some seconds."""
    options = {"beam_size": beams, "max_decoding_length": 128}
    prefixes = [[FIRST_PREFIX + k] for k in range(targets)]
    rows = itertools.count()
    deadline = time.monotonic() + arguments.seconds

    def stream(seed: int) -> None:
        rng = random.Random(seed)
        while time.monotonic() < deadline:
            length = draw_length(rng)
            different = 1 if one_source else targets
            sources = [random_row(rng, FIRST_ID, LAST_ID, length) for _ in range(different)]
            translator.translate(sources * (targets if one_source else 1), prefixes, options)
            for _ in range(targets):
                next(rows)

    encoded = sum(loop["encoded_rows"] for loop in translator.loops)
    begin, cpu = time.monotonic(), time.process_time()
    threads = [threading.Thread(target=stream, args=(i,)) for i in range(arguments.streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
    encoded = sum(loop["encoded_rows"] for loop in translator.loops) - encoded
    count = next(rows)
    return Turn(count / seconds, cpu * 1e3 / count, encoded / count)


if __name__ == "__main__":
    sys.exit(main())
