# SPDX-License-Identifier: Apache-2.0
"""Which of two ways to run Triton's batches is quicker: Execute waits for its rows, or returns.

    python benchmarks/measure_roads.py [--model DIR] [--clients 48] [--rounds 5]

Serves one CTranslate2 model, whose sentences end by themselves, under three names: rows of many
batches in one queue (`wait_for_batch` false, the default), and Execute waiting for its own rows
with one and with two instances. The same sentences go through each in turn, round by round, from a
closed loop of clients; the ceiling is `ctranslate2` in this process on the whole sorted list.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tiny"))

import ctranslate2
import tritonclient.grpc as grpc_client
from tqdm import tqdm

import tiny_models
from closed_loop import send_all
from ct2_triton.serve import ServerOptions, TritonServer
from random_rows import Rows, same_rows

ROADS = {
    "returns at once": ("false", 1),
    "waits, 1 instance": ("true", 1),
    "waits, 2 instances": ("true", 2),
}
CEILING = "in process, sorted"
CONFIG = """
backend: "ctranslate2"
dynamic_batching {{ }}
instance_group {{ kind: KIND_CPU count: {instances} }}
parameters {{ key: "beam_size" value {{ string_value: "1" }} }}
parameters {{ key: "wait_for_batch" value {{ string_value: "{waits}" }} }}
"""


def main() -> int:
    """Measure, print a table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="CTranslate2 directory; made when not given")
    parser.add_argument("--clients", type=int, default=48, help="requests in flight (default: 48)")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--rows", type=int, default=400, help="sentences a round (default: 400)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = arguments.model or make_model(Path(folder))
        repository = write_repository(Path(folder) / "repository", directory)
        rows = same_rows(arguments.rows)
        with TritonServer(ServerOptions([repository])) as server:
            times = measure(server.grpc_url, directory, rows, arguments)
    tokens = sum(len(row) for row in rows)
    print_table({name: [tokens / s for s in seconds] for name, seconds in times.items()})
    return 0


def make_model(folder: Path) -> Path:
    """A model of 15 million parameters that copies its input and so ends by itself."""
    options = tiny_models.TinyOptions(d_model=256, layers=4, train_steps=300)
    tiny_models.make("nllb", folder / "checkpoint", options)
    return tiny_models.convert(folder / "checkpoint", folder / "model", None)


def write_repository(repository: Path, directory: Path) -> Path:
    """One set of files under several names."""
    for name, (waits, instances) in ROADS.items():
        version = repository / model_name(name) / "1"
        version.mkdir(parents=True)
        (version / "model").symlink_to(directory.resolve())
        config = CONFIG.format(waits=waits, instances=instances)
        (version.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    return repository


def model_name(road: str) -> str:
    """A name that Triton takes."""
    return road.replace(" ", "_").replace(",", "")


def measure(
    url: str, directory: Path, rows: Rows, arguments: argparse.Namespace
) -> dict[str, list[float]]:
    """Seconds of each round of each road, taken in turn."""
    client = grpc_client.InferenceServerClient(url)
    engine = ctranslate2.Translator(str(directory), device="cpu", inter_threads=2, intra_threads=1)
    vocabulary = json.loads((directory / "shared_vocabulary.json").read_text())
    tokens = sorted(([vocabulary[i] for i in row] for row in rows), key=len, reverse=True)
    times: dict[str, list[float]] = {name: [] for name in (*ROADS, CEILING)}
    for index in tqdm(range(arguments.rounds + 1), desc="rounds", disable=None):
        for name, seconds in times.items():
            started = time.perf_counter()
            if name == CEILING:
                engine.translate_batch(tokens, beam_size=1, max_batch_size=32)
            else:
                send_all(client, model_name(name), rows, arguments.clients)
            if index > 0:  # the first round warms up
                seconds.append(time.perf_counter() - started)
    return times


def print_table(rates: dict[str, list[float]]) -> None:
    """Print source tokens/s, and the ratio to the ceiling round by round."""
    ceiling = rates[CEILING]
    print(f"{'':24}{'source tokens/s':>18}{'of the ceiling':>18}{'lowest':>10}{'highest':>10}")
    for name, values in rates.items():
        ratios = [value / limit for value, limit in zip(values, ceiling, strict=True)]
        print(
            f"{name:24}{statistics.median(values):18.0f}{statistics.median(ratios):18.2f}"
            f"{min(ratios):10.2f}{max(ratios):10.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
