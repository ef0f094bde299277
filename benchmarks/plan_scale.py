# SPDX-License-Identifier: Apache-2.0
"""Plans a large bulk run: hours, cost, and what is busy first. The inputs are yours to measure.

A row is read and sent by a worker of `ct2-translate bulk`, which is one process, decoded by a core
of a server, and answered. Rows are simulated one by one: workers with a limit of rows in progress,
blocks that drain at their ends, servers that share the rows evenly, rows of uneven length. A core
of a server has one row at a time, while a decode loop shares it among many: the same throughput.

    python benchmarks/plan_scale.py --rows 1e9 --price 0.04
    python benchmarks/plan_scale.py --server-ms 6.5 --client-ms 0.9 --cores 8 --workers-per-server 2
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import sys
from dataclasses import dataclass, field, replace

_SIMULATED_ROWS = 20_000
_SIGMA = 0.5  # of the logarithm of a row's work


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Attributes:
        server_ms: CPU milliseconds of a server for a row.
        client_ms: CPU milliseconds of a worker for a row.
        servers: Number of servers.
        cores: Cores of each server.
        workers: Processes that read and send.
        in_flight: Rows in progress per worker (`--max-in-flight`).
        block_rows: Rows of a block (`--block-lines`); a worker waits for the last of them.
        row_bytes: Bytes of a row on the network, request and response together.
        network_mbit: Bandwidth of each server's network, in Mbit per second.
    """

    server_ms: float = 6.5
    client_ms: float = 0.9
    servers: int = 1
    cores: int = 2
    workers: int = 2
    in_flight: int = 64
    block_rows: int = 5000
    row_bytes: int = 1000
    network_mbit: float = 1000.0

    def limits(self) -> dict[str, float]:
        """Return the rows per second that each part could process if it never waited."""
        wait_s = (self.server_ms + self.client_ms) / 1000
        return {
            "servers": self.servers * self.cores / self.server_ms * 1000,
            "workers": self.workers / self.client_ms * 1000,
            "network": self.servers * self.network_mbit * 1e6 / 8 / self.row_bytes,
            "rows under way": self.workers * self.in_flight / wait_s,
        }


@dataclass
class _Worker:
    """A process: one core, a limit of rows in progress, blocks one after another."""

    free_ms: float = 0.0
    left: int = 0
    under_way: list[float] = field(default_factory=list)


def simulate(setting: Setting, rows: int = _SIMULATED_ROWS, seed: int = 1) -> float:
    """Send rows and count them.

    Args:
        setting: The workers and servers.
        rows: Number of rows.
        seed: Seed of their lengths.

    Returns:
        Rows a second.
    """
    chance = random.Random(seed)
    workers = [_Worker() for _ in range(setting.workers)]
    cores = [[0.0] * setting.cores for _ in range(setting.servers)]
    turn = [(0.0, number) for number in range(setting.workers)]
    block = min(setting.block_rows, max(1, rows // setting.workers))
    last = 0.0
    for sent in range(rows):
        _, number = heapq.heappop(turn)
        worker = workers[number]
        _make_room(worker, setting, block)
        worker.free_ms += setting.client_ms
        server = cores[sent % setting.servers]
        begin = max(heapq.heappop(server), worker.free_ms)
        end = begin + setting.server_ms * math.exp(chance.gauss(-(_SIGMA**2) / 2, _SIGMA))
        heapq.heappush(server, end)
        heapq.heappush(worker.under_way, end)
        worker.left -= 1
        last = max(last, end)
        full = len(worker.under_way) == setting.in_flight
        ready_ms = max(worker.free_ms, worker.under_way[0]) if full else worker.free_ms
        heapq.heappush(turn, (ready_ms, number))
    return min(rows / last * 1000, setting.limits()["network"])


def _make_room(worker: _Worker, setting: Setting, block: int) -> None:
    """Wait for a row of this worker that ends, or for all of them at the end of a block."""
    if worker.left == 0:
        worker.free_ms = max([worker.free_ms, *worker.under_way])
        worker.under_way.clear()
        worker.left = block
    elif len(worker.under_way) == setting.in_flight:
        worker.free_ms = max(worker.free_ms, heapq.heappop(worker.under_way))


def table(setting: Setting, servers: list[int], per_server: int, rows: float, price: float) -> str:
    """Write the plan.

    Args:
        setting: The setting with one server.
        servers: Numbers of servers to plan for.
        per_server: Workers for each of them; each counts as a core that costs.
        rows: Rows of the run.
        price: Price of a core for an hour.

    Returns:
        A table in Markdown.
    """
    lines = [
        "| servers | workers | cores | rows/s | hours | cost of 10^6 rows | cost | busy first |",
        "|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for count in servers:
        one = replace(setting, servers=count, workers=count * per_server)
        rate = simulate(one, max(_SIMULATED_ROWS, 2000 * count * per_server))
        cores = count * setting.cores + one.workers
        million = cores * price * 1e6 / rate / 3600
        limits = one.limits()
        first = min(limits, key=lambda part: limits[part])
        lines.append(
            f"| {count} | {one.workers} | {cores} | {rate:,.0f} | {rows / rate / 3600:,.1f} | "
            f"{million:.3f} | {million * rows / 1e6:,.0f} | {first} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Print the plan."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = Setting()
    parser.add_argument("--rows", type=float, default=1e9, help="of the run")
    parser.add_argument("--price", type=float, default=0.04, help="of a core for an hour")
    parser.add_argument("--servers", default="1,4,16,64,256", help="how many, comma-separated")
    parser.add_argument("--workers-per-server", type=int, default=1)
    for name, text in (
        ("server_ms", "CPU ms of a server for a row"),
        ("client_ms", "CPU ms of a worker for a row"),
        ("cores", "of each server"),
        ("in_flight", "rows that a worker has under way"),
        ("block_rows", "rows of a block"),
        ("row_bytes", "of a row on the network"),
        ("network_mbit", "of each server's network, a second"),
    ):
        default = getattr(usual, name)
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(
            flag, type=type(default), default=default, help=f"{text} (default: {default})"
        )
    args = vars(parser.parse_args())
    rows, price = args.pop("rows"), args.pop("price")
    servers = [int(text) for text in args.pop("servers").split(",")]
    per_server = args.pop("workers_per_server")
    wrong = [name for name, value in args.items() if value <= 0]
    if wrong or rows <= 0 or price < 0 or per_server < 1 or min(servers) < 1:
        parser.error("all numbers must be above 0; --price may be 0")
    print(table(replace(usual, **args), servers, per_server, rows, price))
    return 0


if __name__ == "__main__":
    sys.exit(main())
