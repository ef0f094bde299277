# SPDX-License-Identifier: Apache-2.0
"""Measures what a vocabulary shortlist gains in CTranslate2, by its size.

    python benchmarks/measure_shortlist.py --model DIR
    python benchmarks/measure_shortlist.py --model DIR --sizes 25000,100000 --rows 1,32 --beam 4

DIR holds CTranslate2 files, best of a model whose sentences end by themselves. Its list is that of
each size in turn: the first tokens of the vocabulary. The rows are random ids among the first 4,000
tokens, all of one length, so that a model that copies has its answers on every list; how many
answers differ from those of the whole vocabulary is printed. One thread, calls in turn, every round
beginning with another size; the figures are medians of the rounds, and ratios are by rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_PIECE, _LAST_PIECE = 4, 4000


@dataclass(frozen=True)
class Call:
    """One call of the engine.

    Attributes:
        seconds: How long it took.
        steps: Tokens of its longest answer, each of which took a step of the decoder.
        answers: Its answers.
    """

    seconds: float
    steps: int
    answers: list[list[str]]


def link_model(model: Path, size: int | None, folder: Path) -> Path:
    """Makes a folder of the model's files with a list of the first tokens, or with none."""
    folder.mkdir()
    for file in model.iterdir():
        if file.name != "vmap.txt":
            (folder / file.name).symlink_to(file.resolve())
    if size is not None:
        vocabulary = json.loads((model / "shared_vocabulary.json").read_text(encoding="utf-8"))
        line = "\t" + " ".join(vocabulary[:size]) + "\n"
        (folder / "vmap.txt").write_text(line, encoding="utf-8")
    return folder


class Engine:
    """The model with a vocabulary map of one size, or with its whole vocabulary."""

    def __init__(self, model: Path, size: int | None, scratch: Path) -> None:
        """Loads the model; `size` None leaves the vocabulary whole."""
        import ctranslate2

        self.mapped = size is not None
        vocabulary = (model / "shared_vocabulary.json").read_text(encoding="utf-8")
        self.vocabulary: list[str] = json.loads(vocabulary)
        folder = link_model(model, size, scratch / str(size))
        self._translator = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)

    def call(self, rows: Sequence[Sequence[int]], prefix: int, beam: int, limit: int) -> Call:
        """Translates rows in one call."""
        sources = [[self.vocabulary[i] for i in row] for row in rows]
        begin = time.perf_counter()
        results: list[Any] = self._translator.translate_batch(
            sources,
            target_prefix=[[self.vocabulary[prefix]]] * len(rows),
            beam_size=beam,
            max_decoding_length=limit,
            return_end_token=True,
            use_vmap=self.mapped,
        )
        seconds = time.perf_counter() - begin
        answers = [result.hypotheses[0] for result in results]
        return Call(seconds, max(map(len, answers)), answers)


def rows(count: int, length: int, last: int, end: int, seed: int) -> list[list[int]]:
    """Rows of random pieces up to an ID, each followed by an end token."""
    rng = random.Random(seed)
    pieces = [[rng.randint(_FIRST_PIECE, last) for _ in range(length)] for _ in range(count)]
    return [[*row, end] for row in pieces]


def measure(
    engines: dict[str, Engine], count: int, beam: int, args: argparse.Namespace
) -> dict[str, list[Call]]:
    """Runs the rounds of one number of rows and one beam size, after a call of warm-up each."""
    names = list(engines)
    found: dict[str, list[Call]] = {name: [] for name in names}
    last = min(_LAST_PIECE, len(engines["whole"].vocabulary) - 1)
    for turn in range(-1, args.rounds):
        batch = rows(count, args.length, last, args.end, seed=turn)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            call = engines[name].call(batch, args.prefix, beam, args.limit)
            if turn >= 0:
                found[name].append(call)
    return found


def line(title: str, name: str, found: dict[str, list[Call]]) -> str:
    """A row of the table."""
    whole, calls = found["whole"], found[name]
    ratios = [a.seconds / b.seconds for a, b in zip(whole, calls, strict=True)]
    steps = [1000 * call.seconds / call.steps for call in calls]
    answers = [
        (mine, other)
        for a, b in zip(calls, whole, strict=True)
        for mine, other in zip(a.answers, b.answers, strict=True)
    ]
    changed = sum(mine != other for mine, other in answers)
    return (
        f"| {title} | {name} | {statistics.median(steps):.1f} | "
        f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f}) | "
        f"{changed} of {len(answers)} |"
    )


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser.add_argument("--model", type=Path, required=True, help="folder of CTranslate2 files")
    parser.add_argument("--sizes", type=numbers, default=[25_000], help="tokens of each list")
    parser.add_argument("--rows", type=numbers, default=[1, 8, 32], help="rows of a greedy call")
    parser.add_argument("--beam", type=numbers, default=[4], help="beam sizes of calls of 8 rows")
    parser.add_argument("--length", type=int, default=20, help="ids of a row")
    parser.add_argument("--limit", type=int, default=40, help="longest answer")
    parser.add_argument("--prefix", type=int, default=4003, help="id that answers begin with")
    parser.add_argument("--end", type=int, default=2, help="id of the end token")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints a Markdown table.

    Args:
        arguments: Command line, without the program's name.

    Returns:
        0.
    """
    args = _arguments(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        engines = {"whole": Engine(args.model, None, Path(scratch))}
        engines |= {f"{size:,}": Engine(args.model, size, Path(scratch)) for size in args.sizes}
        print("| call | list | ms a step | times faster | answers changed |")
        print("|---|---:|---:|---:|---:|")
        cases = [(count, 1) for count in args.rows] + [(8, beam) for beam in args.beam]
        for count, beam in cases:
            found = measure(engines, count, beam, args)
            title = f"{count} rows" + (f", beam {beam}" if beam > 1 else "")
            for name in engines:
                print(line(title, name, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
