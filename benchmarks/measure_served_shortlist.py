# SPDX-License-Identifier: Apache-2.0
"""Measures what a vocabulary shortlist gains for clients of a server.

    python benchmarks/measure_served_shortlist.py --model DIR --size 25000 --clients 1,8,48

DIR holds CTranslate2 files, best of a model whose sentences end by themselves. They are served
under two names, without a list and with the first `--size` tokens of the vocabulary as the list.
The same rows of random IDs, of log-normal length (median 18, 3 to 80), are sent to both alternately
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

NAMES = ("whole", "listed")
CONFIG = """
backend: "ctranslate2"
dynamic_batching {{ }}
instance_group {{ kind: KIND_CPU count: 1 }}
parameters {{ key: "beam_size" value {{ string_value: "1" }} }}
parameters {{ key: "max_decoding_length" value {{ string_value: "{limit}" }} }}
parameters {{ key: "use_vmap" value {{ string_value: "{listed}" }} }}
"""


def link_model(model: Path, size: int, folder: Path) -> Path:
    """Makes a folder of the model's files with a list of the first tokens."""
    folder.mkdir()
    for file in model.iterdir():
        if file.name != "vmap.txt":
            (folder / file.name).symlink_to(file.resolve())
    vocabulary = json.loads((model / "shared_vocabulary.json").read_text(encoding="utf-8"))
    line = "\t" + " ".join(vocabulary[:size]) + "\n"
    (folder / "vmap.txt").write_text(line, encoding="utf-8")
    return folder


def write_repository(repository: Path, args: argparse.Namespace, scratch: Path) -> Path:
    """Two models of the same files, of which one uses their list."""
    files = link_model(args.model, args.size, scratch / "files")
    for name in NAMES:
        version = repository / name / "1"
        version.mkdir(parents=True)
        (version / "model").symlink_to(files)
        config = CONFIG.format(limit=args.limit, listed="true" if name == "listed" else "false")
        (version.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    return repository


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints a Markdown table.

    Args:
        arguments: Command line, without the program's name.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of CTranslate2 files")
    parser.add_argument("--size", type=int, default=25_000, help="tokens of the list")
    parser.add_argument("--clients", default="1,8,48", help="rows in flight (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=120, help="longest answer")
    parser.add_argument("--least-rows", type=int, default=8, help="rows of a turn at least")
    parser.add_argument("--rounds", type=int, default=3)
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
