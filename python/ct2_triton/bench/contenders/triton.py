# SPDX-License-Identifier: Apache-2.0
"""Contenders that are a tritonserver with a model repository, used over gRPC.

The backend of this package is configured as by ct2-prepare and ct2-serve.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import urllib.request
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ct2_triton.bench.contenders.base import ENGINE_ON_GPU, Client, Contender, ServerCounts
from ct2_triton.bench.setup import MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.bench.setup import Ids, Row, Setup
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.id_codec import ModelTensors
    from ct2_triton.serve import TritonServer

_LOAD_TIMEOUT_S = 600.0


class TritonClient(Client):
    """A connection to a server of such models."""

    def __init__(self, url: str, models: Sequence[str]) -> None:
        """Connect to nothing yet."""
        self._url = url
        self._models = models
        self._connection: Connection | None = None
        self._tensors: dict[str, ModelTensors] = {}

    async def start(self) -> None:
        """Connect and read the models' tensors."""
        from ct2_triton.client.connection import Connection
        from ct2_triton.client.id_codec import ModelTensors
        from ct2_triton.client.retry import Deadline, RetryPolicy

        self._connection = Connection(self._url, RetryPolicy())
        try:
            for model in self._models:
                metadata = await self._connection.model_metadata(model, "", Deadline(60.0))
                self._tensors[model] = ModelTensors.from_metadata(metadata, "")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def translate(self, row: Row) -> Ids:
        """Send one request of one row."""
        from tritonclient.grpc import InferResult

        from ct2_triton.client.id_codec import OUTPUT_IDS, build_request
        from ct2_triton.client.retry import Deadline

        assert self._connection is not None, "not started"  # noqa: S101
        tensors = self._tensors[row.model]
        request = build_request(tensors, row.input_ids, row.target_prefix, {})
        response = await self._connection.infer(request, Deadline(None))
        ids = InferResult(response).as_numpy(OUTPUT_IDS)
        return tuple(ids.reshape(-1).tolist())


class TritonContender(Contender):
    """A server whose models take INPUT_IDS and TARGET_PREFIX and return OUTPUT_IDS.

    A subclass writes the repository; all subclasses share the server, client and connection
    settings.
    """

    def __init__(self, precision: str, setup: Setup) -> None:
        """Start nothing."""
        super().__init__(precision, setup)
        self._server: TritonServer | None = None
        self._client: TritonClient | None = None

    @abstractmethod
    def write_repository(self, repository: Path) -> None:
        """Write a model folder for each of `setup.models`."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables for the server, in addition to those of this process."""
        return {}

    async def start(self) -> None:
        """Write the repository, start the server and connect."""
        await asyncio.to_thread(self._start_server)
        client = self.client()
        try:
            await client.start()
        except BaseException:
            await self.stop()
            raise
        self._client = client

    async def stop(self) -> None:
        """Close the connection and end the server."""
        if self._client is not None:
            await self._client.stop()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)

    @property
    def server(self) -> TritonServer:
        """The running server."""
        assert self._server is not None, "not started"  # noqa: S101 - a mistake of ours alone
        return self._server

    @property
    def pid(self) -> int:
        """ID of the server's process."""
        return self.server.process.pid

    def client(self) -> TritonClient:
        """Return a further client."""
        return TritonClient(self.server.grpc_url, self.setup.models)

    async def translate(self, row: Row) -> Ids:
        """Send one request of one row."""
        assert self._client is not None, "not started"  # noqa: S101
        return await self._client.translate(row)

    async def server_counts(self) -> ServerCounts:
        """Return Triton's statistics, added over the models."""
        return await asyncio.to_thread(self._read_counts)

    def _start_server(self) -> None:
        from ct2_triton.serve import ServerOptions, TritonServer

        repository = self.setup.folder / self.name
        repository.mkdir()
        self.write_repository(repository)
        self._server = TritonServer(ServerOptions([repository], environment=self.environment()))
        self._server.start(_LOAD_TIMEOUT_S)

    def _read_counts(self) -> ServerCounts:
        from tritonclient.grpc import InferenceServerClient

        with InferenceServerClient(self.server.grpc_url) as client:
            models = [client.get_inference_statistics(m).model_stats[0] for m in self.setup.models]
        totals = [model.inference_stats for model in models]
        return ServerCounts(
            rows=sum(model.inference_count for model in models),
            batches=sum(model.execution_count for model in models),
            requests=sum(total.success.count for total in totals),
            queue_ns=sum(total.queue.ns for total in totals),
            compute_ns=sum(
                total.compute_input.ns + total.compute_infer.ns + total.compute_output.ns
                for total in totals
            ),
        )


def _histogram(metrics: str, name: str) -> tuple[int, float]:
    """Return the count and the sum of a histogram, added over all models."""
    count, total = (
        sum(float(value) for value in re.findall(rf"^{name}_{part}\{{.*\}} (\S+)$", metrics, re.M))
        for part in ("count", "sum")
    )
    return round(count), total


class BackendContender(TritonContender):
    """Our backend, with the config that ct2-prepare writes."""

    kind = "ct2-triton"
    gpu_precisions = ENGINE_ON_GPU
    parameters: ClassVar[Mapping[str, str]] = {}
    """Model parameters in addition to those that ct2-prepare writes."""

    def write_repository(self, repository: Path) -> None:
        """Write one set of files for all names, or one for each name if `distinct`."""
        prepared = self.setup.prepared(self.precision)
        files = (prepared.directory / "1").resolve()
        for model in self.setup.models:
            folder = repository / model
            folder.mkdir()
            if self.setup.distinct:
                shutil.copytree(files, folder / "1")
            else:
                (folder / "1").symlink_to(files)
            config = prepared.config_file.read_text(encoding="utf-8")
            named = config.replace(f'name: "{MODEL}"', f'name: "{model}"', 1)
            more = "".join(
                f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
                for key, value in self.parameters.items()
            )
            (folder / prepared.config_file.name).write_text(named + more, encoding="utf-8")

    def _read_counts(self) -> ServerCounts:
        """Add the token counts of the backend's own metrics."""
        with urllib.request.urlopen(self.server.metrics_url, timeout=10) as page:  # noqa: S310
            text = page.read().decode()
        first_tokens, first_token_s = _histogram(text, "ct2_first_token_seconds")
        gaps, gap_s = _histogram(text, "ct2_longest_token_gap_seconds")
        return replace(
            super()._read_counts(),
            first_tokens=first_tokens,
            first_token_s=first_token_s,
            gaps=gaps,
            gap_s=gap_s,
        )

    def settings(self) -> Mapping[str, str]:
        """Return the settings."""
        more = ", ".join(f"{key} {value}" for key, value in self.parameters.items())
        return {
            "server": "tritonserver, this package's backend",
            "configuration": "as ct2-prepare writes it" + (f", with {more}" if more else ""),
            "input": "token ids over gRPC",
        }


class CallsContender(BackendContender):
    """Our backend without decode loops: every row is decoded by a CTranslate2 call."""

    kind = "ct2-triton-calls"
    gpu_precisions = ()  # on a GPU, ct2-triton has no decode loops by default
    parameters: ClassVar[Mapping[str, str]] = {"decoding": "calls"}


class LoopContender(BackendContender):
    """Our backend's decode loop on a GPU, where CTranslate2 calls are the default."""

    kind = "ct2-triton-loop"
    precisions = ()  # on a CPU, ct2-triton has decode loops by default
    parameters: ClassVar[Mapping[str, str]] = {"decoding": "loop", "calls": "refuse"}
