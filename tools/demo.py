# SPDX-License-Identifier: Apache-2.0
"""The whole road in one minute: prepare a model, serve it with Triton, translate live, stop.

A running commentary arrives line by line, and each line comes out in six languages. The model is
the small one in the package, which no download is needed for; with a checkpoint of your own, of
NLLB's languages: ``python tools/demo.py --checkpoint facebook/nllb-200-distilled-600M``.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.client import TranslationClient
from ct2_triton.serve import ServerOptions, TritonServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "demo"
COMMENTARY = Path(__file__).with_name("commentary.txt")
COMMANDS = Path(sys.executable).parent
MODEL = "demo"
SOURCE = "eng_Latn"
TARGETS = ("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn")
LIVE_LINES = 20
PAUSE_S = 0.25
IN_FLIGHT = 16


def main() -> int:
    """Run the demo.

    Returns:
        0; a failing step leaves through its exception.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="demo", help="hub id or folder (default: demo)")
    args = parser.parse_args()
    repository = BUILD / "model_repository"
    options = ["--model-repository", _short(repository), "--name", MODEL, "--force"]
    _command("ct2-prepare", args.checkpoint, *options)
    log_path = BUILD / "tritonserver.log"
    with log_path.open("w", encoding="utf-8") as log:
        server_options = ServerOptions(model_repositories=[repository], log=log)
        print(f"$ ct2-serve --model-repository {_short(repository)} --free-ports &", flush=True)
        with TritonServer(server_options) as server:
            print(f"ready: gRPC {server.grpc_url}, HTTP {server.http_url}")
            print(f"log: {_short(log_path)}\n", flush=True)
            result = asyncio.run(_commentary(server.grpc_url, repository))
    print(f"server stopped\n{result}")
    return 0


async def _commentary(url: str, repository: Path) -> str:
    """Shows a part of the commentary live, then translates all of it as fast as it goes."""
    lines = COMMENTARY.read_text(encoding="utf-8").splitlines()
    async with TranslationClient(url, MODEL, repository=repository) as client:
        await _stream(client, lines[:LIVE_LINES], show=True, pause_s=PAUSE_S)
        before = _counts(url)
        flow = await _stream(client, lines)
        after = _counts(url)
    batches, rows = after[0] - before[0], after[1] - before[1]
    return (
        f"{len(lines)} lines into {len(TARGETS)} languages, {IN_FLIGHT} lines under way at a time: "
        f"{len(lines) / flow.seconds:.0f} sentences/s "
        f"({len(lines) * len(TARGETS) / flow.seconds:.0f} translations/s), "
        f"p50 {flow.percentile_ms(0.5):.0f} ms and p95 {flow.percentile_ms(0.95):.0f} ms until a "
        f"sentence is there in all languages, {rows / batches:.1f} rows in Triton's mean batch"
    )


@dataclass
class _Flow:
    """When sentences of a stream went out, and when each was there in every language."""

    sent: dict[int, float] = field(default_factory=dict)
    done: dict[int, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return max(self.done.values()) - min(self.sent.values())

    def percentile_ms(self, share: float) -> float:
        latencies = sorted(self.done[i] - self.sent[i] for i in self.sent)
        return 1000 * latencies[min(len(latencies) - 1, int(share * len(latencies)))]


async def _stream(
    client: TranslationClient, lines: Sequence[str], *, show: bool = False, pause_s: float = 0.0
) -> _Flow:
    flow = _Flow()

    async def arriving() -> AsyncIterator[str]:
        for i, line in enumerate(lines):
            await asyncio.sleep(pause_s)
            if show:
                print(f"> {line}", flush=True)
            flow.sent[i] = time.monotonic()
            yield line

    async for item in client.stream(
        arriving(), source=SOURCE, targets=TARGETS, max_in_flight=IN_FLIGHT, order="as-completed"
    ):
        flow.done[item.position] = time.monotonic()
        if show:
            print(f"  {item.target}  {item.translation.text}", flush=True)
    return flow


def _counts(url: str) -> tuple[int, int]:
    """How many batches Triton has run, and how many rows were in them."""
    from tritonclient.grpc import InferenceServerClient

    with InferenceServerClient(url) as connection:
        statistics = connection.get_inference_statistics(MODEL).model_stats[0]
    return statistics.execution_count, statistics.inference_count


def _command(name: str, *arguments: str) -> None:
    print(f"$ {name} {' '.join(arguments)}", flush=True)
    subprocess.run([str(COMMANDS / name), *arguments], cwd=ROOT, check=True)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
