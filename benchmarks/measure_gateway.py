# SPDX-License-Identifier: Apache-2.0
"""Measures what a translation costs each process, with and without ct2-gateway.

    python benchmarks/measure_gateway.py --requests 3000

48 clients send the demo's text model one sentence per request. Prints milliseconds of processor
time per translation for the server, the gateway and this program, which is all clients. Unlike
elapsed time, they do not depend on other work on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer
from measure_text import whole_sentences
from text_ways import Way, open_ways

LANGUAGES = ("de", "fr", "es", "it")


def cpu_s(process: psutil.Process) -> float:
    """Processor time of a process and its children."""
    family = [process, *process.children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family)


async def ask(way: Way, clients: int, requests: int, targets: tuple[str, ...]) -> None:
    sentences = whole_sentences()
    numbers = iter(range(requests))

    async def client() -> None:
        for number in numbers:
            await way.ask(sentences[number % len(sentences)], targets)

    await asyncio.gather(*(client() for _ in range(clients)))


async def measure(url: str, repository: Path, server: int, args: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        ways = await open_ways(stack, ["text", "gateway"], url, repository)
        own = psutil.Process()
        gateways = [one for one in own.children() if one.pid != server]
        assert len(gateways) == 1
        watched = {"server": psutil.Process(server), "gateway": gateways[0]}
        print("| | languages | server | gateway | clients | all | a second |")
        print(f"|{'---|' * 7}")
        for count in (1, len(LANGUAGES)):
            for name, way in itertools.chain.from_iterable([ways.items()] * (args.rounds + 1)):
                before = {role: cpu_s(one) for role, one in watched.items()}
                mine, start = time.process_time(), time.monotonic()
                await ask(way, args.clients, args.requests // count, LANGUAGES[:count])
                mine, took = time.process_time() - mine, time.monotonic() - start
                spent = {role: cpu_s(one) - before[role] for role, one in watched.items()}
                spent["clients"] = mine
                cells = [
                    f"{1000 * s / args.requests:.3f}"
                    for s in (*spent.values(), sum(spent.values()))
                ]
                print(
                    f"| {name} | {count} | {' | '.join(cells)} | {args.requests / took:.0f} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="both"))
        with TritonServer(ServerOptions([Path(folder)])) as server:
            asyncio.run(measure(server.grpc_url, Path(folder), server.process.pid, args))


if __name__ == "__main__":
    main()
