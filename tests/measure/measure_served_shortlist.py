# SPDX-License-Identifier: Apache-2.0
"""Measures what a vocabulary shortlist gains for clients of a server.

    python tests/measure/measure_served_shortlist.py --model DIR --size 25000 --clients 1,8,48

Serves one set of files under two names, with the list and without it, with the backend's defaults.
The same rows of random ids, of log-normal length (median 18, 3 to 80), go through both in turn,
each from so many clients that send their next row when the last is answered; for the model and the
list see measure_shortlist.py. The figures are rows a second, medians of the rounds, and ratios by
rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import tritonclient.grpc as grpc_client

from ct2_triton.serve import ServerOptions, TritonServer
from measure_roads import closed_loop, sentences
from measure_shortlist import link_model

NAMES = ("whole", "listed")
_CONFIG = """
backend: "ctranslate2"
dynamic_batching {{ }}
instance_group {{ kind: KIND_CPU count: 1 }}
parameters {{ key: "beam_size" value {{ string_value: "1" }} }}
parameters {{ key: "max_decoding_length" value {{ string_value: "{limit}" }} }}
parameters {{ key: "use_vmap" value {{ string_value: "{listed}" }} }}
"""


def write_repository(repository: Path, args: argparse.Namespace, scratch: Path) -> Path:
    """Two models of the same files, of which one uses their list."""
    files = link_model(args.model, args.size, scratch / "files")
    for name in NAMES:
        version = repository / name / "1"
        version.mkdir(parents=True)
        (version / "model").symlink_to(files)
        listed = "true" if name == "listed" else "false"
        config = _CONFIG.format(limit=args.limit, listed=listed)
        (version.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    return repository


def measure(url: str, clients: int, args: argparse.Namespace) -> dict[str, list[float]]:
    """Rows a second of each round, of both models in turn, after a round of warm-up."""
    client = grpc_client.InferenceServerClient(url)
    rates: dict[str, list[float]] = {name: [] for name in NAMES}
    count = max(args.least_rows, 2 * clients)
    batch = sentences(count)
    for turn in range(-1, args.rounds):
        for name in NAMES if turn % 2 else NAMES[::-1]:
            begin = time.perf_counter()
            closed_loop(client, name, batch, clients)
            if turn >= 0:
                rates[name].append(count / (time.perf_counter() - begin))
    client.close()
    return rates


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
                rates = measure(server.grpc_url, clients, args)
                whole, listed = (rates[name] for name in NAMES)
                ratios = [b / a for a, b in zip(whole, listed, strict=True)]
                print(
                    f"| {clients} | {statistics.median(whole):.2f} | "
                    f"{statistics.median(listed):.2f} | **{statistics.median(ratios):.2f}** "
                    f"({min(ratios):.2f}-{max(ratios):.2f}) |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
