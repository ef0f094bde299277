# SPDX-License-Identifier: Apache-2.0
"""Many lines through ct2-translate bulk while a worker and a server are killed.

Two servers run the demo model, and the plain client translates the same lines on one of them.
Prints times, and exits with status 1 if a line differs. A run continues an interrupted one in
FOLDER.

    python benchmarks/measure_bulk.py --lines 100000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = str(Path(sys.executable).with_name("ct2-translate"))


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--block-lines", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=256, help="longest answer")
    parser.add_argument("--folder", type=Path, help="default: a temporary one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        return _measure(folder, args.lines, args.block_lines, args.tokens)


def _measure(folder: Path, lines: int, block_lines: int, tokens: int) -> int:
    source = folder / "in.txt"
    if not source.exists():
        _write(source, lines)
    if not (folder / "models").exists():
        prepare(PrepareOptions("demo", folder / "models"))
    options = ServerOptions([folder / "models"])
    with TritonServer(options) as one, TritonServer(options) as two:
        shared = ["--model=demo", "--from=en", "--to=de", f"--model-repository={folder / 'models'}"]
        shared += ["--option", f"max_decoding_length={tokens}", "-i", source]
        _plain([PROGRAM, "--url", one.grpc_url, *shared, "-o", folder / "plain.txt"], one, lines)
        both = ["--url", f"{one.grpc_url},{two.grpc_url}", "--block-lines", str(block_lines)]
        start = time.monotonic()
        bulk = [PROGRAM, "bulk", *both, *shared, "-o", folder / "bulk.txt"]
        with subprocess.Popen(bulk) as run:
            _kill_on_the_way(run, folder / "bulk.txt.blocks", lines // block_lines, two)
        seconds = time.monotonic() - start
    same = run.returncode == 0 and _texts(folder / "plain.txt") == _texts(folder / "bulk.txt")
    print(f"ct2-translate bulk: {seconds:.0f} s; the same {lines} lines: {'yes' if same else 'NO'}")
    return 0 if same else 1


def _write(source: Path, lines: int) -> None:
    sentences = (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8").splitlines()
    with source.open("w", encoding="utf-8") as file:
        for number in range(lines):
            file.write(f"{sentences[number % len(sentences)]} {number}\n")


def _plain(command: list[str | Path], server: TritonServer, lines: int) -> None:
    """Translate with the plain client; print the time per line of client and server."""
    start, before = time.monotonic(), _cpu_s(server.process.pid)
    subprocess.run(command, check=True)
    seconds, server_s = time.monotonic() - start, _cpu_s(server.process.pid) - before
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_ms = 1000 * (usage.ru_utime + usage.ru_stime) / lines
    print(
        f"ct2-translate, one server: {seconds:.0f} s; CPU ms a line: client {client_ms:.2f}, ",
        end="",
    )
    print(f"server {1000 * server_s / lines:.2f}", flush=True)


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _kill_on_the_way(
    run: subprocess.Popen[bytes], parts: Path, blocks: int, server: TritonServer
) -> None:
    """Kill a worker after a quarter of the blocks, a server after the half."""
    for share, kill in (
        (0.25, lambda: _kill_worker(run.pid)),
        (0.5, lambda: server.process.send_signal(signal.SIGKILL)),
    ):
        while run.poll() is None and len(list(parts.glob("?????????"))) < share * blocks:
            time.sleep(0.05)
        if run.poll() is None:
            kill()
            print(f"killed at {len(list(parts.glob('?????????')))} of {blocks} blocks", flush=True)
    run.wait()


def _kill_worker(pid: int) -> None:
    for process in psutil.Process(pid).children(recursive=True):
        if "MapWorker" in " ".join(process.cmdline()):
            process.kill()
            return


def _texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


if __name__ == "__main__":
    sys.exit(main())
