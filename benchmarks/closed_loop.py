# SPDX-License-Identifier: Apache-2.0
"""Closed-loop clients that send each row when the previous one is answered, to several models."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence

import numpy as np
import tritonclient.grpc as grpc_client

from random_rows import Rows, same_rows


def send_all(
    client: grpc_client.InferenceServerClient, model: str, rows: Rows, clients: int
) -> None:
    """Send all rows, `clients` at a time."""
    slots = threading.Semaphore(clients)
    failures: list[Exception] = []

    def done(result: object, error: Exception | None) -> None:
        if error is not None:
            failures.append(error)
        slots.release()

    wanted = [grpc_client.InferRequestedOutput("OUTPUT_IDS")]
    for row in rows:
        slots.acquire()
        ids = grpc_client.InferInput("INPUT_IDS", [1, len(row)], "INT32")
        ids.set_data_from_numpy(np.array([row], dtype=np.int32))
        client.async_infer(model, [ids], done, outputs=wanted)
    for _ in range(clients):
        slots.acquire()
    if failures:
        raise failures[0]


def rates_in_turn(
    url: str, models: Sequence[str], clients: int, least_rows: int, rounds: int
) -> dict[str, list[float]]:
    """Rows per second of each model in each round, after a warm-up round."""
    client = grpc_client.InferenceServerClient(url)
    rates: dict[str, list[float]] = {name: [] for name in models}
    rows = same_rows(max(least_rows, 2 * clients))
    for turn in range(-1, rounds):
        for name in models if turn % 2 else models[::-1]:
            begin = time.perf_counter()
            send_all(client, name, rows, clients)
            if turn >= 0:
                rates[name].append(len(rows) / (time.perf_counter() - begin))
    client.close()
    return rates


def times_faster(rates: list[float], others: list[float]) -> str:
    """A cell of a table: the median of the rounds' ratios, and their range."""
    ratios = [rate / other for rate, other in zip(rates, others, strict=True)]
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f})"
