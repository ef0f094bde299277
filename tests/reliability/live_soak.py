# SPDX-License-Identifier: Apache-2.0
"""An event of live captions that goes on and on, and what ct2-live and a viewer's page hold."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import aiohttp
import psutil

from ct2_triton.bench.workload import SENTENCES
from ct2_triton.live.hub import SOURCE
from ct2_triton.live.updates import is_piece_name
from recognizer_simulator import RecognizerSimulator
from support.browser import chromium
from support.web_command import WebCommand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ct2_triton.serve import TritonServer

LANGUAGES = ["de", "fr", "es", "it", "pt", "nl"]
_SAMPLE_S = 10.0
_CAPTIONS = 1000  # so that what is kept on purpose is there before the warm-up is over
_HEAP = "(gc(), performance.memory.usedJSHeapSize)"
_NODES = "document.querySelectorAll('*').length"


@dataclass(frozen=True)
class Sample:
    """What was held at a moment."""

    seconds: float
    live_mib: float  # resident in ct2-live
    triton_mib: float  # resident in tritonserver
    heap_mib: float  # of the page, after a collection
    nodes: int  # elements of the page


@dataclass
class LiveSoakReport:
    """What was said and seen, and what was held meanwhile."""

    updates: int = 0
    spoken: int = 0  # segments
    pieces: list[str] = field(default_factory=list)  # what they were cut into
    finals: int = 0  # that a viewer was given, in all languages
    messages: int = 0
    wrong: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all that was said is there in all languages."""
        whole = sum(not is_piece_name(name) for name in self.pieces) == self.spoken
        return whole and self.finals == len(self.pieces) * len(LANGUAGES)

    def at(self, what: str, start: float, end: float) -> float:
        """The median of a figure between two shares of the time."""
        last = self.samples[-1].seconds
        chosen = [s for s in self.samples if start * last <= s.seconds <= end * last]
        return median(float(getattr(sample, what)) for sample in chosen)

    def growth(self, what: str) -> float:
        """From after a warm-up of a third to the end, as a share."""
        return self.at(what, 0.9, 1.0) / self.at(what, 0.3, 0.4) - 1


@contextmanager
def live_command(server: TritonServer, repository: Path) -> Iterator[WebCommand]:
    """Runs ct2-live on the demo model."""
    command = [str(Path(sys.executable).with_name("ct2-live")), "--model", "demo", "--from", "en"]
    command += ["--to", ",".join(LANGUAGES), "--url", server.grpc_url, "--port", "0"]
    command += ["--model-repository", str(repository), "--max-captions", str(_CAPTIONS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        live = WebCommand(process)
        try:
            yield live
        finally:
            live.stop()


async def run_live_soak(
    server: TritonServer, repository: Path, seed: int, speakers: int, seconds: float, folder: Path
) -> LiveSoakReport:
    """Speaks for so long, with a viewer in Chromium and one who counts."""
    report = LiveSoakReport()
    with live_command(server, repository) as live, chromium(folder / "profile") as browser:
        async with aiohttp.ClientSession() as session:
            counting = asyncio.create_task(_count(session, live.url, report))
            await asyncio.to_thread(browser.get, f"{live.url}/demo")
            pids = live.process.pid, server.process.pid
            sampling = asyncio.create_task(_sample(browser, pids, report))
            speaking = [
                _speak(session, live.url, f"s{i}", seed, seconds, report) for i in range(speakers)
            ]
            await asyncio.gather(*speaking)
            for _ in range(600):
                if report.is_complete:
                    break
                await asyncio.sleep(0.1)
            if not report.is_complete:
                pieces = f"{report.spoken} segments in {len(report.pieces)} pieces"
                report.wrong.append(f"{report.finals} finals came of {pieces}")
            for task in (sampling, counting):
                task.cancel()
            await asyncio.gather(sampling, counting, return_exceptions=True)
    return report


async def _speak(
    session: aiohttp.ClientSession,
    url: str,
    name: str,
    seed: int,
    seconds: float,
    report: LiveSoakReport,
) -> None:
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()
    chooser = random.Random(f"{seed}/{name}")
    chosen = [chooser.choice(sentences) for _ in range(round(seconds) + 1)]
    start = time.monotonic()
    async with session.ws_connect(f"{url}/speak?speaker={name}") as socket:
        for update in RecognizerSimulator(name, seed).updates(chosen, seconds):
            await asyncio.sleep(max(0.0, start + (update.time or 0.0) - time.monotonic()))
            message = {"segment": update.segment, "text": update.text, "final": update.final}
            await socket.send_json({**message, "time": update.time})
            answer = await socket.receive_json()
            report.updates += 1
            report.spoken += update.final
            if answer["type"] != "taken":
                report.wrong.append(str(answer))


async def _count(session: aiohttp.ClientSession, url: str, report: LiveSoakReport) -> None:
    seen: set[tuple[str, str]] = set()
    languages = ",".join([*LANGUAGES, SOURCE])
    async with session.ws_connect(f"{url}/captions?to={languages}") as socket:
        async for message in socket:
            caption: dict[str, Any] = json.loads(message.data)
            report.messages += 1
            if not caption.get("final"):
                continue
            key = caption["segment"], caption["target"]
            if key in seen or caption.get("error"):
                report.wrong.append(f"a second final, or an error: {caption}")
            seen.add(key)
            if caption["target"] == SOURCE:
                report.pieces.append(caption["segment"])
            else:
                report.finals += 1


async def _sample(browser: Any, pids: tuple[int, int], report: LiveSoakReport) -> None:
    start = time.monotonic()
    while True:
        heap, nodes = await asyncio.to_thread(browser.execute_script, f"return [{_HEAP}, {_NODES}]")
        live, triton = (psutil.Process(pid).memory_info().rss / 2**20 for pid in pids)
        now = time.monotonic() - start
        report.samples.append(Sample(now, live, triton, heap / 2**20, nodes))
        await asyncio.sleep(_SAMPLE_S)
