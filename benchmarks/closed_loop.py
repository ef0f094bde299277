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
    client: grpc_client.InferenceServerClient,
    model: str,
    rows: Rows,
    clients: int,
    prefixes: Sequence[int] = (),
) -> None:
    """Send all rows, `clients` at a time; each may have a prefix of one ID."""
    slots = threading.Semaphore(clients)
    failures: list[Exception] = []

    def done(result: object, error: Exception | None) -> None:
        if error is not None:
            failures.append(error)
        slots.release()

    wanted = [grpc_client.InferRequestedOutput("OUTPUT_IDS")]
    for i, row in enumerate(rows):
        slots.acquire()
        inputs = [_ids("INPUT_IDS", row)]
        if prefixes:
            inputs.append(_ids("TARGET_PREFIX", [prefixes[i]]))
        client.async_infer(model, inputs, done, outputs=wanted)
    for _ in range(clients):
        slots.acquire()
    if failures:
        raise failures[0]


def _ids(tensor: str, ids: list[int]) -> grpc_client.InferInput:
    made = grpc_client.InferInput(tensor, [1, len(ids)], "INT32")
    made.set_data_from_numpy(np.array([ids], dtype=np.int32))
    return made


def rates_in_turn(
    url: str,
    models: Sequence[str],
    clients: int,
    least_rows: int,
    rounds: int,
    prefixes: Sequence[int] = (),
) -> dict[str, list[float]]:
    """Rows per second of each model in each round, after a warm-up round.

    `prefixes` are used cyclically for the rows.
    """
    client = grpc_client.InferenceServerClient(url)
    rates: dict[str, list[float]] = {name: [] for name in models}
    rows = same_rows(max(least_rows, 2 * clients))
    own = [prefixes[i % len(prefixes)] for i in range(len(rows))] if prefixes else ()
    for turn in range(-1, rounds):
        for name in models if turn % 2 else models[::-1]:
            begin = time.perf_counter()
            send_all(client, name, rows, clients, own)
            if turn >= 0:
                rates[name].append(len(rows) / (time.perf_counter() - begin))
    client.close()
    return rates


def times_faster(rates: list[float], others: list[float]) -> str:
    """A cell of a table: the median of the rounds' ratios, and their range."""
    ratios = [rate / other for rate, other in zip(rates, others, strict=True)]
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f})"
