# SPDX-License-Identifier: Apache-2.0
"""What counting a row costs, beside decoding it: nanoseconds of updates against a row.

python benchmarks/measure_metrics.py [--rows 300]

Additions are timed in the core. Observations into histograms are timed on Triton's own library,
called through ctypes, which costs more than the backend's direct call: the sum is an upper bound. A
row is one of the demo model in a real server: thread time as the server itself counts it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from ct2_triton import _core
from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer

ROOT = Path(__file__).resolve().parents[1]

# For a row that arrives alone: serving/model_metrics.cc. Rows that share a request or a call share
# some of them.
ADDITIONS_A_ROW = 16
OBSERVATIONS_A_ROW = 4
OBSERVATIONS = 200_000


def _library() -> Path:
    """Return the path of Triton's library in the wheel nvidia-pytriton."""
    spec = importlib.util.find_spec("pytriton")
    if spec is None or spec.origin is None:
        raise SystemExit("the library is looked for in the wheel nvidia-pytriton")
    folder = Path(spec.origin).parents[1] / "nvidia_pytriton.libs"
    (path,) = folder.glob("libtritonserver*.so*")
    return path


def observe(library: str) -> float:
    """Time observations into a histogram of the library.

    Args:
        library: Path of Triton's library.

    Returns:
        Nanoseconds of one.
    """
    triton = ctypes.CDLL(library)
    family, arguments, metric = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    bounds = _core.histogram_bounds()
    triton.TRITONSERVER_MetricFamilyNew(ctypes.byref(family), 2, b"measured", b"measured")
    triton.TRITONSERVER_MetricArgsNew(ctypes.byref(arguments))
    array = (ctypes.c_double * len(bounds))(*bounds)
    count = ctypes.c_uint64(len(bounds))
    triton.TRITONSERVER_MetricArgsSetHistogram(arguments, array, count)
    triton.TRITONSERVER_MetricNewWithArgs(
        ctypes.byref(metric), family, None, ctypes.c_uint64(0), arguments
    )
    value, call = ctypes.c_double(0.01), triton.TRITONSERVER_MetricObserve
    start = time.perf_counter_ns()
    for _ in range(OBSERVATIONS):
        call(metric, value)
    return (time.perf_counter_ns() - start) / OBSERVATIONS


def _observation_ns() -> float:
    """Run `observe` in a separate process, where the library finds those in its folder."""
    path = _library()
    answer = subprocess.run(
        [sys.executable, __file__, "--observe", str(path)],
        env={**os.environ, "LD_LIBRARY_PATH": str(path.parent)},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(answer.stdout))


def _row_ns(rows: int) -> float:
    """Return the thread time of one row of the demo model when rows are sent one at a time."""
    sentences = (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder)))
        with (
            TritonServer(ServerOptions([Path(folder)])) as server,
            SyncTranslationClient(server.grpc_url, "demo", repository=Path(folder)) as client,
        ):
            for i in range(rows):
                client.translate(sentences[i % len(sentences)], source="en", targets="de")
            time.sleep(1)  # until the last of them is shown
            with urllib.request.urlopen(server.metrics_url) as page:  # noqa: S310
                text = page.read().decode()
    (busy,) = re.findall(r"ct2_busy_seconds_total\{[^}]*\} (\S+)", text)
    return float(busy) * 1e9 / rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--observe", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.observe:
        print(json.dumps(observe(options.observe)))
        return 0
    addition = _core.metric_add_ns(10_000_000)
    observation = _observation_ns()
    row = _row_ns(options.rows)
    cost = ADDITIONS_A_ROW * addition + OBSERVATIONS_A_ROW * observation
    print(f"addition: {addition:.1f} ns, {ADDITIONS_A_ROW} a row")
    print(f"observation, through ctypes: {observation:.0f} ns, {OBSERVATIONS_A_ROW} a row")
    print(f"together: {cost / 1e3:.2f} us; a row of the demo model: {row / 1e3:.0f} us of a thread")
    print(f"at most {100 * cost / row:.3f} % of a row")
    return 0


if __name__ == "__main__":
    sys.exit(main())
