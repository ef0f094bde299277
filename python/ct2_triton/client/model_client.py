# SPDX-License-Identifier: Apache-2.0
"""One model of one server, over one connection: what a client knows of it, and its life."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton.client.calls import is_unicode, read_headers
from ct2_triton.client.retry import Deadline, RetryPolicy, wait_until_ready
from ct2_triton.client.served_model import ServedModel, VersionSplit
from ct2_triton.client.servers import Link, Servers, open_link
from ct2_triton.client.tokenization import (
    NamedLanguages,
    Tokenizer,
    find_tokenizer,
    has_tokenizer,
)
from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from types import EllipsisType

    import grpc
    from typing_extensions import Self

    from ct2_triton.client.id_codec import IdCodec
    from ct2_triton.client.servers import LoadBalancing
    from ct2_triton.client.text_codec import TextCodec

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
        """Read the tokenizer where there is one; connect with the first call.

        The server says with the first call whether the model takes text or token ids. A model that
        takes text (`ct2-prepare --io text`) needs no tokenizer here.

        Args:
            url: The server's gRPC endpoint: `grpc://host:port`, `grpcs://host:port` (TLS) or
                `host:port` (default port: 8001); or several, over which requests are balanced.
            model: Name of the model on the server.
            load_balancing: "round_robin": requests go in turn to every server that a URL's name
                resolves to, if it can be reached. None: one URL is one connection to one server.
            repository: Folder that holds the prepared model `<repository>/<model>`, whose
                tokenizer is used. Default: the folder that the variable CT2_MODEL_REPOSITORY
                names, else `./model_repository`. The first call of a model of token ids fails
                where there is none.
            tokenizer: A prepared model's tokenizer folder, or a loaded `Tokenizer`, instead.
            timeout_s: Seconds a call may take when it does not say otherwise; None for no limit.
            retry: What to do while the server cannot be reached.
            max_in_flight: Rows (a sentence in a language) that one call may have on their way.
            credentials: gRPC channel credentials for TLS; None trusts the usual authorities where
                the URL is `grpcs://`, else sends in the clear.
            metadata: Headers for every request, such as an authorization.
            version: Version of the model; "" leaves the choice to the server.
            versions: Several versions and their weights instead, such as `{"1": 0.9, "2": 0.1}`. A
                stream stays with one of them, and so do all calls with the same `supersede`; other
                sentences are split by their text. Where the server does not have the version,
                another of them is asked.
            join_texts: Whether short texts that come at the same time share a request: less work
                for both sides, and all are answered together. For models that take text.

        Raises:
            TokenizerError: The tokenizer that is named is none, or it cannot be read.
            InvalidCallError: No model is named, nothing may be in flight, or a URL,
                `load_balancing` or `versions` cannot be.
        """
        if not model or not is_unicode(model):
            raise InvalidCallError(f"model is {model!r}; name the model that the server has")
        if max_in_flight < 1:
            raise InvalidCallError(f"max_in_flight is {max_in_flight}; it must be 1 or more")
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
        self._streamed: dict[str, ServedModel] = {}  # models of streams, by name
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
            TokenizerError: None is found; a model that takes text needs none here.
        """
        if self._tokenizer is None:  # it may have been prepared meanwhile
            self._tokenizer = find_tokenizer(self.model, repository=self.repository)
        return self._tokenizer

    @property
    def languages(self) -> Tokenizer | NamedLanguages:
        """What finds languages: the tokenizer where there is one; else names stay as they are."""
        return self._tokenizer or NamedLanguages()

    @property
    def takes_text(self) -> bool | None:
        """Whether the model takes text, not token ids; None until the server has said it."""
        return None if self._codec is None else self._codec.takes_text

    def gives(self, output: str) -> bool:
        """Tell whether the model declares an output, as far as the server has said it yet."""
        return self._served.gives(output)

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way fail, streams of text are ended on the server."""
        self._closed = True
        if self._link is not None and self._link.loop is asyncio.get_running_loop():
            await self._link.close()

    async def connect(self) -> tuple[str, ...]:
        """Ask the server what the model takes, and give the versions that it has of the model.

        Raises:
            TokenizerError: The model takes token ids, and no tokenizer is found.
            ClientError: The server cannot be reached, or has no such model.
        """
        await self._meet(self._deadline(...))
        return self._served.served

    async def wait_until_ready(self, timeout_s: float | None = 300.0) -> None:
        """Wait until the server answers and can translate with the model.

        Args:
            timeout_s: Seconds to wait; None for no limit.

        Raises:
            AccessDeniedError: The server keeps this client out.
            ClientError: The time is over; the error says what was missing last.
        """
        await wait_until_ready(self._ask_for_model, timeout_s)

    async def _meet(self, deadline: Deadline) -> None:
        """Ask the server what the model takes, where it has not said it, or has changed it."""
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
        """Start the clock of a call; left out, the client's setting counts."""
        return Deadline(self._timeout_s if timeout_s is ... else timeout_s)
