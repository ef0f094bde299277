# SPDX-License-Identifier: Apache-2.0
"""All steps in one minute: prepare a model, serve it with Triton, translate live, stop.

A commentary arrives line by line, and each line is translated into six languages by the demo model
of the package. ``python tools/demo.py --checkpoint facebook/nllb-200-distilled-600M`` takes another
checkpoint that has these languages.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.bench.record import percentile
from ct2_triton.client import TranslationClient
from ct2_triton.errors import Ct2TritonError
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
        The exit code: 0 done, 1 failed, with a sentence on stderr, 130 interrupted.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="demo", help="hub id or folder (default: demo)")
    args = parser.parse_args()
    try:
        _demo(args.checkpoint)
    except subprocess.CalledProcessError as error:  # the command has said why
        return error.returncode
    except Ct2TritonError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has ended; Python would write again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _demo(checkpoint: str) -> None:
    """Prepare, serve, translate; print the measurements last, after the server has stopped."""
    repository = BUILD / "model_repository"
    options = ["--model-repository", _short(repository), "--name", MODEL, "--force"]
    if checkpoint == "demo":  # also text and stream models: docs/text.md
        options += ["--io", "stream"]
    _command("ct2-prepare", checkpoint, *options)
    log_path = BUILD / "tritonserver.log"
    with log_path.open("w", encoding="utf-8") as log:
        server_options = ServerOptions(model_repositories=[repository], log=log)
        print(f"$ ct2-serve --model-repository {_short(repository)} --free-ports &", flush=True)
        with TritonServer(server_options) as server:
            print(f"ready: gRPC {server.grpc_url}, HTTP {server.http_url}")
            print(f"log: {_short(log_path)}\n", flush=True)
            result = asyncio.run(_commentary(server.grpc_url, repository))
    print(f"server stopped\n{result}")


async def _commentary(url: str, repository: Path) -> str:
    """Show a part of the commentary live, then translates all of it as fast as it goes."""
    lines = COMMENTARY.read_text(encoding="utf-8").splitlines()
    async with TranslationClient(url, MODEL, repository=repository) as client:
        live = await _stream(client, lines[:LIVE_LINES], show=True, pause_s=PAUSE_S)
        print(f"live, a line every {1000 * PAUSE_S:.0f} ms: {live.latency()}")
        before = _counts(url)
        flow = await _stream(client, lines)
        after = _counts(url)
    batches, rows = after[0] - before[0], after[1] - before[1]
    return (
        f"{len(lines)} lines into {len(TARGETS)} languages, {IN_FLIGHT} lines under way at a time: "
        f"{len(lines) / flow.seconds:.0f} sentences/s "
        f"({len(lines) * len(TARGETS) / flow.seconds:.0f} translations/s), "
        f"{flow.latency()}, mean batch {rows / batches:.1f} rows (Triton's statistics)"
    )


@dataclass
class Flow:
    """When the stream took each sentence, and when all its translations had arrived.

    A sentence may then wait for others in progress. The wait counts towards its latency.
    """

    taken: dict[int, float] = field(default_factory=dict)
    done: dict[int, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """From the first sentence taken to the last translation."""
        return max(self.done.values()) - min(self.taken.values())

    def latency(self) -> str:
        """Return how long a sentence took."""
        p50, p95 = (self.percentile_ms(share) for share in (0.5, 0.95))
        return f"p50 {p50:.0f} ms and p95 {p95:.0f} ms until a sentence is there in all languages"

    def percentile_ms(self, share: float) -> float:
        """Return the latency that at least this share of the sentences does not exceed."""
        return 1000 * percentile((self.done[i] - self.taken[i] for i in self.taken), share)


async def _stream(
    client: TranslationClient, lines: Sequence[str], *, show: bool = False, pause_s: float = 0.0
) -> Flow:
    flow = Flow()

    async def arriving() -> AsyncIterator[str]:
        for i, line in enumerate(lines):
            await asyncio.sleep(pause_s)
            if show:
                print(f"> {line}", flush=True)
            flow.taken[i] = time.monotonic()
            yield line

    async for item in client.stream(
        arriving(), source=SOURCE, targets=TARGETS, max_in_flight=IN_FLIGHT, order="as-completed"
    ):
        flow.done[item.position] = time.monotonic()
        if show:
            print(f"  {item.target}  {item.translation.text}", flush=True)
    return flow


def _counts(url: str) -> tuple[int, int]:
    """Return how many batches the model has run, and their rows, as Triton counts them."""
    from tritonclient.grpc import InferenceServerClient

    with InferenceServerClient(url) as connection:
        statistics = connection.get_inference_statistics(MODEL).model_stats[0]
    return statistics.execution_count, statistics.inference_count


def _command(name: str, *arguments: str) -> None:
    print(f"$ {name} {' '.join(arguments)}", flush=True)
    subprocess.run([str(COMMANDS / name), *arguments], check=True)


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
