# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client: text in, text out, in any number of languages."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, overload

from ct2_triton.client.calls import (
    Call,
    blank,
    code_of,
    failed,
    is_unicode,
    read_headers,
    row_key,
    sentence_key,
)
from ct2_triton.client.retry import Deadline, RetryPolicy, wait_until_ready
from ct2_triton.client.served_model import ServedModel, VersionSplit
from ct2_triton.client.servers import DEFAULT_URL, Link, Servers, open_link
from ct2_triton.client.stream import Sentence, StreamItem, StreamOptions, TranslationStream
from ct2_triton.client.tasks import map_bounded, run_all
from ct2_triton.client.text_stream import stream_model
from ct2_triton.client.tokenization import (
    NamedLanguages,
    Tokenizer,
    find_tokenizer,
    has_tokenizer,
)
from ct2_triton.errors import ClientError, InvalidCallError

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
    from types import EllipsisType, TracebackType

    import grpc

    from ct2_triton.client.calls import OptionValue, Rows
    from ct2_triton.client.id_codec import IdCodec
    from ct2_triton.client.results import TextPart, Translation
    from ct2_triton.client.servers import LoadBalancing
    from ct2_triton.client.stream import OnError, Order, Superseded
    from ct2_triton.client.text_codec import TextCodec

DEFAULT_TIMEOUT_S = 60.0
_LOG = logging.getLogger(__name__)


class TranslationClient:
    """Translate with one model of one server, over one connection.

    Safe for any number of concurrent calls in one event loop, and for one loop after another
    (`asyncio.run` twice). Make one and keep it: each client opens a connection of its own.

        async with TranslationClient("localhost:8001", "nllb", repository="models") as client:
            german, french = await client.translate(
                "How is your day going?", source="eng_Latn", targets=["deu_Latn", "fra_Latn"]
            )
            print(german.text)
    """

    def __init__(
        self,
        url: str | Sequence[str] = DEFAULT_URL,
        model: str = "",
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

    async def __aenter__(self) -> TranslationClient:
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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

    @overload
    async def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: str,
        *,
        source: str | None = ...,
        targets: str | Sequence[str] | None = ...,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix_ids: Sequence[int] = ...,
        draft_ids: Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[Translation]: ...

    @overload
    async def translate(
        self,
        text: Sequence[str],
        *,
        source: str | None = ...,
        targets: str | Sequence[str] | None = ...,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix_ids: Sequence[int] = ...,
        draft_ids: Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[list[Translation]]: ...

    async def translate(
        self,
        text: str | Sequence[str],
        *,
        source: str | None = None,
        targets: str | Sequence[str] | None = None,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = None,
        session: str | None = None,
        prefix_ids: Sequence[int] = (),
        draft_ids: Sequence[int] = (),
        metadata: Mapping[str, str] | None = None,
        **options: OptionValue,
    ) -> list[Translation] | list[list[Translation]]:
        """Translate a sentence, or many, into one or more languages.

        Cancelling the awaiting task cancels what is under way on the server.

        Args:
            text: A sentence, or a sequence of them. Text without a visible character gives an
                empty result and no request. A model that takes text cuts longer text into
                sentences itself (the option `split`), and has all targets in one request.
            source: Language of the text, by the model's code or an alias such as "en"; None for a
                model without source languages, or for the default of a model that takes text.
            targets: Language or languages wanted; None for a model without target languages.
            timeout_s: Seconds the whole call may take, or None; left out, the client's setting.
            supersede: A key for one sentence, such as "meeting-7/speaker-1": a newer call with the
                same key and language ends this one on the server at its next step, of whichever
                client it is. Choose keys that no other client has. With a key nothing is sent
                again (`RetryPolicy.outage_s`).
            session: What calls have in common that are to go to one version, where the client
                has several (`versions`); None: `supersede`, or the text itself.
            prefix_ids: Ids of an answer's start, such as the first of `Translation.ids` of an
                earlier call, for one sentence in one language. The answer goes on from them; with
                the option `prefix_bias_beta` it only leans towards them. It contains them. Models
                that take text have none.
            draft_ids: Ids that the answer is expected to have behind `prefix_ids`, such as
                `Translation.ids` of an earlier version, for one sentence in one language. They
                change no answer: those that are right save steps on a server that decodes in
                loops. Greedy searches only (`beam_size=1`). With the option `draft_bias` the
                answer leans towards them, and beams may, too.
            metadata: Headers of this call, such as a `traceparent`, beside the client's.
            **options: Decoding options, such as `beam_size=4` (docs/parameters.md).

        Returns:
            One translation for each target, in order; for many sentences, a list of such lists.

        Raises:
            UnknownLanguageError: A language is not the model's.
            SupersededError: A newer call had the same key.
            ClientError: Another of its subclasses; what had been sent is cancelled.
        """
        if supersede is not None and not isinstance(text, str):
            raise InvalidCallError("supersede is a key for one sentence; text is a sequence")
        deadline = self._deadline(timeout_s)
        if self._tokenizer is None:
            await self._meet(deadline)
        call = self._call(source, targets, options, lambda: deadline, supersede, session, metadata)
        if len(prefix_ids) or len(draft_ids):
            if not isinstance(text, str) or len(call.targets) > 1:
                name = "prefix_ids" if len(prefix_ids) else "draft_ids"
                raise InvalidCallError(f"{name} are for one sentence in one language")
            call = replace(call, prefix_ids=tuple(prefix_ids), draft_ids=tuple(draft_ids))
        if any(map(str.strip, [text] if isinstance(text, str) else text)):
            await self._meet(deadline)  # once, before many sentences need it

        async def sentence(one: str) -> list[Translation]:
            # Where a newer call ends all languages, a cancellation would meet their end.
            rows = self._sentence(one, call).values()
            return await run_all(rows, cancels=supersede is None)

        if isinstance(text, str):
            return await sentence(text)
        return await map_bounded(sentence, text, max(1, self._max_in_flight // len(call.targets)))

    async def stream(
        self,
        sentences: AsyncIterable[str | Sentence],
        *,
        source: str | None = None,
        targets: str | Sequence[str] | None = None,
        timeout_s: float | EllipsisType | None = ...,
        max_in_flight: int = 16,
        order: Order = "per-language",
        superseded: Superseded = "cancel",
        on_error: OnError = "raise",
        supersede: str | None = None,
        session: str | None = None,
        metadata: Mapping[str, str] | None = None,
        **options: OptionValue,
    ) -> AsyncGenerator[StreamItem, None]:
        """Translate sentences as they come.

        Leaving the iteration cancels what is under way on the server; use
        `contextlib.aclosing(client.stream(...))` where it may be left early.

        Args:
            sentences: Sentences, or `Sentence` objects whose id ties their versions together.
            source: Language of the sentences, as in `translate`.
            targets: Language or languages wanted, as in `translate`.
            timeout_s: Seconds each sentence may take, from the moment it is sent, or sent again.
            max_in_flight: See `StreamOptions`.
            order: See `StreamOptions`.
            superseded: See `StreamOptions`.
            on_error: See `StreamOptions`.
            supersede: A key of this stream, as in `translate`. Then a newer version of a sentence
                ends the older one by a key made of this, the sentence's id and the language, and
                not by a cancellation, which servers before Triton 2.57 may not survive.
            session: As in `translate`; None: `supersede`, or this stream alone.
            metadata: Headers of its requests, as in `translate`.
            **options: Decoding options.

        Yields:
            One item for each sentence and language, less those that were superseded.

        Raises:
            UnknownLanguageError: A language is not the model's.
            ClientError: A sentence failed and `on_error` is "raise".
        """
        start_clock = partial(self._deadline, timeout_s)
        if self._tokenizer is None:
            await self._meet(start_clock())
        session = session or supersede or secrets.token_hex()
        call = self._call(source, targets, options, start_clock, supersede, session, metadata)
        behaviour = StreamOptions(
            max_in_flight, order, superseded, on_error, cancels=supersede is None
        )
        await self._meet(call.start_clock())

        def start(sentence: Sentence) -> Rows:
            own = call
            try:
                if sentence.source is not None:
                    own = replace(call, source=self.languages.source(sentence.source))
                if supersede is not None:
                    own = replace(own, supersede=sentence_key(supersede, sentence, superseded))
                return self._sentence(sentence.text, own)
            except ClientError as error:
                return {code_of(target): failed(error) for target in call.targets}

        async with aclosing(TranslationStream(start, behaviour).run(sentences)) as items:
            async for item in items:
                yield item

    async def stream_text(
        self,
        text: str,
        *,
        source: str | None = None,
        targets: str | Sequence[str] | None = None,
        model: str | None = None,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = None,
        metadata: Mapping[str, str] | None = None,
        **options: OptionValue,
    ) -> AsyncGenerator[TextPart, None]:
        """Translate one text and yield the translations while they grow.

        It asks a model of streams, as `ct2-prepare --io stream` writes it (docs/text.md). The parts
        of a language, joined, are the greedy translation of the text.

        Leaving the iteration ends the stream on the server; use
        `contextlib.aclosing(client.stream_text(...))` where it may be left early.

        Args:
            text: One or many sentences.
            source: Language of the text, as in `translate`.
            targets: Language or languages wanted, as in `translate`.
            model: Name of the model of streams; None: this model's, with "-stream" behind it.
            timeout_s: Seconds until the last part, or None; left out, the client's setting.
            supersede: A key, as in `translate`, for the whole text.
            metadata: Headers, as in `translate`.
            **options: Decoding options of greedy searches.

        Yields:
            Each part as it comes.

        Raises:
            UnknownLanguageError: A language is not the model's.
            SupersededError: A newer call had the same key.
            ClientError: Another of its subclasses. What was yielded before is no answer.
        """
        deadline = self._deadline(timeout_s)
        session = supersede or text
        call = self._call(source, targets, options, lambda: deadline, supersede, session, metadata)
        name = model or stream_model(self.model)
        served = self._streamed.setdefault(name, ServedModel(name, self._split, self._connect))
        async with aclosing(self._connect().streams.parts(served.ask, call, text)) as parts:
            async for part in parts:
                yield part

    def _call(
        self,
        source: str | None,
        targets: str | Sequence[str] | None,
        options: Mapping[str, OptionValue],
        start_clock: Callable[[], Deadline],
        supersede: str | None,
        session: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Call:
        pair = self.languages.source(source), self.languages.targets(targets)
        if supersede is not None:
            row_key(supersede)  # checked before anything is sent
        headers = read_headers(metadata)
        return Call(*pair, options, start_clock, supersede, (), (), session or supersede, headers)

    def _sentence(self, text: str, call: Call) -> Rows:
        """Make a coroutine for each language of a sentence."""
        if self._codec is None:  # nothing but blank texts: the server was not asked
            return {code: blank(text, call, code) for code in call.codes}
        return self._codec.start(text, call)

    async def _meet(self, deadline: Deadline) -> None:
        """Ask the server what the model takes, where it has not said it, or has changed it."""
        if self.takes_text is None or self.takes_text is not self._served.takes_text:
            await self._ask_for_model(deadline)

    async def _ask_for_model(self, deadline: Deadline) -> None:
        from ct2_triton.client.id_codec import IdCodec
        from ct2_triton.client.text_codec import TextCodec, TextModel

        tensors = await self._served.look(deadline)
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
