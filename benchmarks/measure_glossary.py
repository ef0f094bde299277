# SPDX-License-Identifier: Apache-2.0
"""Measures what a line costs with glossaries of different sizes (docs/terms.md).

    python benchmarks/measure_glossary.py

Finds the terms of a line of 20 words, of which two are in the glossary, and prints the median of
many lines, the time to compile the glossary, and the ratio to a glossary of ten entries.
"""

from __future__ import annotations

import argparse
import statistics
import time

from ct2_triton.terms import Terms

LINE = "The office of Product 3 opens at 5:45, that of Product 7 not until the end of this week."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=2000)
    args = parser.parse_args()
    print("| entries | compiled in | a line | ratio |\n|---|---|---|---|")
    first_us = 0.0
    for entries in (10, 100, 1_000, 10_000, 100_000):
        begin_s = time.perf_counter()
        terms = Terms(glossary={f"Product {n}": f"Produkt {n}" for n in range(entries)})
        assert len(terms.find(LINE).terms) == 2  # the first text compiles
        compiled_ms = 1e3 * (time.perf_counter() - begin_s)
        samples = []
        for _ in range(args.lines):
            begin_s = time.perf_counter()
            terms.find(LINE)
            samples.append(1e6 * (time.perf_counter() - begin_s))
        line_us = statistics.median(samples)
        first_us = first_us or line_us
        print(
            f"| {entries:,} | {compiled_ms:.1f} ms | {line_us:.0f} µs | {line_us / first_us:.2f} |"
        )


if __name__ == "__main__":
    main()
