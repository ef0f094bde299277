# SPDX-License-Identifier: Apache-2.0
"""Measures what a vocabulary shortlist gains for clients of a server.

    python benchmarks/measure_served_shortlist.py --model DIR --size 25000 --clients 1,8,48

Serves one set of files under two names, with the list and without it, with the backend's defaults.
The same rows of random IDs, of log-normal length (median 18, 3 to 80), are sent to both alternately
by `--clients` clients, each of which sends its next row when the last is answered; for the model
and the list see measure_shortlist.py. The figures are rows per second (medians of the rounds), and
ratios by round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from closed_loop import rates_in_turn, times_faster
from ct2_triton.serve import ServerOptions, TritonServer
from measure_shortlist import link_model
from served_lists import add_model, list_parser

NAMES = ("whole", "listed")


def write_repository(repository: Path, args: argparse.Namespace, scratch: Path) -> Path:
    """Two models of the same files, of which one uses their list."""
    files = link_model(args.model, args.size, scratch / "files")
    for name in NAMES:
        add_model(repository, name, args.limit, listed=name == "listed").symlink_to(files)
    return repository


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints a Markdown table.

    Args:
        arguments: Command line, without the program's name.

    Returns:
        0.
    """
    parser = list_parser(__doc__, clients="1,8,48", least_rows=8)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        repository = write_repository(Path(folder) / "repository", args, Path(folder))
        with TritonServer(ServerOptions([repository])) as server:
            print("| clients | rows/s, whole | rows/s, listed | times faster |")
            print("|---:|---:|---:|---:|")
            for clients in map(int, args.clients.split(",")):
                rates = rates_in_turn(server.grpc_url, NAMES, clients, args.least_rows, args.rounds)
                whole, listed = (rates[name] for name in NAMES)
                print(
                    f"| {clients} | {statistics.median(whole):.2f} | "
                    f"{statistics.median(listed):.2f} | {times_faster(listed, whole)} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
