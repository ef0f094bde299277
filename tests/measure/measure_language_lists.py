# SPDX-License-Identifier: Apache-2.0
"""Measures what a vocabulary list for each language gains for clients of a server.

    python tests/measure/measure_language_lists.py --model DIR --clients 8,48

Serves one set of files under three names: with the whole vocabulary, with one list for all
languages, and with a list for each. The languages have `--size` tokens each: the first 4,000 of the
vocabulary, which the rows are made of, and others of their own. The same rows of random ids, of
log-normal length (median 18, 3 to 80), in all languages in turn, go through the three in turn, each
from so many clients that send their next row when the last is answered. The figures are rows a
second, medians of the rounds, and ratios by rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import tritonclient.grpc as grpc_client

from ct2_triton.serve import ServerOptions, TritonServer
from measure_roads import Rows, sentences

NAMES = ("whole", "union", "lists")
SHARED = 4_000
_CONFIG = """
backend: "ctranslate2"
dynamic_batching {{ }}
instance_group {{ kind: KIND_CPU count: 1 }}
parameters {{ key: "beam_size" value {{ string_value: "1" }} }}
parameters {{ key: "max_decoding_length" value {{ string_value: "{limit}" }} }}
parameters {{ key: "use_vmap" value {{ string_value: "true" }} }}
"""


def lists_of(languages: int, size: int) -> list[list[int]]:
    """The ids of each language's list; of its own ones, the first is the language's name."""
    own = size - SHARED
    starts = range(SHARED, SHARED + languages * own, own)
    return [[*range(SHARED), *range(start, start + own)] for start in starts]


def write_model(folder: Path, model: Path, lists: list[list[int]], name: str) -> None:
    """Links to the model's files, with the lists in one of the three ways."""
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
        write_model(repository / name / "1" / "model", args.model, lists, name)
        config = _CONFIG.format(limit=args.limit)
        (repository / name / "config.pbtxt").write_text(config, encoding="utf-8")
    return repository


def closed_loop(
    client: grpc_client.InferenceServerClient,
    model: str,
    rows: Rows,
    prefixes: list[int],
    clients: int,
) -> None:
    """Send all rows, with so many in flight."""
    slots = threading.Semaphore(clients)
    failures: list[Exception] = []

    def done(result: object, error: Exception | None) -> None:
        if error is not None:
            failures.append(error)
        slots.release()

    for row, prefix in zip(rows, prefixes, strict=True):
        slots.acquire()
        inputs = []
        for tensor, ids in (("INPUT_IDS", row), ("TARGET_PREFIX", [prefix])):
            inputs.append(grpc_client.InferInput(tensor, [1, len(ids)], "INT32"))
            inputs[-1].set_data_from_numpy(np.array([ids], dtype=np.int32))
        client.async_infer(model, inputs, done)
    for _ in range(clients):
        slots.acquire()
    if failures:
        raise failures[0]


def measure(
    url: str, clients: int, args: argparse.Namespace, lists: list[list[int]]
) -> dict[str, list[float]]:
    """Rows a second of each round, of the three models in turn, after a round of warm-up."""
    client = grpc_client.InferenceServerClient(url)
    rates: dict[str, list[float]] = {name: [] for name in NAMES}
    rows = sentences(max(args.least_rows, 2 * clients))
    prefixes = [lists[i % len(lists)][SHARED] for i in range(len(rows))]
    for turn in range(-1, args.rounds):
        for name in NAMES if turn % 2 else NAMES[::-1]:
            begin = time.perf_counter()
            closed_loop(client, name, rows, prefixes, clients)
            if turn >= 0:
                rates[name].append(len(rows) / (time.perf_counter() - begin))
    client.close()
    return rates


def _ratio(rates: list[float], whole: list[float]) -> str:
    ratios = [b / a for a, b in zip(whole, rates, strict=True)]
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f})"


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
    parser.add_argument("--size", type=int, default=25_000, help="tokens of a language's list")
    parser.add_argument("--languages", type=int, default=4, help="(default: %(default)s)")
    parser.add_argument("--clients", default="8,48", help="rows in flight (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=120, help="longest answer")
    parser.add_argument("--least-rows", type=int, default=128, help="rows of a turn at least")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(arguments)
    lists = lists_of(args.languages, args.size)
    with tempfile.TemporaryDirectory() as folder:
        repository = write_repository(Path(folder) / "repository", args, lists)
        with TritonServer(ServerOptions([repository])) as server:
            print("| clients | rows/s, whole | union, times faster | lists, times faster |")
            print("|---:|---:|---:|---:|")
            for clients in map(int, args.clients.split(",")):
                rates = measure(server.grpc_url, clients, args, lists)
                whole, union, own = (rates[name] for name in NAMES)
                print(
                    f"| {clients} | {statistics.median(whole):.2f} | {_ratio(union, whole)} | "
                    f"{_ratio(own, whole)} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
