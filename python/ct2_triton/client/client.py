# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client: text in, text out, in any number of languages."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, overload

from ct2_triton.client.link import Link, Servers, open_link
from ct2_triton.client.readiness import wait_until_ready
from ct2_triton.client.results import Translation, empty_translation
from ct2_triton.client.retry import RetryPolicy
from ct2_triton.client.stream import Sentence, StreamItem, StreamOptions, TranslationStream
from ct2_triton.client.supersede import row_key
from ct2_triton.client.tasks import map_bounded, run_all
from ct2_triton.client.tokenization import Tokenizer, find_tokenizer
from ct2_triton.client.urls import DEFAULT_URL
from ct2_triton.client.versions import VersionSplit, first_served
from ct2_triton.errors import ClientError, InvalidCallError

if TYPE_CHECKING:
    import os
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        Callable,
        Coroutine,
        Mapping,
        Sequence,
    )
    from types import EllipsisType, TracebackType
    from typing import Any

    import grpc
    from tritonclient.grpc import service_pb2

    from ct2_triton.client.connection import Deadline
    from ct2_triton.client.link import LoadBalancing
    from ct2_triton.client.requests import ModelTensors, OptionValue
    from ct2_triton.client.stream import OnError, Order, Superseded
    from ct2_triton.client.text_stream import TextPart
    from ct2_triton.client.tokenization import EncodedText
    from ct2_triton.prepared_model import Language

DEFAULT_TIMEOUT_S = 60.0
_PATIENCE_S = 5.0  # with streams that were left, when the client is closed


@dataclass(frozen=True)
class _Call:
    """What the sentences of one call have in common."""

    source: Language | None
    targets: tuple[Language | None, ...]
    options: Mapping[str, OptionValue]
    start_clock: Callable[[], Deadline]
    supersede: str | None = None
    prefix_ids: tuple[int, ...] = ()
    draft_ids: tuple[int, ...] = ()
    session: str | None = None


class TranslationClient:
    """Translates with one model of one server, over one connection.

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
    ) -> None:
        """Reads the tokenizer; connects with the first call.

        Args:
            url: The server's gRPC endpoint, as `grpc://host:port`, `grpcs://host:port` (TLS) or
                `host:port`, where 8001 is the default port; or several of them, over which the
                requests are balanced.
            model: Name of the model on the server.
            load_balancing: "round_robin": requests go in turn to every server that a URL's name
                resolves to, as far as it can be reached. None: one URL is one connection, to
                one server.
            repository: Folder that holds the prepared model `<repository>/<model>`, whose
                tokenizer is used. Default: the folder that the variable CT2_MODEL_REPOSITORY
                names, else `./model_repository`.
            tokenizer: A prepared model's tokenizer folder, or a loaded `Tokenizer`, instead.
            timeout_s: Seconds a call may take when it does not say otherwise; None for no limit.
            retry: What to do while the server cannot be reached.
            max_in_flight: Requests (a sentence in a language) that one call may have on their way.
            credentials: gRPC channel credentials for TLS; None trusts the usual authorities where
                the URL is `grpcs://`, else sends in the clear.
            metadata: Headers for every request, such as an authorization.
            version: Version of the model; "" leaves the choice to the server.
            versions: Several versions and their weights instead, such as `{"1": 0.9, "2": 0.1}`. A
                stream stays with one of them, and so do all calls with the same `supersede`; other
                sentences are split by their text. Where the server does not have the version,
                another of them is asked.

        Raises:
            TokenizerError: No tokenizer is found, or it cannot be read.
            InvalidCallError: No model is named, nothing may be in flight, or a URL,
                `load_balancing` or `versions` cannot be.
        """
        if not model:
            raise InvalidCallError("name the model: TranslationClient(url, model)")
        if max_in_flight < 1:
            raise InvalidCallError(f"max_in_flight is {max_in_flight}; it must be 1 or more")
        self.model = model
        self.tokenizer = (
            tokenizer
            if isinstance(tokenizer, Tokenizer)
            else find_tokenizer(model, repository=repository, tokenizer=tokenizer)
        )
        self._timeout_s = timeout_s
        self._max_in_flight = max_in_flight
        if version and versions is not None:
            raise InvalidCallError(f"version is {version!r}, and versions is given: give one")
        self._split = (
            VersionSplit.of(versions) if versions is not None else VersionSplit({version: 1.0})
        )
        self._open = partial(
            open_link,
            Servers.of(url, load_balancing, has_credentials=credentials is not None),
            retry or RetryPolicy(),
            credentials=credentials,
            metadata=metadata,
        )
        self._link: Link | None = None
        self._tensors: dict[str, ModelTensors] = {}
        self._closed = False
        self._leaving: set[asyncio.Task[None]] = set()  # they end streams that were left

    async def __aenter__(self) -> TranslationClient:
        """Returns the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the client."""
        await self.close()

    async def close(self) -> None:
        """Closes the connection; calls under way end with an error. May be called again."""
        self._closed = True
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_PATIENCE_S)
        if self._link is not None and self._link.loop is asyncio.get_running_loop():
            await self._link.connection.close()

    async def wait_until_ready(self, timeout_s: float | None = 300.0) -> None:
        """Waits until the server answers and can translate with the model.

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
        prefix_ids: Sequence[int] = ...,
        draft_ids: Sequence[int] = ...,
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
        prefix_ids: Sequence[int] = ...,
        draft_ids: Sequence[int] = ...,
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
        prefix_ids: Sequence[int] = (),
        draft_ids: Sequence[int] = (),
        **options: OptionValue,
    ) -> list[Translation] | list[list[Translation]]:
        """Translates a sentence, or many, into one or more languages.

        Cancelling the awaiting task cancels what is under way on the server.

        Args:
            text: A sentence, or a sequence of them. Text without a visible character gives an
                empty result and no request.
            source: Language of the text, by the model's code or an alias such as "en"; None for a
                model without source languages.
            targets: Language or languages wanted; None for a model without target languages.
            timeout_s: Seconds the whole call may take, or None; left out, the client's setting.
            supersede: A key for one sentence, such as "meeting-7/speaker-1": a newer call with the
                same key and language ends this one on the server at its next step, of whichever
                client it is. Choose keys that no other client has. With a key nothing is sent
                again (`RetryPolicy.outage_s`).
            prefix_ids: Ids of an answer's start, such as the first of `Translation.ids` of an
                earlier call, for one sentence in one language. The answer goes on from them; with
                the option `prefix_bias_beta` it only leans towards them. It contains them.
            draft_ids: Ids that the answer is expected to have behind `prefix_ids`, such as
                `Translation.ids` of an earlier version, for one sentence in one language. They
                change no answer: those that are right save steps on a server that decodes in
                loops. Greedy searches only (`beam_size=1`).
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
        call = self._call(source, targets, options, lambda: deadline, supersede)
        if len(prefix_ids) or len(draft_ids):
            if not isinstance(text, str) or len(call.targets) > 1:
                name = "prefix_ids" if len(prefix_ids) else "draft_ids"
                raise InvalidCallError(f"{name} are for one sentence in one language")
            call = replace(call, prefix_ids=tuple(prefix_ids), draft_ids=tuple(draft_ids))
        if any(map(str.strip, [text] if isinstance(text, str) else text)):
            await self._know_model(deadline)  # once, before many sentences need them

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
        **options: OptionValue,
    ) -> AsyncGenerator[StreamItem, None]:
        """Translates sentences as they come.

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
            **options: Decoding options.

        Yields:
            One item for each sentence and language, less those that were superseded.

        Raises:
            UnknownLanguageError: A language is not the model's.
            ClientError: A sentence failed and `on_error` is "raise".
        """
        start_clock = partial(self._deadline, timeout_s)
        call = self._call(source, targets, options, start_clock, supersede)
        call = replace(call, session=supersede or secrets.token_hex())
        behaviour = StreamOptions(
            max_in_flight, order, superseded, on_error, cancels=supersede is None
        )
        await self._know_model(call.start_clock())

        def start(sentence: Sentence) -> dict[str | None, Coroutine[Any, Any, Translation]]:
            own = call
            try:
                if sentence.source is not None:
                    own = replace(call, source=self.tokenizer.source(sentence.source))
                if supersede is not None:
                    own = replace(own, supersede=_sentence_key(supersede, sentence, superseded))
                return self._sentence(sentence.text, own)
            except ClientError as error:
                return {_code(target): _failed(error) for target in call.targets}

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
        **options: OptionValue,
    ) -> AsyncGenerator[TextPart, None]:
        """Translates one text and yields the translations while they grow.

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
            **options: Decoding options of greedy searches.

        Yields:
            Each part as it comes.

        Raises:
            UnknownLanguageError: A language is not the model's.
            SupersededError: A newer call had the same key.
            ClientError: Another of its subclasses. What was yielded before is no answer.
        """
        from ct2_triton.client.text_stream import STREAM_SUFFIX, TextCall, stream_parts

        deadline = self._deadline(timeout_s)
        languages = self._call(source, targets, options, lambda: deadline, supersede)
        codes = [language.code for language in languages.targets if language is not None]
        key = supersede or f"stream/{uuid.uuid4()}"
        call = TextCall(
            model or self.model.removesuffix("-text") + STREAM_SUFFIX,
            self._split.order(key)[0],
            _code(languages.source),
            codes or None,
            options,
            key,
        )
        parts = stream_parts(self._connect().connection, call, text, deadline, self._leaving)
        async with aclosing(parts):
            async for part in parts:
                yield part

    def _call(
        self,
        source: str | None,
        targets: str | Sequence[str] | None,
        options: Mapping[str, OptionValue],
        start_clock: Callable[[], Deadline],
        supersede: str | None,
    ) -> _Call:
        languages = self.tokenizer.source(source), self.tokenizer.targets(targets)
        if supersede is not None:
            row_key(supersede)  # checked before anything is sent
        return _Call(*languages, options, start_clock, supersede, session=supersede)

    def _sentence(
        self, text: str, call: _Call
    ) -> dict[str | None, Coroutine[Any, Any, Translation]]:
        """Splits a sentence once and makes a coroutine for each language."""
        encoded = self.tokenizer.encode(text)
        return {
            _code(target): self._translation(text, encoded, target, call) for target in call.targets
        }

    async def _translation(
        self,
        text: str,
        encoded: EncodedText,
        target: Language | None,
        call: _Call,
    ) -> Translation:
        """Translates one sentence into one language: one request, one row."""
        from ct2_triton.client.requests import (
            build_request,
            read_draft_tokens_kept,
            read_response,
        )

        source, wanted = _code(call.source), _code(target)
        if encoded.is_empty:
            return empty_translation(text, source, wanted)
        row = self.tokenizer.rules.input_ids(encoded.ids, call.source, target)
        prefix = [*self.tokenizer.rules.target_prefix(target), *call.prefix_ids]

        key = None if call.supersede is None else row_key(call.supersede, wanted)

        async def send(deadline: Deadline) -> service_pb2.ModelInferResponse:
            async def ask(version: str) -> service_pb2.ModelInferResponse:
                tensors = await self._model_tensors(version, deadline)
                left_s = deadline.remaining_s()
                request = build_request(
                    tensors, row, prefix, call.options, left_s, key, call.draft_ids
                )
                return await link.connection.infer(request, deadline)

            return await first_served(versions, ask)

        versions = self._split.order(call.session or text)

        link = self._connect()
        if key is None:
            response = await link.outage.outlast(send, call.start_clock)
        else:
            response = await send(call.start_clock())  # sent again, it might end a newer one
        echoed = self.tokenizer.rules.prefix_length(target)
        hypotheses = read_response(response, echoed, self.tokenizer.decode)
        return Translation(
            text,
            source,
            wanted,
            hypotheses,
            encoded.unknown_tokens,
            draft_tokens_kept=read_draft_tokens_kept(response),
            version=response.model_version,
        )

    async def _know_model(self, deadline: Deadline) -> None:
        """Asks the server for the model's tensors, until it has said it once."""
        if not self._tensors:
            await self._ask_for_model(deadline)

    async def _model_tensors(self, version: str, deadline: Deadline) -> ModelTensors:
        return self._tensors.get(version) or await self._ask_for_version(version, deadline)

    async def _ask_for_model(self, deadline: Deadline) -> ModelTensors:
        versions = self._split.order("")
        return await first_served(versions, partial(self._ask_for_version, deadline=deadline))

    async def _ask_for_version(self, version: str, deadline: Deadline) -> ModelTensors:
        from ct2_triton.client.requests import ModelTensors

        connection = self._connect().connection
        metadata = await connection.model_metadata(self.model, version, deadline)
        self._tensors[version] = ModelTensors.from_metadata(metadata, version)
        return self._tensors[version]

    def _connect(self) -> Link:
        """Opens the channel at the first use in an event loop; it lives as long as that loop."""
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
        """Starts the clock of a call; left out, the client's setting counts."""
        from ct2_triton.client.connection import Deadline

        return Deadline(self._timeout_s if timeout_s is ... else timeout_s)


async def _failed(error: ClientError) -> Translation:
    raise error


def _sentence_key(prefix: str, sentence: Sentence, superseded: Superseded) -> str | None:
    """Makes the key that all versions of a sentence share; None for one that has no others."""
    if sentence.id is None or superseded == "keep":
        return None
    return row_key(prefix, sentence.id)


def _code(language: Language | None) -> str | None:
    return None if language is None else language.code
