# SPDX-License-Identifier: Apache-2.0
"""Measures what a vocabulary list for each language gains for clients of a server.

    python benchmarks/measure_language_lists.py --model DIR --clients 8,48

Serves one set of files under three names: with the whole vocabulary, with one list for all
languages, and with a list for each. The languages have `--size` tokens each: the first 4,000 of the
vocabulary, which the rows are made of, and others of their own. The same rows of random ids, of
log-normal length (median 18, 3 to 80), in all languages alternately, are sent to each of the three
by `--clients` clients, each of which sends its next row when the last is answered. The figures are
rows per second (medians of the rounds), and ratios by round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from closed_loop import rates_in_turn, times_faster
from ct2_triton.serve import ServerOptions, TritonServer
from served_lists import add_model, list_parser

NAMES = ("whole", "union", "lists")
SHARED = 4_000


def lists_of(languages: int, size: int) -> list[list[int]]:
    """The IDs of each language's list. The first ID that only one list has names its language."""
    own = size - SHARED
    starts = range(SHARED, SHARED + languages * own, own)
    return [[*range(SHARED), *range(start, start + own)] for start in starts]


def write_model(folder: Path, model: Path, lists: list[list[int]], name: str) -> None:
    """Links to the model's files, with its lists written in one of the three ways."""
    folder.mkdir(parents=True)
    for file in model.iterdir():
        if file.name not in ("vmap.txt", "shortlists.json"):
            (folder / file.name).symlink_to(file.resolve())
    if name == "union":
        vocabulary = json.loads((model / "shared_vocabulary.json").read_text(encoding="utf-8"))
        line = "\t" + " ".join(vocabulary[i] for i in sorted(set().union(*lists))) + "\n"
        (folder / "vmap.txt").write_text(line, encoding="utf-8")
    elif name == "lists":
        entries = [
            {"language": f"language {i}", "prefix_id": ids[SHARED], "tokens": ids}
            for i, ids in enumerate(lists)
        ]
        text = json.dumps({"lists": entries})
        (folder / "shortlists.json").write_text(text, encoding="utf-8")


def write_repository(repository: Path, args: argparse.Namespace, lists: list[list[int]]) -> Path:
    """Three models of the same files."""
    for name in NAMES:
        write_model(add_model(repository, name, args.limit, listed=True), args.model, lists, name)
    return repository


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints a Markdown table.

    Args:
        arguments: Command line, without the program's name.

    Returns:
        0.
    """
    parser = list_parser(__doc__, clients="8,48", least_rows=128)
    parser.add_argument("--languages", type=int, default=4, help="(default: %(default)s)")
    args = parser.parse_args(arguments)
    lists = lists_of(args.languages, args.size)
    prefixes = [ids[SHARED] for ids in lists]
    with tempfile.TemporaryDirectory() as folder:
        repository = write_repository(Path(folder) / "repository", args, lists)
        with TritonServer(ServerOptions([repository])) as server:
            print("| clients | rows/s, whole | union, times faster | lists, times faster |")
            print("|---:|---:|---:|---:|")
            for clients in map(int, args.clients.split(",")):
                rates = rates_in_turn(
                    server.grpc_url, NAMES, clients, args.least_rows, args.rounds, prefixes
                )
                whole, union, own = (rates[name] for name in NAMES)
                print(
                    f"| {clients} | {statistics.median(whole):.2f} | {times_faster(union, whole)} "
                    f"| {times_faster(own, whole)} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
