# SPDX-License-Identifier: Apache-2.0
"""Measures what drafts cost and save in one decode loop: no server, one thread.

    python benchmarks/measure_drafts.py --rows 8,1

`--rows` growing texts of `measure_served_drafts.py` are in the loop at a time. Each update is sent
when the previous one is answered: first without drafts, then with the previous answer as the draft.
The loop counts steps and the tokens that ran in them. The answers must be equal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ct2_triton import _core
from measure_served_drafts import growing_text
from shape_model import add_model_arguments, model_of

TOKENS, UPDATES, END = 18, 6, 2
OPTIONS = {"beam_size": 1, "max_decoding_length_multiple": 1.3}


@dataclass(frozen=True)
class Pass:
    """Totals over all texts."""

    answers: dict[tuple[int, int], list[int]]
    counts: dict[str, int]
    seconds: float


def decode(model: Any, texts: list[list[tuple[int, ...]]], rows: int, *, drafts: bool) -> Pass:
    """Decodes all updates, `rows` texts at a time."""
    loop = _core.DecodeLoop(model)
    answers: dict[tuple[int, int], list[int]] = {}
    running: dict[int, tuple[int, int]] = {}
    waiting = [(text, 0) for text in range(len(texts))]
    start = time.perf_counter()
    while waiting or loop.running:
        while waiting and len(running) < rows:
            text, update = waiting.pop(0)
            draft = answers.get((text, update - 1), []) if drafts else []
            row = ([*texts[text][update], END], [], OPTIONS)
            [name] = loop.admit([row], [draft])
            running[name] = (text, update)
        for name, answer in loop.step()[1]:
            text, update = running.pop(name)
            answers[text, update] = answer["ids"]
            if update + 1 < UPDATES:
                waiting.insert(0, (text, update + 1))
    return Pass(answers, loop.counters, time.perf_counter() - start)


def main() -> int:
    """Prints a line for each way and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_arguments(parser)
    parser.add_argument("--rows", default="8,1", help="at a time (default: %(default)s)")
    parser.add_argument("--texts", type=int, default=24, help="default: %(default)s")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = model_of(args, Path(scratch))
        model = _core.LoopModel(str(directory), {"compute_type": "int8"})
        ids = range(10, 20_000)
        texts = [growing_text(ids, 1000 + i, TOKENS, UPDATES) for i in range(args.texts)]
        for rows in map(int, args.rows.split(",")):
            compare(model, texts, rows)
    return 0


def compare(model: Any, texts: list[list[tuple[int, ...]]], rows: int) -> None:
    """Runs both ways twice, and prints the second time."""
    for _ in range(2):
        passes = [decode(model, texts, rows, drafts=drafts) for drafts in (False, True)]
    without, drafted = passes
    if without.answers != drafted.answers:
        raise SystemExit("an answer with a draft is not the one without")
    for name, found in (("without", without), ("drafts", drafted)):
        counts = found.counts
        print(
            f"{rows} rows, {name}: {counts['steps']} steps, {counts['step_tokens']} tokens, "
            f"{counts['draft_tokens_kept']} of {counts['draft_tokens']} of drafts kept, steps "
            f"{counts['step_ns'] / 1e9:.2f} s, in all {found.seconds:.2f} s "
            f"({without.seconds / found.seconds:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
