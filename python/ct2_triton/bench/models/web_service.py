# SPDX-License-Identifier: Apache-2.0
"""FastAPI in front of Hugging Face `generate`, one request at a time in each process.

    python -m ct2_triton.bench.models.web_service --folder F --workers 2 --model translate

F holds `settings.json`. Each worker is a process with its own port, which it writes to
`F/<number>.port` when it has loaded its models. The client chooses the worker, as a load balancer
would.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.bench.models.translator import SETTINGS_NAME, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence


def port_file(folder: Path, worker: int) -> Path:
    """Return the file that holds the port of a worker."""
    return folder / f"{worker}.port"


def _serve(folder: Path, worker: int, models: Sequence[str]) -> None:
    """Run one worker until it is terminated."""
    import uvicorn

    from ct2_triton.bench.models.web_app import make_app

    app = make_app(Settings.read(folder / SETTINGS_NAME), models)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        file = port_file(folder, worker)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(str(listener.getsockname()[1]), encoding="utf-8")
        unfinished.rename(file)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def _main() -> int:
    parser = argparse.ArgumentParser(description="FastAPI in front of Hugging Face generate")
    parser.add_argument("--folder", type=Path, required=True, help="holds settings.json")
    parser.add_argument("--workers", type=int, required=True, help="processes")
    parser.add_argument("--model", action="append", required=True, help="name to serve it under")
    args = parser.parse_args()
    # Daemonic children end when this process exits normally.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Nothing is loaded yet and there is one thread, so a fork is safe and needs no extra process.
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=_serve, args=(args.folder, worker, args.model), daemon=True)
        for worker in range(args.workers)
    ]
    for child in children:
        child.start()
    multiprocessing.connection.wait([child.sentinel for child in children])
    return 1  # workers do not exit by themselves


if __name__ == "__main__":
    sys.exit(_main())
