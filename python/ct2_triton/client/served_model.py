# SPDX-License-Identifier: Apache-2.0
"""A model as its server knows it: its versions, what tensors each has, how to send it a request.

Sessions are split by weight between versions (a canary), and each stays with its own. Every version
draws a number from the session's key, scaled by its weight, and the largest wins (weighted
rendezvous hashing). So the choice needs no memory, is the same in every process, and a change of
weights moves no more sessions than it must.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ct2_triton.client.failures import UNKNOWN_MODEL
from ct2_triton.errors import (
    ClientError,
    InvalidCallError,
    ModelNotFoundError,
    RequestRejectedError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.calls import Build, Call
    from ct2_triton.client.id_codec import ModelTensors
    from ct2_triton.client.retry import Deadline
    from ct2_triton.client.servers import Link
    from ct2_triton.client.text_codec import TextModel

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")
_DRAWN_BYTES = 8
_MOST_SHOWN = 8  # models in an error


class VersionSplit:
    """Which version a session goes to, and which to if the server does not have that one."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """Keep weights that are checked, by version; "" is the server's choice."""
        self._weights = dict(weights)

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> VersionSplit:
        """Check a caller's weights, such as `{"1": 0.9, "2": 0.1}`; their ratios count.

        A version of weight 0 is asked where the server has no other.
        """
        for version, weight in weights.items():
            if not (isinstance(version, str) and version.isascii() and version.isdigit()):
                raise InvalidCallError(f"versions has {version!r}; name versions as in '2'")
            if not (isinstance(weight, int | float) and 0 <= weight < math.inf):
                raise InvalidCallError(f"version {version} has weight {weight!r}; 0 or more is due")
        if not any(weights.values()):
            raise InvalidCallError(f"versions is {dict(weights)!r}; one needs a weight above 0")
        return cls(weights)

    def order(self, session: str) -> tuple[str, ...]:
        """Give all versions, that of the session first."""
        scores = {
            version: _score(session, version, weight) for version, weight in self._weights.items()
        }
        return tuple(sorted(scores, key=lambda version: scores[version], reverse=True))


async def first_served(versions: Sequence[str], ask: Callable[[str], Awaitable[Result]]) -> Result:
    """Ask one version after the other until the server has one of them.

    A request for a version that the server does not have is refused before it runs, so it may be
    sent to another.
    """
    for version in versions[:-1]:
        try:
            return await ask(version)
        except ClientError as error:
            if not _is_not_served(error):
                raise
    return await ask(versions[-1])


def _is_not_served(error: ClientError) -> bool:
    return isinstance(error, ModelNotFoundError) or str(error).startswith(UNKNOWN_MODEL)


def _nearest(name: str, models: Mapping[str, Sequence[str]]) -> str:
    """Name the versions that a server has of a model, else the models nearest to its name."""
    if name in models:
        return f"it is served in version {', '.join(models[name])}"
    near = difflib.get_close_matches(name, models, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = sorted(models)[:_MOST_SHOWN]
    more = ", ..." if len(models) > len(shown) else ""
    return f"the server has {', '.join(shown) or 'no model'}{more}"


def _score(session: str, version: str, weight: float) -> float:
    text = f"{session}\0{version}".encode(errors="replace")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=_DRAWN_BYTES).digest(), "big")
    drawn = (number + 0.5) / 2 ** (8 * _DRAWN_BYTES)  # above 0 and below 1
    return -weight / math.log(drawn) if weight else 0.0


class ServedModel:
    """One model, whose requests are split between versions."""

    def __init__(self, name: str, split: VersionSplit, connect: Callable[[], Link]) -> None:
        """Keep how to reach the model; `connect` gives the running loop's connection."""
        self._name = name
        self._split = split
        self._connect = connect
        self._tensors: dict[str, ModelTensors | TextModel] = {}  # by version
        self._answered: dict[str, str] = {}  # the version that answered, by the one asked for
        self.served: tuple[str, ...] = ()  # the versions that the server had last
        self.takes_text: bool | None = None  # as the server has said last

    def gives(self, output: str) -> bool:
        """Tell whether a version declares an output, as far as the server has said it yet."""
        return any(output in tensors.outputs for tensors in self._tensors.values())

    async def ask_model(self, deadline: Deadline) -> ModelTensors | TextModel:
        """Ask the server what the model takes."""
        ask = partial(self._ask_for_tensors, deadline=deadline)
        return await self._first_served("", ask, deadline)

    async def send(
        self, build: Build, call: Call, text: str, key: str | None
    ) -> service_pb2.ModelInferResponse:
        """Send a request, again after an outage if it has no key.

        The text is the session where the call has none.
        """

        async def infer(
            tensors: ModelTensors | TextModel, deadline: Deadline
        ) -> service_pb2.ModelInferResponse:
            request = build(tensors, deadline.remaining_s())
            connection = self._connect().connection
            response = await connection.infer(request, deadline, call.headers)
            self._note(tensors.version, response.model_version)
            return response

        return await self.ask(infer, call, text, repeats=key is None)

    async def ask(
        self,
        attempt: Callable[[Any, Deadline], Awaitable[Result]],
        call: Call,
        text: str,
        *,
        repeats: bool,
    ) -> Result:
        """Ask one version after the other until the server has one, and again after an outage.

        Where it is refused, and the model has other tensors than before, it is asked once more.

        Args:
            attempt: Asks a version, with its tensors, until a deadline.
            call: The call that it belongs to.
            text: The session where the call has none.
            repeats: Whether it may be asked again after an outage: sent again, a request with a key
                might end a newer one.

        Raises:
            ClientError: What the last attempt met.
        """

        async def once(deadline: Deadline) -> Result:
            async def ask(version: str) -> Result:
                known = self._tensors.get(version)
                if known is None:
                    return await attempt(await self._ask_for_tensors(version, deadline), deadline)
                try:
                    return await attempt(known, deadline)
                except (InvalidCallError, RequestRejectedError):
                    changed = await self._changed(version, known, deadline)
                    if changed is None:
                        raise
                return await attempt(changed, deadline)  # what was refused has not run

            return await self._first_served(call.session or text, ask, deadline)

        outage = self._connect().outage
        if repeats:
            return await outage.outlast(once, call.start_clock)
        return await once(call.start_clock())

    async def _first_served(
        self, session: str, ask: Callable[[str], Awaitable[Result]], deadline: Deadline
    ) -> Result:
        """Ask a session's versions in order; where the server has none, name what it has."""
        try:
            return await first_served(self._split.order(session), ask)
        except ModelNotFoundError as error:
            hint = await self._served_instead(deadline)
            raise ModelNotFoundError(f"{error}{hint}") from error.__cause__

    async def _served_instead(self, deadline: Deadline) -> str:
        try:
            models = await self._connect().connection.ready_models(deadline)
        except ClientError:  # the index may be restricted
            return ""
        return f"; {_nearest(self._name, models)}"

    def _note(self, version: str, answered: str) -> None:
        """Forget the tensors where the server has chosen another version than before."""
        if self._answered.setdefault(version, answered) != answered:
            self._answered[version] = answered
            self._tensors.pop(version, None)

    async def _changed(
        self, version: str, known: ModelTensors | TextModel, deadline: Deadline
    ) -> ModelTensors | TextModel | None:
        """Ask for the tensors again, after a refusal; None where they are as they were."""
        try:
            tensors = await self._ask_for_tensors(version, deadline)
        except ClientError:  # the refusal says more
            return None
        if tensors == known:
            return None
        _LOG.info("%s was loaded with other tensors", self._name)
        return tensors

    async def _ask_for_tensors(self, version: str, deadline: Deadline) -> ModelTensors | TextModel:
        from ct2_triton.client.id_codec import ModelTensors
        from ct2_triton.client.text_codec import TextModel

        metadata = await self._connect().connection.model_metadata(self._name, version, deadline)
        self.served = tuple(metadata.versions)
        text_model = TextModel.from_metadata(metadata, version)
        tensors = text_model or ModelTensors.from_metadata(metadata, version)
        self._tensors[version] = tensors
        self.takes_text = tensors.takes_text
        return tensors
