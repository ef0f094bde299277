# SPDX-License-Identifier: Apache-2.0
"""A contender that is a tritonserver with a model repository, used over gRPC."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING

from ct2_triton.bench.contenders.base import Contender, ServerCounts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ct2_triton.bench.setup import Ids, Row, Setup
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.id_codec import ModelTensors
    from ct2_triton.serve import TritonServer

_LOAD_TIMEOUT_S = 600.0


class TritonContender(Contender):
    """A server whose models take INPUT_IDS and TARGET_PREFIX and return OUTPUT_IDS.

    A subclass writes the repository; all subclasses share the server, client and connection
    settings.
    """

    def __init__(self, precision: str, setup: Setup) -> None:
        """Start nothing."""
        super().__init__(precision, setup)
        self._server: TritonServer | None = None
        self._connection: Connection | None = None
        self._tensors: dict[str, ModelTensors] = {}

    @abstractmethod
    def write_repository(self, repository: Path) -> None:
        """Write a model folder for each of `setup.models`."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables for the server, in addition to those of this process."""
        return {}

    async def start(self) -> None:
        """Write the repository, start the server and connect."""
        from ct2_triton.client.connection import Connection
        from ct2_triton.client.id_codec import ModelTensors
        from ct2_triton.client.retry import Deadline, RetryPolicy

        await asyncio.to_thread(self._start_server)
        try:
            self._connection = Connection(self.server.grpc_url, RetryPolicy())
            for model in self.setup.models:
                metadata = await self._connection.model_metadata(model, "", Deadline(60.0))
                self._tensors[model] = ModelTensors.from_metadata(metadata, "")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the connection and end the server."""
        if self._connection is not None:
            await self._connection.close()
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
