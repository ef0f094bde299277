# SPDX-License-Identifier: Apache-2.0
"""How long a single sentence waits beside long texts at the demo's text model.

    python benchmarks/measure_intake.py [--texts 8] [--sentences 3000] [--singles 50]

All requests go over HTTP. First single sentences are sent one at a time, alone; then one long text,
alone; then the single sentences while the long texts are translated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=8, help="long texts at once (default: 8)")
    parser.add_argument("--sentences", type=int, default=3000, help="of each (default: 3000)")
    parser.add_argument("--singles", type=int, default=50, help="single sentences (default: 50)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), "demo", io="both"))
        with TritonServer(ServerOptions([Path(folder)])) as server:
            _measure(f"{server.http_url}/v2/models/demo-text/infer", arguments)
    return 0


def _measure(url: str, arguments: argparse.Namespace) -> None:
    singles = arguments.singles
    _singles(url, singles, "warm")
    alone = _singles(url, singles, "alone")
    _report(f"{singles} single sentences, alone", alone)
    text_s = _seconds(url, _text(-1, arguments.sentences))
    print(f"one text of {arguments.sentences} sentences, alone: {text_s:.2f} s")
    started = time.perf_counter()
    threads = [
        threading.Thread(target=_seconds, args=(url, _text(i, arguments.sentences)))
        for i in range(arguments.texts)
    ]
    for thread in threads:
        thread.start()
    time.sleep(min(0.2, text_s / 4))  # so that the texts have arrived
    beside = _singles(url, singles, "beside")
    unfinished = sum(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join()
    took_s = time.perf_counter() - started
    _report(f"{singles} single sentences beside {arguments.texts} texts", beside)
    print(f"texts unfinished when the last one was answered: {unfinished}")
    print(f"all texts: {took_s:.2f} s, {took_s / arguments.texts / text_s:.2f} times one each")
    times = max(beside) / statistics.median(alone)
    print(f"the worst wait is {times:.0f} times the median alone")


def _text(number: int, sentences: int) -> str:
    return " ".join(f"Gate {number} of {i} closes in 6 minutes!" for i in range(sentences))


def _singles(url: str, count: int, name: str) -> list[float]:
    return [_seconds(url, f"Train {name} {i} leaves in 5 minutes.") for i in range(count)]


def _seconds(url: str, text: str) -> float:
    values = {"text_input": text, "source_language": "en", "target_languages": "de"}
    inputs = [
        {"name": name, "datatype": "BYTES", "shape": [1, 1], "data": [value]}
        for name, value in values.items()
    ]
    body = json.dumps({"inputs": inputs, "outputs": [{"name": "text_output"}]}).encode()
    started = time.perf_counter()
    with urllib.request.urlopen(url, body) as reply:  # noqa: S310
        reply.read()
    return time.perf_counter() - started


def _report(name: str, seconds: list[float]) -> None:
    milliseconds = sorted(1000 * one for one in seconds)
    print(
        f"{name}: median {statistics.median(milliseconds):.2f} ms, worst {milliseconds[-1]:.2f} ms"
    )


if __name__ == "__main__":
    raise SystemExit(main())
