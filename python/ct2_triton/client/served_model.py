# SPDX-License-Identifier: Apache-2.0
"""A model as its server knows it: which tensors each version has, and how to send it a request."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton.client.versions import VersionSplit, first_served
from ct2_triton.errors import (
    ClientError,
    InvalidCallError,
    RequestRejectedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.calls import Build, Call
    from ct2_triton.client.connection import Deadline
    from ct2_triton.client.link import Link
    from ct2_triton.client.requests import ModelTensors
    from ct2_triton.client.text_requests import TextModel

_LOG = logging.getLogger(__name__)


class ServedModel:
    """One model, whose requests are split between versions."""

    def __init__(self, name: str, split: VersionSplit, connect: Callable[[], Link]) -> None:
        """Keep how to reach the model.

        Args:
            name: The model's name.
            split: Which versions are asked.
            connect: Gives the connection of the event loop that runs.
        """
        self._name = name
        self._split = split
        self._connect = connect
        self._tensors: dict[str, ModelTensors | TextModel] = {}  # by version
        self._answered: dict[str, str] = {}  # the version that answered, by the one asked for
        self.served: tuple[str, ...] = ()  # the versions that the server had last
        self.takes_text: bool | None = None  # as the server has said last

    def versions(self, session: str) -> tuple[str, ...]:
        """Give the versions to ask for a session, in their order; "" where the server chooses."""
        return self._split.order(session)

    def gives(self, output: str) -> bool:
        """Tell whether a version declares an output, as far as the server has said it yet."""
        return any(output in tensors.outputs for tensors in self._tensors.values())

    async def look(self, deadline: Deadline) -> ModelTensors | TextModel:
        """Ask the server what the model takes.

        Raises:
            ClientError: The server cannot be reached, or has no such model.
        """
        ask = partial(self._ask_for_tensors, deadline=deadline)
        return await first_served(self.versions(""), ask)

    async def send(
        self, build: Build, call: Call, text: str, key: str | None
    ) -> service_pb2.ModelInferResponse:
        """Send a request, again after an outage if it has no key.

        Where it is refused, and the model has other tensors than before, it is sent once more.

        Args:
            build: Makes the request to a version.
            call: The call that it belongs to: its clock, its session and its headers.
            text: The session where the call has none.
            key: What a newer request may end it by, or None.

        Raises:
            ClientError: It was not answered, or refused.
        """

        async def attempt(deadline: Deadline) -> service_pb2.ModelInferResponse:
            async def infer(
                version: str, tensors: ModelTensors | TextModel
            ) -> service_pb2.ModelInferResponse:
                request = build(tensors, deadline.remaining_s())
                response = await link.connection.infer(request, deadline, call.headers)
                self._note(version, response.model_version)
                return response

            async def ask(version: str) -> service_pb2.ModelInferResponse:
                known = self._tensors.get(version)
                if known is None:
                    return await infer(version, await self._ask_for_tensors(version, deadline))
                try:
                    return await infer(version, known)
                except (InvalidCallError, RequestRejectedError):
                    changed = await self._changed(version, known, deadline)
                    if changed is None:
                        raise
                return await infer(version, changed)  # what was refused has not run

            return await first_served(versions, ask)

        versions = self.versions(call.session or text)
        link = self._connect()
        if key is None:
            return await link.outage.outlast(attempt, call.start_clock)
        return await attempt(call.start_clock())  # sent again, it might end a newer one

    def _note(self, version: str, answered: str) -> None:
        """Forget the tensors where the server has chosen another version than before."""
        if self._answered.setdefault(version, answered) != answered:
            self._answered[version] = answered
            self._tensors.pop(version, None)

    async def _changed(
        self, version: str, known: ModelTensors | TextModel, deadline: Deadline
    ) -> ModelTensors | TextModel | None:
        """Ask for the tensors again, behind a refusal; None where they are as they were."""
        try:
            tensors = await self._ask_for_tensors(version, deadline)
        except ClientError:  # the refusal says more
            return None
        if tensors == known:
            return None
        _LOG.info("%s was loaded with other tensors", self._name)
        return tensors

    async def _ask_for_tensors(self, version: str, deadline: Deadline) -> ModelTensors | TextModel:
        from ct2_triton.client.requests import ModelTensors
        from ct2_triton.client.text_requests import TextModel

        metadata = await self._connect().connection.model_metadata(self._name, version, deadline)
        self.served = tuple(metadata.versions)
        text_model = TextModel.from_metadata(metadata, version)
        tensors = text_model or ModelTensors.from_metadata(metadata, version)
        self._tensors[version] = tensors
        self.takes_text = tensors.takes_text
        return tensors
