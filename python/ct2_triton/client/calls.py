# SPDX-License-Identifier: Apache-2.0
"""From a sentence and its languages to requests: by token ids, or as text.

Both ways have `start`, which makes a coroutine for each language. By ids each is a request of its
own; as text one request has all languages, unless a key may end it for one language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.client.joined_texts import JoinedTexts
from ct2_triton.client.results import Translation, empty_translation
from ct2_triton.client.supersede import row_key
from ct2_triton.client.tasks import Shared
from ct2_triton.errors import ClientError, InvalidCallError, UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from typing import Any

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.connection import Deadline
    from ct2_triton.client.headers import Headers
    from ct2_triton.client.requests import ModelTensors, OptionValue
    from ct2_triton.client.text_requests import Text, TextModel
    from ct2_triton.client.tokenization import EncodedText, Tokenizer
    from ct2_triton.prepared_model import Language

    Rows = dict[str | None, Coroutine[Any, Any, Translation]]
    Build = Callable[[Any, float | None], service_pb2.ModelInferRequest]
    """Makes a request to a version of the model, for the seconds that are left."""


@dataclass(frozen=True)
class Call:
    """What the sentences of one call have in common."""

    source: Language | None
    targets: tuple[Language | None, ...]
    options: Mapping[str, OptionValue]
    start_clock: Callable[[], Deadline]
    supersede: str | None = None
    prefix_ids: tuple[int, ...] = ()
    draft_ids: tuple[int, ...] = ()
    session: str | None = None
    headers: Headers = ()

    @property
    def codes(self) -> tuple[str | None, ...]:
        """The targets' codes."""
        return tuple(code_of(target) for target in self.targets)


if TYPE_CHECKING:
    Ask = Callable[[Build, Call, str, str | None], Awaitable[service_pb2.ModelInferResponse]]
    """Sends what is built for a text, with a key or None, as the call's clock and policy allow."""


class IdRows:
    """Sentences for a model of token ids; one request for each language."""

    def __init__(self, tokenizer: Tokenizer, ask: Ask) -> None:
        """Remember the model's tokenizer, and how to ask the server."""
        self._tokenizer = tokenizer
        self._ask = ask

    def start(self, text: str, call: Call) -> Rows:
        """Split a sentence once and make a coroutine for each language."""
        encoded = self._tokenizer.encode(text)
        return {
            code_of(target): self._translation(text, encoded, target, call)
            for target in call.targets
        }

    async def _translation(
        self, text: str, encoded: EncodedText, target: Language | None, call: Call
    ) -> Translation:
        from ct2_triton.client.requests import (
            build_request,
            read_draft_tokens_kept,
            read_response,
        )

        source, wanted = code_of(call.source), code_of(target)
        if encoded.is_empty:
            return empty_translation(text, source, wanted)
        rules = self._tokenizer.rules
        row = rules.input_ids(encoded.ids, call.source, target)
        prefix = [*rules.target_prefix(target), *call.prefix_ids]
        key = None if call.supersede is None else row_key(call.supersede, wanted)

        def build(tensors: ModelTensors, left_s: float | None) -> service_pb2.ModelInferRequest:
            _require_kind(tensors, takes_text=False)
            draft = call.draft_ids
            return build_request(tensors, row, prefix, call.options, left_s, key, draft)

        response = await self._ask(build, call, text, key)
        return Translation(
            text,
            source,
            wanted,
            read_response(response, rules.prefix_length(target), self._tokenizer.decode),
            encoded.unknown_tokens,
            read_draft_tokens_kept(response),
            response.model_version,
        )


class TextRows:
    """Texts for a model that takes text."""

    def __init__(self, model: str, ask: Ask, *, joins: bool = False) -> None:
        """Remember the model's name, and how to ask the server.

        Args:
            model: The name.
            ask: Asks the server.
            joins: Whether short texts that come together share a request.
        """
        self._model = model
        self._ask = ask
        self._joined = JoinedTexts(self._answers) if joins else None

    def start(self, text: str, call: Call) -> Rows:
        """Make a coroutine for each language; all wait for one request if there is no key."""
        if call.prefix_ids or call.draft_ids:
            name = "prefix_ids" if call.prefix_ids else "draft_ids"
            raise InvalidCallError(
                f"{name} are token ids, and model {self._model!r} takes text; leave them "
                "out, or name a model of token ids"
            )
        if not text.strip():
            return {code: blank(text, call, code) for code in call.codes}
        codes = call.codes
        if call.supersede is not None or len(codes) == 1:
            return {code: self._alone(text, code, call) for code in codes}
        shared = Shared(lambda: self._translations(text, codes, call, None))
        return {code: shared.one(i) for i, code in enumerate(codes)}

    async def _alone(self, text: str, code: str | None, call: Call) -> Translation:
        key = None if call.supersede is None else row_key(call.supersede, code)
        [translation] = await self._translations(text, (code,), call, key)
        return translation

    async def _translations(
        self, text: str, codes: tuple[str | None, ...], call: Call, key: str | None
    ) -> list[Translation]:
        from ct2_triton.client.text_requests import Text

        one = Text(text, code_of(call.source), codes)
        if self._joined is not None and key is None and call.session is None:
            return await self._joined.translate(one, call)
        [found] = await self._answers([one], call, key)
        return found

    async def _answers(
        self, texts: Sequence[Text], call: Call, key: str | None
    ) -> list[list[Translation]]:
        """Ask for texts with one request; give the translations of each."""
        from ct2_triton.client.text_requests import build_text_request, read_text_response

        def build(model: TextModel, left_s: float | None) -> service_pb2.ModelInferRequest:
            _require_kind(model, takes_text=True)
            return build_text_request(model, texts, call.options, left_s, key)

        response = await self._ask(build, call, texts[0].text, key)
        answers = iter(read_text_response(response, sum(len(one.targets) for one in texts)))
        version = response.model_version
        return [
            [
                Translation(one.text, one.source, code, next(answers), version=version)
                for code in one.targets
            ]
            for one in texts
        ]


def _require_kind(model: ModelTensors | TextModel, *, takes_text: bool) -> None:
    """Raise for a model that was loaded again and is another one; the next call finds it."""
    if model.takes_text is not takes_text:
        kind = "text" if model.takes_text else "token ids"
        raise UnexpectedResponseError(
            f"model {model.model!r} was loaded again and takes {kind} now; send the call again"
        )


async def blank(text: str, call: Call, code: str | None) -> Translation:
    """Give the result for a text without a visible character."""
    return empty_translation(text, code_of(call.source), code)


async def failed(error: ClientError) -> Translation:
    """Fail as a result that is awaited."""
    raise error


def code_of(language: Language | None) -> str | None:
    """Give a language's code; None for None."""
    return None if language is None else language.code
