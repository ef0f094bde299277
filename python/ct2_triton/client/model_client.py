# SPDX-License-Identifier: Apache-2.0
"""A model of a server: what a client knows about it, and its connection."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ct2_triton.client.calls import is_unicode, read_headers
from ct2_triton.client.messages import UNKNOWN_MODEL
from ct2_triton.client.retry import Deadline, RetryPolicy, wait_until_ready
from ct2_triton.client.servers import Link, Servers, open_link
from ct2_triton.client.tasks import check_in_flight
from ct2_triton.client.tokenization import (
    NamedLanguages,
    Tokenizer,
    find_tokenizer,
    has_tokenizer,
)
from ct2_triton.errors import (
    ClientError,
    InvalidCallError,
    ModelNotFoundError,
    RequestRejectedError,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import EllipsisType

    import grpc
    from tritonclient.grpc import service_pb2
    from typing_extensions import Self

    from ct2_triton.client.calls import Build, Call
    from ct2_triton.client.id_codec import IdCodec, ModelTensors
    from ct2_triton.client.servers import Link, LoadBalancing
    from ct2_triton.client.text_codec import TextCodec, TextModel

DEFAULT_TIMEOUT_S = 60.0
_LOG = logging.getLogger(__name__)


class ModelClient:
    """A model of a server. Its connection opens with the first call."""

    def __init__(
        self,
        url: str | Sequence[str],
        model: str,
        *,
        load_balancing: LoadBalancing | None = None,
        repository: str | os.PathLike[str] | None = None,
        tokenizer: str | os.PathLike[str] | Tokenizer | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        retry: RetryPolicy | None = None,
        max_in_flight: int = 256,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Mapping[str, str] | None = None,
        version: str = "",
        versions: Mapping[str, float] | None = None,
        join_texts: bool = False,
    ) -> None:
        """Read the tokenizer if there is one; connect with the first call.

        The first call asks the server whether the model takes text or token IDs. A text model
        (`ct2-prepare --io text`) needs no tokenizer in the client.

        Args:
            url: The server's gRPC endpoint: `grpc://host:port`, `grpcs://host:port` (TLS) or
                `host:port` (default port: 8001); or several, which share the requests.
            model: Name of the model on the server.
            load_balancing: "round_robin": requests go in turn to every server that a URL's name
                resolves to, if it can be reached. None: one URL is one connection to one server.
            repository: Folder that holds the prepared model `<repository>/<model>`, whose
                tokenizer is used. Default: the folder that the variable CT2_MODEL_REPOSITORY
                names, else `./model_repository`. Without it, the first call of a token-ID model
                fails.
            tokenizer: A prepared model's tokenizer folder, or a loaded `Tokenizer`, instead.
            timeout_s: Default time limit of a call in seconds; None for no limit.
            retry: What to do while the server cannot be reached.
            max_in_flight: Most rows (a sentence in a language) in progress for one call.
            credentials: gRPC channel credentials for TLS; None: the public authorities for
                `grpcs://`, else no encryption.
            metadata: Headers for every request, such as an authorization.
            version: Version of the model; "" leaves the choice to the server.
            versions: Several versions and their weights instead, such as `{"1": 0.9, "2": 0.1}`. A
                stream uses one of them, and so do all calls with the same `supersede`; other
                sentences are assigned by their text. If the server does not have the version,
                another of them is used.
            join_texts: Whether short texts that arrive at the same time share a request, which is
                less work and answers them together. For text models.

        Raises:
            TokenizerError: The given tokenizer does not exist or cannot be read.
            InvalidCallError: The model, `max_in_flight`, a URL, `load_balancing` or `versions` is
                invalid.
        """
        if not model or not is_unicode(model):
            raise InvalidCallError(f"model is {model!r}; give the name of a model on the server")
        check_in_flight(max_in_flight)
        self.model = model
        self.repository = repository
        self._tokenizer: Tokenizer | None = None
        if isinstance(tokenizer, Tokenizer):
            self._tokenizer = tokenizer
        elif tokenizer is not None or "/" in model or has_tokenizer(model, repository):
            self._tokenizer = find_tokenizer(model, repository=repository, tokenizer=tokenizer)
        self._timeout_s = timeout_s
        self._max_in_flight = max_in_flight
        if version and versions is not None:
            raise InvalidCallError(f"version is {version!r}, and versions is given: give one")
        split = VersionSplit.of(versions) if versions is not None else VersionSplit({version: 1.0})
        self._served = ServedModel(model, split, self._connect)
        self._streamed: dict[str, ServedModel] = {}  # stream models, by name
        self._split = split
        self._open = partial(
            open_link,
            Servers.of(url, load_balancing, has_credentials=credentials is not None),
            retry or RetryPolicy(),
            credentials=credentials,
            metadata=dict(read_headers(metadata)),
        )
        self._joins_texts = join_texts and versions is None
        self._link: Link | None = None
        self._codec: IdCodec | TextCodec | None = None
        self._closed = False

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer.

        Raises:
            TokenizerError: None is found; a text model needs none in the client.
        """
        if self._tokenizer is None:  # it may have been prepared meanwhile
            self._tokenizer = find_tokenizer(self.model, repository=self.repository)
        return self._tokenizer

    @property
    def languages(self) -> Tokenizer | NamedLanguages:
        """Finds languages: the tokenizer if there is one; else names are used as they are."""
        return self._tokenizer or NamedLanguages()

    @property
    def takes_text(self) -> bool | None:
        """Whether the model takes text instead of token IDs; None until the server was asked."""
        return None if self._codec is None else self._codec.takes_text

    def gives_alignments(self) -> bool:
        """Return whether the model returns alignments; False until the server was asked."""
        return self._served.gives_alignments()

    def takes_drafts(self) -> bool:
        """Return whether the model takes drafts; False until the server was asked."""
        return self._served.takes_drafts()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls in progress fail, streams of text end on the server."""
        self._closed = True
        if self._link is not None and self._link.loop is asyncio.get_running_loop():
            await self._link.close()

    async def connect(self) -> tuple[str, ...]:
        """Ask the server what the model takes; return the versions that it has of the model.

        Raises:
            TokenizerError: The model takes token IDs and no tokenizer is found.
            ClientError: The server cannot be reached, or has no such model.
        """
        await self._meet(self._deadline(...))
        return self._served.served

    async def wait_until_ready(self, timeout_s: float | None = 300.0) -> None:
        """Wait until the server answers and can translate with the model.

        Args:
            timeout_s: Seconds to wait; None for no limit.

        Raises:
            AccessDeniedError: The server requires a header or certificate that is missing.
            ClientError: The time is over; the error says what was still missing.
        """
        await wait_until_ready(self._ask_for_model, timeout_s)

    async def _meet(self, deadline: Deadline) -> None:
        """Ask the server what the model takes, unless it is known and unchanged."""
        if self.takes_text is None or self.takes_text is not self._served.takes_text:
            await self._ask_for_model(deadline)

    async def _ask_for_model(self, deadline: Deadline) -> None:
        from ct2_triton.client.id_codec import IdCodec
        from ct2_triton.client.text_codec import TextCodec, TextModel

        tensors = await self._served.ask_model(deadline)
        _LOG.debug("%s takes %s", self.model, "text" if tensors.takes_text else "token ids")
        if isinstance(tensors, TextModel):
            self._codec = TextCodec(tensors, self._served.send, joins=self._joins_texts)
        else:
            self._codec = IdCodec(self.tokenizer, self._served.send)

    def _connect(self) -> Link:
        """Open the channel at the first use in an event loop; it lives as long as that loop."""
        if self._closed:
            raise InvalidCallError("this client is closed; make a new one")
        loop = asyncio.get_running_loop()
        if self._link is None or self._link.loop is not loop:
            if self._link is not None and not self._link.loop.is_closed():
                raise InvalidCallError(
                    "this client is in use in another event loop, which still runs; make a client "
                    "for each loop"
                )
            self._link = self._open(loop)
        return self._link

    def _deadline(self, timeout_s: float | EllipsisType | None) -> Deadline:
        """Start the clock of a call; default: the client's time limit."""
        return Deadline(self._timeout_s if timeout_s is ... else timeout_s)


Result = TypeVar("Result")
_DRAWN_BYTES = 8
_MOST_SHOWN = 8  # number of models that an error names


class VersionSplit:
    """Assigns a version to each session, and others in case the server does not have it.

    Sessions are split between versions by weight (a canary). Each version gets a number from a hash
    of the session's key, scaled by its weight, and the largest wins (weighted rendezvous hashing).
    The choice needs no memory, is the same in every process, and a change of weights moves as few
    sessions as possible.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        """Keep the checked weights by version; "" leaves the choice to the server."""
        self._weights = dict(weights)

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> VersionSplit:
        """Check a caller's weights, such as `{"1": 0.9, "2": 0.1}`; only their ratios matter.

        A version of weight 0 is used only if the server has no other.
        """
        for version, weight in weights.items():
            if not (isinstance(version, str) and version.isascii() and version.isdigit()):
                raise InvalidCallError(f"versions has {version!r}; name versions as in '2'")
            if not (isinstance(weight, int | float) and 0 <= weight < math.inf):
                raise InvalidCallError(
                    f"version {version} has weight {weight!r}; it must be 0 or more"
                )
        if not any(weights.values()):
            raise InvalidCallError(f"versions is {dict(weights)!r}; one needs a weight above 0")
        return cls(weights)

    def order(self, session: str) -> tuple[str, ...]:
        """Return all versions, starting with that of the session."""
        scores = {
            version: _score(session, version, weight) for version, weight in self._weights.items()
        }
        return tuple(sorted(scores, key=lambda version: scores[version], reverse=True))


async def first_served(versions: Sequence[str], ask: Callable[[str], Awaitable[Result]]) -> Result:
    """Try one version after another until the server has one of them.

    A request for a version that the server does not have is refused before it runs, so it may be
    sent to another. If none is served, an error of one that may be served soon comes first.
    """
    refusals: list[ClientError] = []
    for version in versions:
        try:
            return await ask(version)
        except ClientError as error:
            if not _is_not_served(error):
                raise
            refusals.append(error)
    raise min(refusals, key=lambda error: isinstance(error, ModelNotFoundError))


def _is_not_served(error: ClientError) -> bool:
    return isinstance(error, ModelNotFoundError) or str(error).startswith(UNKNOWN_MODEL)


def _nearest(name: str, models: Mapping[str, Sequence[str]]) -> str:
    """Name the versions that a server has of a model, or else models with similar names."""
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
        self._answered: dict[str, str] = {}  # the version that answered, by the requested one
        self.served: tuple[str, ...] = ()  # the versions that the server reported last
        self.takes_text: bool | None = None  # as the server reported it last

    def gives_alignments(self) -> bool:
        """Return whether a version returns alignments; False until the server was asked."""
        return any(tensors.gives_alignments for tensors in self._tensors.values())

    def takes_drafts(self) -> bool:
        """Return whether a version takes drafts; False until the server was asked."""
        return any(tensors.takes_drafts for tensors in self._tensors.values())

    async def ask_model(self, deadline: Deadline) -> ModelTensors | TextModel:
        """Ask the server what the model takes."""
        ask = partial(self._ask_for_tensors, deadline=deadline)
        return await self._first_served("", ask, deadline)

    async def send(
        self, build: Build, call: Call, text: str, key: str | None
    ) -> service_pb2.ModelInferResponse:
        """Send a request, again after an outage if it has no key.

        The text serves as the session if the call has none.
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
        """Try one version after another until the server has one, and again after an outage.

        If the request is refused and the tensors of the model have changed, it is sent once more.

        Args:
            attempt: Sends the request to a version, with its tensors and a deadline.
            call: The call of the request.
            text: The session if the call has none.
            repeats: Whether to send it again after an outage; a request with a key could then end a
                newer one.

        Raises:
            ClientError: The error of the last attempt.
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
                return await attempt(changed, deadline)  # a refused request has not run

            return await self._first_served(call.session or text, ask, deadline)

        outage = self._connect().outage
        if repeats:
            return await outage.outlast(once, call.start_clock)
        return await once(call.start_clock())

    async def _first_served(
        self, session: str, ask: Callable[[str], Awaitable[Result]], deadline: Deadline
    ) -> Result:
        """Try a session's versions in order; if the server has none, name those it has."""
        try:
            return await first_served(self._split.order(session), ask)
        except ModelNotFoundError as error:
            hint = await self._served_instead(deadline)
            raise ModelNotFoundError(f"{error}{hint}") from error.__cause__

    async def _served_instead(self, deadline: Deadline) -> str:
        try:
            models = await self._connect().connection.ready_models(deadline)
        except ClientError:  # access to the index may be restricted
            return ""
        return f"; {_nearest(self._name, models)}"

    def _note(self, version: str, answered: str) -> None:
        """Forget the tensors if the server has chosen another version than before."""
        if self._answered.setdefault(version, answered) != answered:
            self._answered[version] = answered
            self._tensors.pop(version, None)

    async def _changed(
        self, version: str, known: ModelTensors | TextModel, deadline: Deadline
    ) -> ModelTensors | TextModel | None:
        """Ask for the tensors again after a refusal; None if they are unchanged."""
        try:
            tensors = await self._ask_for_tensors(version, deadline)
        except ClientError:  # the refusal is more informative
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
