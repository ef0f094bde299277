# SPDX-License-Identifier: Apache-2.0
"""FastAPI and Hugging Face `generate`, one request at a time: untuned, and tuned."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, ClassVar

from ct2_triton.bench.contenders.base import Client, Contender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.models.translator import SETTINGS_NAME
from ct2_triton.bench.models.web_service import port_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import aiohttp

    from ct2_triton.bench.setup import Ids, Row, Setup
    from ct2_triton.serve.process import LoggedProcess

_PACKAGES = ("fastapi", "uvicorn", "aiohttp")
_LOAD_TIMEOUT_S = 600.0
_POLL_INTERVAL_S = 0.05
_STOP_TIMEOUT_S = 20.0


class FastApiClient(Client):
    """Connections to all workers: a row goes to the one with the fewest requests of this client."""

    def __init__(self, ports: Iterable[int]) -> None:
        """Connect to nothing yet."""
        self._in_flight = dict.fromkeys(ports, 0)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open a session."""
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            raise_for_status=True,
        )

    async def stop(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def translate(self, row: Row) -> Ids:
        """Send the row to the worker with the fewest requests."""
        assert self._session is not None, "not started"  # noqa: S101
        port = min(self._in_flight, key=self._in_flight.__getitem__)
        self._in_flight[port] += 1
        try:
            async with self._session.post(
                f"http://127.0.0.1:{port}/translate/{row.model}",
                json={"input_ids": row.input_ids, "target_prefix": row.target_prefix},
            ) as response:
                return tuple((await response.json())["output_ids"])
        finally:
            self._in_flight[port] -= 1


class FastApiContender(Contender):
    """One process, PyTorch's default threads, no batches: as in most examples."""

    kind = "fastapi-transformers"
    precisions: ClassVar[tuple[str, ...]] = ("float32",)

    def __init__(self, precision: str, setup: Setup) -> None:
        """Start nothing."""
        super().__init__(precision, setup)
        self._process: LoggedProcess | None = None
        self._client: FastApiClient | None = None
        self._at: list[int] = []  # ports of the workers

    @property
    def workers(self) -> int:
        """Number of worker processes."""
        return 1

    @property
    def threads(self) -> int:
        """Threads of each process; 0 leaves the choice to PyTorch."""
        return 0

    async def start(self) -> None:
        """Start the workers and connect when all have loaded the model."""
        _check_packages()
        folder = self.setup.folder / self.name
        await asyncio.to_thread(self._start_process, folder)
        try:
            self._at = await self._ports(folder)
        except BaseException:
            await self.stop()
            raise
        self._client = self.client()
        await self._client.start()

    async def stop(self) -> None:
        """Close the connections and end the workers."""
        if self._client is not None:
            await self._client.stop()
        if self._process is not None:
            await asyncio.to_thread(self._process.stop, _STOP_TIMEOUT_S)

    @property
    def pid(self) -> int:
        """ID of the process that started the workers."""
        assert self._process is not None, "not started"  # noqa: S101 - a mistake of ours alone
        return self._process.pid

    def settings(self) -> Mapping[str, str]:
        """Return the numbers of processes and threads."""
        packages = ("fastapi", "uvicorn", "transformers", "torch")
        return {
            "server": ", ".join(f"{package} {version(package)}" for package in packages),
            "processes": f"{self.workers}, each with its own weights of each model; a request goes "
            "to the one with the fewest requests",
            "threads": "PyTorch's default" if self.threads == 0 else f"{self.threads} each",
            "batches": "none: one request at a time in a process",
            "input": "token ids as JSON",
        }

    def client(self) -> FastApiClient:
        """Return a further client."""
        return FastApiClient(self._at)

    async def translate(self, row: Row) -> Ids:
        """Send one row."""
        assert self._client is not None, "not started"  # noqa: S101
        return await self._client.translate(row)

    def _start_process(self, folder: Path) -> None:
        from ct2_triton.serve.process import LoggedProcess

        folder.mkdir()
        settings = self.translator(self.setup.checkpoint(), threads=self.threads)
        settings.write(folder / SETTINGS_NAME)
        command = [sys.executable, "-m", "ct2_triton.bench.models.web_service"]
        command += ["--folder", str(folder), "--workers", str(self.workers)]
        command += [argument for model in self.setup.models for argument in ("--model", model)]
        self._process = LoggedProcess(command, os.environ, None)

    async def _ports(self, folder: Path) -> list[int]:
        """Wait until every worker has written its port."""
        files = [port_file(folder, worker) for worker in range(self.workers)]
        deadline = time.monotonic() + _LOAD_TIMEOUT_S
        while not all(file.exists() for file in files):
            self._check_loading(deadline)
            await asyncio.sleep(_POLL_INTERVAL_S)
        return [int(file.read_text(encoding="utf-8")) for file in files]

    def _check_loading(self, deadline: float) -> None:
        assert self._process is not None  # noqa: S101
        last = "".join(self._process.log_lines()[-20:])
        if self._process.exit_code is not None:
            raise BenchError(f"{self.name} ended while it loaded:\n{last}")
        if time.monotonic() > deadline:
            raise BenchError(f"{self.name} did not load in {_LOAD_TIMEOUT_S:g} s:\n{last}")


class TunedFastApiContender(FastApiContender):
    """One-thread processes, as many as cores; with `int8`, PyTorch's dynamic quantization."""

    kind = "fastapi-transformers-tuned"
    precisions = ("float32", "int8")

    @property
    def workers(self) -> int:
        """One for each core."""
        return self.setup.cores

    @property
    def threads(self) -> int:
        """One."""
        return 1


def _check_packages() -> None:
    """Raise an error that names missing packages, before anything is started."""
    for package in _PACKAGES:
        try:
            version(package)
        except PackageNotFoundError as error:
            raise BenchError(f"{package} is missing: pip install 'ct2-triton[bench]'") from error
