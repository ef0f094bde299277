# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client: text in, text out, in any number of languages."""

from __future__ import annotations

import secrets
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, overload

from ct2_triton.client.calls import (
    Call,
    blank,
    failed,
    read_headers,
    row_key,
    sentence_key,
    texts_of,
)
from ct2_triton.client.model_client import ModelClient, ServedModel
from ct2_triton.client.servers import stream_model
from ct2_triton.client.stream import Sentence, StreamItem, StreamOptions, TranslationStream
from ct2_triton.client.tasks import map_bounded, run_all
from ct2_triton.errors import ClientError, InvalidCallError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
    from types import EllipsisType

    from ct2_triton.client.calls import OptionValue, Rows
    from ct2_triton.client.results import TextPart, Translation
    from ct2_triton.client.retry import Deadline
    from ct2_triton.client.stream import OnError, Order, Superseded


class TranslationClient(ModelClient):
    """Translate with a model of a server.

    It supports any number of concurrent calls in one event loop, and one event loop after another
    (`asyncio.run` twice). Keep a client, because each one opens a connection of its own.

        async with TranslationClient("localhost:8001", "nllb", repository="models") as client:
            german, french = await client.translate(
                "How is your day going?", source="eng_Latn", targets=["deu_Latn", "fra_Latn"]
            )
            print(german.text)
    """

    @overload
    async def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: str,
        *,
        source: str | None = ...,
        targets: str | None = ...,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> Translation: ...

    @overload
    async def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: str,
        *,
        source: str | None = ...,
        targets: Sequence[str],
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[Translation]: ...

    @overload
    async def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str] to typing
        self,
        text: Sequence[str],
        *,
        source: str | None = ...,
        targets: str | None = ...,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
        metadata: Mapping[str, str] | None = ...,
        **options: OptionValue,
    ) -> list[Translation]: ...

    @overload
    async def translate(
        self,
        text: Sequence[str],
        *,
        source: str | None = ...,
        targets: Sequence[str],
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = ...,
        session: str | None = ...,
        prefix: str | Sequence[int] = ...,
        draft: str | Sequence[int] = ...,
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
        prefix: str | Sequence[int] = "",
        draft: str | Sequence[int] = "",
        metadata: Mapping[str, str] | None = None,
        **options: OptionValue,
    ) -> Translation | list[Translation] | list[list[Translation]]:
        """Translate a sentence, or many, into one or more languages.

        Cancelling the awaiting task also cancels its requests on the server. Triton before 2.57 can
        crash at a cancellation, so there requests continue until their time limit.

        Args:
            text: A sentence, or a sequence of sentences. Text without a visible character gives an
                empty result without a request. A text model cuts longer text into sentences (the
                option `split`) and translates into all targets in one request.
            source: Language of the text, as the model's code or an alias such as "en"; None for a
                model without source languages, or for the default of a text model.
            targets: Target language or languages; None for a model without target languages.
            timeout_s: Time limit of the whole call in seconds, or None; default: the client's.
            supersede: A key for one sentence, such as "meeting-7/speaker-1". A newer call with the
                same key and language, by any client, ends this one on the server at its next
                step, so choose keys that no other client has. Calls with a key are not sent
                again after an outage (`RetryPolicy.outage_s`).
            session: Calls with the same session go to the same version, if the client has several
                (`versions`); None: `supersede`, or the text itself.
            prefix: What the translation must begin with, for one sentence in one language: a text,
                or for a token-ID model IDs, such as the first of `Translation.ids` of an earlier
                call. The translation contains it. With the option `prefix_bias_beta` the
                translation is only biased towards it.
            draft: The expected translation, such as that of an earlier version of the sentence, for
                one sentence in one language: the whole text, or for a token-ID model the IDs after
                `prefix`. It does not change the translation; tokens that are right save decode
                steps in a decode loop. Greedy search only (`beam_size=1`). With the option
                `draft_bias` the translation is biased towards it, also in a beam search.
            metadata: Headers of this call, such as a `traceparent`, in addition to the client's.
            **options: Decoding options, such as `beam_size=4` (docs/parameters.md).

        Returns:
            The translation of one sentence into one language. For a sequence of sentences or of
            languages, a list in their order; for both, a list of languages for each sentence.

        Raises:
            UnknownLanguageError: The model does not have a language.
            SupersededError: A newer call had the same key.
            ClientError: Another of its subclasses; requests in progress are cancelled.
        """
        texts = texts_of(text)
        if supersede is not None and not isinstance(text, str):
            raise InvalidCallError("supersede is a key for one sentence; text is a sequence")
        deadline = self._deadline(timeout_s)
        if self._tokenizer is None:
            await self._meet(deadline)
        call = self._call(source, targets, options, lambda: deadline, supersede, session, metadata)
        if len(prefix) or len(draft):
            if not isinstance(text, str) or len(call.targets) > 1:
                name = "prefix" if len(prefix) else "draft"
                raise InvalidCallError(f"{name} is for one sentence in one language")
            call = replace(call, prefix=_given("prefix", prefix), draft=_given("draft", draft))
        if any(map(str.strip, texts)):
            await self._meet(deadline)  # connect once, before many sentences need it

        async def sentence(one: str) -> Translation | list[Translation]:
            # A newer call ends all languages on the server, so they need not be cancelled.
            rows = self._sentence(one, call).values()
            found = await run_all((row() for row in rows), cancels=supersede is None)
            return found[0] if targets is None or isinstance(targets, str) else found

        if isinstance(text, str):
            return await sentence(text)
        most = max(1, self._max_in_flight // len(call.targets))
        return await map_bounded(sentence, texts, most)  # type: ignore[return-value]

    async def stream(
        self,
        sentences: AsyncIterable[str | Sentence],
        /,
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
        """Translate sentences as they arrive.

        Leaving the iteration cancels requests in progress, as in `translate`. If it can be left
        early, use `contextlib.aclosing(client.stream(...))`.

        Args:
            sentences: Sentences, or `Sentence` objects; versions of a sentence have the same id.
            source: Language of the sentences, as in `translate`.
            targets: Target language or languages, as in `translate`.
            timeout_s: Time limit of each sentence in seconds, from when it is sent or sent again.
            max_in_flight: See `StreamOptions`.
            order: See `StreamOptions`.
            superseded: See `StreamOptions`.
            on_error: See `StreamOptions`.
            supersede: A key of this stream, as in `translate`. A newer version of a sentence then
                ends the older one by a key made of this one, the sentence's id and the language.
                Without it, the older one is cancelled, as in `translate`.
            session: As in `translate`; None: `supersede`, or this stream alone.
            metadata: Headers of its requests, as in `translate`.
            **options: Decoding options.

        Yields:
            One item for each sentence and language, except superseded ones.

        Raises:
            UnknownLanguageError: The model does not have a language.
            ClientError: A sentence failed and `on_error` is "raise".
        """
        if not hasattr(sentences, "__aiter__"):
            raise InvalidCallError(
                f"sentences is {sentences!r:.80}; it must be an asynchronous iterator, and "
                "SyncTranslationClient.stream takes others"
            )
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
                return dict.fromkeys(call.codes, partial(failed, error))

        async with aclosing(TranslationStream(start, behaviour).run(sentences)) as items:
            async for item in items:
                yield item

    async def stream_text(
        self,
        text: str,
        /,
        *,
        source: str | None = None,
        targets: str | Sequence[str] | None = None,
        model: str | None = None,
        timeout_s: float | EllipsisType | None = ...,
        supersede: str | None = None,
        metadata: Mapping[str, str] | None = None,
        **options: OptionValue,
    ) -> AsyncGenerator[TextPart, None]:
        """Translate one text and yield the parts of its translations as they are generated.

        It needs a stream model, which `ct2-prepare --io stream` writes (docs/text.md). The joined
        parts of a language are the greedy translation of the text.

        Leaving the iteration ends the stream on the server. If it can be left early, use
        `contextlib.aclosing(client.stream_text(...))`.

        Args:
            text: One or more sentences.
            source: Language of the text, as in `translate`.
            targets: Target language or languages, as in `translate`.
            model: Name of the stream model; None: this model's name with the suffix "-stream".
            timeout_s: Time limit of the whole stream in seconds, or None; default: the client's.
            supersede: A key for the whole text, as in `translate`.
            metadata: Headers, as in `translate`.
            **options: Decoding options of greedy search.

        Yields:
            Each part as it arrives.

        Raises:
            UnknownLanguageError: The model does not have a language.
            SupersededError: A newer call had the same key.
            ClientError: Another of its subclasses. The parts before it are not a complete
                translation.
        """
        if not isinstance(text, str):
            raise InvalidCallError(f"text is {text!r:.80}; it must be a string")
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
        session = session or supersede
        return Call(*pair, options, start_clock, supersede, session=session, headers=headers)

    def _sentence(self, text: str, call: Call) -> Rows:
        if self._codec is None:  # all texts are blank: the server was not asked
            return {code: partial(blank, text, call, code) for code in call.codes}
        return self._codec.start(text, call)


def _given(name: str, tokens: str | Sequence[int]) -> str | tuple[int, ...]:
    """Return a text or IDs, which the wire would cut to 32 bits."""
    if isinstance(tokens, str):
        return tokens
    for token in tokens:
        if not isinstance(token, Integral) or not 0 <= token < 2**31:
            raise InvalidCallError(
                f"{name} has the ID {token!r}; IDs are integers of 0 to 2147483647"
            )
    return tuple(map(int, tokens)) or ""
