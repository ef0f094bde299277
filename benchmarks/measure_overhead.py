# SPDX-License-Identifier: Apache-2.0
"""What serving adds to a lone request: Triton's latency against the same call in process.

    python benchmarks/measure_overhead.py [--requests 400]

Makes an int8 model with a 256,000-entry vocabulary, serves it, and sends one sentence at a time,
each followed by the same call of `ctranslate2` in this process, by a gRPC call that runs no
inference, and by an empty row, which runs everything but the engine. Every figure is a median of
alternating pairs, so that the machine's noise affects all kinds of call equally.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tiny"))

from typing import TYPE_CHECKING

import ctranslate2
import numpy as np
import tritonclient.grpc as grpc_client
from tqdm import tqdm

import tiny_models
from ct2_triton.serve import ServerOptions, TritonServer

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = 256_000
MODEL = "overhead"
CONFIG = """
backend: "ctranslate2"
dynamic_batching { }
parameters { key: "beam_size" value { string_value: "1" } }
parameters { key: "max_decoding_length" value { string_value: "4" } }
parameters { key: "inter_threads" value { string_value: "1" } }
"""


def main() -> int:
    """Measure, print a table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=400, help="pairs counted (default: 400)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "repository"
        directory = make_model(repository)
        with TritonServer(ServerOptions([repository])) as server:
            samples = measure(server.grpc_url, directory, arguments.requests)
    print_table(samples)
    return 0


def make_model(repository: Path) -> Path:
    """Write the model repository; returns the CTranslate2 directory."""
    checkpoint = repository.parent / "checkpoint"
    directory = repository / MODEL / "1" / "model"
    directory.parent.mkdir(parents=True)
    tiny_models.make("nllb", checkpoint, tiny_models.TinyOptions(vocab_size=VOCABULARY))
    tiny_models.convert(checkpoint, directory, "int8")
    (repository / MODEL / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    return directory


def measure(url: str, directory: Path, requests: int) -> dict[str, list[float]]:
    """Return milliseconds of each kind of call; the kinds alternate."""
    client = grpc_client.InferenceServerClient(url)
    engine = ctranslate2.Translator(str(directory), device="cpu", intra_threads=1)
    vocabulary = json.loads((directory / "shared_vocabulary.json").read_text())
    rng = random.Random(0)
    samples: dict[str, list[float]] = {"served": [], "in process": [], "gRPC": [], "empty row": []}
    for index in tqdm(range(requests + 20), desc="requests", disable=None):
        row = [rng.randint(4, 1000) for _ in range(17)] + [2]
        tokens = [[vocabulary[i] for i in row]]
        calls: dict[str, Callable[[], object]] = {
            "served": lambda row=row: infer(client, row),
            "in process": lambda tokens=tokens: engine.translate_batch(
                tokens, beam_size=1, max_decoding_length=4
            ),
            "gRPC": lambda: client.is_model_ready(MODEL),
            "empty row": lambda: infer(client, []),
        }
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if index >= 20:  # the first ones warm up
                samples[name].append((time.perf_counter() - started) * 1e3)
    return samples


def infer(client: grpc_client.InferenceServerClient, row: list[int]) -> object:
    """Send one row and wait."""
    ids = grpc_client.InferInput("INPUT_IDS", [1, len(row)], "INT32")
    ids.set_data_from_numpy(np.array([row], dtype=np.int32))
    wanted = [grpc_client.InferRequestedOutput("OUTPUT_IDS")]
    return client.infer(MODEL, [ids], outputs=wanted)


def print_table(samples: dict[str, list[float]]) -> None:
    """Print medians, quartiles and what follows from them."""
    print(f"{'':28}{'median ms':>10}{'25 %':>8}{'75 %':>8}")
    for name, values in samples.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{name:28}{middle:10.3f}{low:8.3f}{high:8.3f}")
    served = [a - b for a, b in zip(samples["served"], samples["in process"], strict=True)]
    beyond = [a - b for a, b in zip(served, samples["gRPC"], strict=True)]
    print(f"{'served - in process':28}{statistics.median(served):10.3f}")
    print(f"{'... beyond a gRPC call':28}{statistics.median(beyond):10.3f}")


if __name__ == "__main__":
    sys.exit(main())
