# SPDX-License-Identifier: Apache-2.0
"""Turn texts into requests for a text model, and responses into translations.

A text with all its target languages is one request, so the server encodes it once (docs/text.md).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tritonclient.grpc import InferResult, service_pb2

from ct2_triton.client.calls import Text, asks_for_verdicts, blank, code_of, row_key
from ct2_triton.client.results import Hypothesis, TextPart, Translation, Verdict
from ct2_triton.client.tasks import Shared
from ct2_triton.client.wire import add_strings, check_declared, require_kind, set_parameters
from ct2_triton.errors import (
    InvalidCallError,
    RequestRejectedError,
    ServerFailedError,
    UnexpectedResponseError,
)
from ct2_triton.prepared_model import STREAM_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence

    from ct2_triton.client.calls import Ask, Call, OptionValue, Rows

    Send: TypeAlias = Callable[
        [Sequence[Text], Call, str | None], Awaitable[list[list[Translation]]]
    ]

TEXT_INPUT, TEXT_OUTPUT = "text_input", "text_output"
SOURCE_LANGUAGE, TARGET_LANGUAGES = "source_language", "target_languages"
TARGET_PREFIX, DRAFT = "target_prefix", "draft"  # outputs of each translation
SCORE, FINISH_REASON = "score", "finish_reason"
TARGET_INDEX = "target_index"  # outputs of streams
HYPOTHESES, HYPOTHESIS_SCORES = "hypotheses", "hypothesis_scores"
ALIGNMENTS = "alignments"
QUALITY, QUALITY_FLAGS = "quality", "quality_flags"
STREAM = "stream"  # parameter that requests parts
_OF_PARTS = (TEXT_OUTPUT, TARGET_INDEX, "target_language", FINISH_REASON)


@dataclass(frozen=True)
class TextModel:
    """The tensors of a loaded text model that the client uses.

    Attributes:
        model: Name on the server.
        version: Version to ask for; "" leaves it to the server.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        batched: Whether shapes start with the number of texts (`max_batch_size` above 0).
    """

    takes_text: ClassVar[bool] = True

    model: str
    version: str
    inputs: frozenset[str]
    outputs: frozenset[str]
    batched: bool

    @classmethod
    def from_metadata(
        cls, metadata: service_pb2.ModelMetadataResponse, version: str
    ) -> TextModel | None:
        """Read a ModelMetadataResponse; None if the model is not a text model."""
        shapes = {tensor.name: tensor.shape for tensor in metadata.inputs}
        outputs = frozenset(tensor.name for tensor in metadata.outputs)
        if TEXT_INPUT not in shapes or TEXT_OUTPUT not in outputs:
            return None
        batched = len(shapes[TEXT_INPUT]) == 2
        return cls(metadata.name, version, frozenset(shapes), outputs, batched)

    @property
    def takes_drafts(self) -> bool:
        """Whether the model takes drafts."""
        return DRAFT in self.inputs

    @property
    def gives_alignments(self) -> bool:
        """Whether the model returns alignments."""
        return ALIGNMENTS in self.outputs

    def check_whole(self) -> None:
        """Check that it returns whole translations, not parts."""
        if TARGET_INDEX in self.outputs:
            raise UnexpectedResponseError(
                f"model {self.model!r} sends translations while they grow: use "
                f"{_way_to_stream(self.model)}"
            )


class TextCodec:
    """Sends texts to a text model."""

    takes_text: ClassVar[bool] = True

    def __init__(self, model: TextModel, ask: Ask, *, joins: bool = False) -> None:
        """Remember a model that returns whole translations, and how to send requests.

        With `joins`, short texts that arrive together share a request.
        """
        model.check_whole()
        self._model = model.model
        self._ask = ask
        self._joined = JoinedTexts(self._answers) if joins else None

    def start(self, text: str, call: Call) -> Rows:
        """Prepare the languages, which share one request if there is no key."""
        for name, given in (("prefix", call.prefix), ("draft", call.draft)):
            if not isinstance(given, str):
                raise InvalidCallError(
                    f"{name} is token ids, and model {self._model!r} takes text; give a text, or "
                    "name a model of token ids"
                )
        if not text.strip():
            return {code: partial(blank, text, call, code) for code in call.codes}
        codes = call.codes
        if call.supersede is not None or len(codes) == 1:
            return {code: partial(self._alone, text, code, call) for code in codes}
        shared = Shared(lambda: self._translations(text, codes, call, None))
        return {code: partial(shared.one, i) for i, code in enumerate(codes)}

    async def _alone(self, text: str, code: str | None, call: Call) -> Translation:
        key = None if call.supersede is None else row_key(call.supersede, code)
        [translation] = await self._translations(text, (code,), call, key)
        return translation

    async def _translations(
        self, text: str, codes: tuple[str | None, ...], call: Call, key: str | None
    ) -> list[Translation]:
        assert isinstance(call.prefix, str) and isinstance(call.draft, str)  # noqa: S101, PT018 - see `start`
        one = Text(text, code_of(call.source), codes, call.prefix, call.draft)
        is_plain = key is None and call.session is None and not call.prefix and not call.draft
        if self._joined is not None and is_plain:
            return await self._joined.translate(one, call)
        [found] = await self._answers([one], call, key)
        return found

    async def _answers(
        self, texts: Sequence[Text], call: Call, key: str | None
    ) -> list[list[Translation]]:
        """Send texts in one request; return the translations of each."""

        def build(model: TextModel, left_s: float | None) -> service_pb2.ModelInferRequest:
            require_kind(model, takes_text=True)
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


def build_text_request(
    model: TextModel,
    texts: Sequence[Text],
    options: Mapping[str, OptionValue],
    timeout_s: float | None = None,
    supersede_key: str | None = None,
    *,
    streams: bool = False,
) -> service_pb2.ModelInferRequest:
    """Build the ModelInferRequest of one text, or of several.

    Args:
        model: What the model declares.
        texts: The texts; either all name a source or none does, and all have equally many targets.
        options: Request parameters by name, such as decoding options and `split`.
        timeout_s: Time limit, also sent to the server; None for no limit.
        supersede_key: Ends older requests of this model with the same key; None for none.
        streams: Whether to send parts of the translations as they are generated.

    Returns:
        The protobuf message.

    Raises:
        InvalidCallError: An input cannot be sent, or the model lacks an output that it needs.
    """
    if len(texts) > 1 and not model.batched:
        raise InvalidCallError(f"model {model.model!r} takes one text a request")
    request = service_pb2.ModelInferRequest(model_name=model.model, model_version=model.version)
    _add_declared(request, model, TEXT_INPUT, [[one.text] for one in texts])
    sources = [[one.source] for one in texts if one.source is not None]
    if sources:
        _add_declared(request, model, SOURCE_LANGUAGE, sources)
    named = [[target for target in one.targets if target is not None] for one in texts]
    if any(named):
        _add_declared(request, model, TARGET_LANGUAGES, named)
    if any(one.prefix for one in texts):
        _add_declared(request, model, TARGET_PREFIX, [[one.prefix] for one in texts])
    if any(one.draft for one in texts) and model.takes_drafts:
        _add_declared(request, model, DRAFT, [[one.draft] for one in texts])
    if not streams:
        model.check_whole()
    for name in _outputs_of_parts(model, options) if streams else _wanted_outputs(model, options):
        request.outputs.add(name=name)
    if streams:
        options = {**options, STREAM: True}
    set_parameters(request, options, timeout_s, supersede_key)
    return request


def read_text_response(
    response: service_pb2.ModelInferResponse, targets: int
) -> list[tuple[Hypothesis, ...]]:
    """Read the response to a request of one or more texts, each with one or more targets.

    Each translation is a tuple of hypotheses, best first, with the finish reason of the best.
    """
    result = _Outputs(response)
    texts = _rows(result, HYPOTHESES, targets)  # sent if there are several
    if texts is None:
        texts, scores = _rows(result, TEXT_OUTPUT, targets), _rows(result, SCORE, targets)
    else:
        scores = _rows(result, HYPOTHESIS_SCORES, targets)
    if texts is None:
        raise UnexpectedResponseError(f"the answer holds no {TEXT_OUTPUT}")
    reasons = _rows(result, FINISH_REASON, targets)
    aligned = _rows(result, ALIGNMENTS, targets, may_be_empty=True)
    verdicts = _verdicts(result, targets)
    return [
        tuple(
            Hypothesis(
                text.decode(),
                score=None if scores is None else float(scores[i][rank]),
                finish_reason=None if reasons is None or rank else reasons[i][0].decode(),
                alignment_ranges=None if aligned is None or rank else _ranges(aligned[i]),
                verdict=None if verdicts is None or rank else verdicts[i],
            )
            for rank, text in enumerate(row)
        )
        for i, row in enumerate(texts)
    ]


def read_part(response: service_pb2.ModelInferResponse) -> TextPart:
    """Read a response of a stream model."""
    result = _Outputs(response)
    values = [result.values(name) for name in _OF_PARTS]
    if any(value is None or len(value) != 1 for value in values):
        raise UnexpectedResponseError(f"a part of a stream has not one value of {_OF_PARTS} each")
    text, index, target, finish = (value[0] for value in values if value is not None)
    verdicts = _verdicts(result, 1) if finish else None
    return TextPart(
        text.decode(),
        int(index),
        target.decode() or None,
        finish.decode() or None,
        verdicts[0] if verdicts else None,
    )


def _way_to_stream(model: str) -> str:
    name = model.removesuffix(STREAM_SUFFIX)
    if name == model:  # absent from models that ct2-prepare did not write
        return f"stream_text(model={model!r})"
    return f"stream_text of the model {name!r}, or ct2-translate --stream --model {name}"


def _add_declared(
    request: service_pb2.ModelInferRequest,
    model: TextModel,
    name: str,
    rows: Sequence[Sequence[str]],
) -> None:
    """Add a row of strings for each text: [texts, n], or [n] without a batch dimension."""
    values = [value for row in rows for value in row]
    if name not in model.inputs:
        raise InvalidCallError(
            f"model {model.model!r} declares no {name}, so {', '.join(values)!r} cannot be chosen; "
            "leave it out, or declare the input in config.pbtxt"
        )
    shape = [len(rows), len(rows[0])] if model.batched else [len(values)]
    add_strings(request, name, shape, values)


def _wanted_outputs(model: TextModel, options: Mapping[str, OptionValue]) -> list[str]:
    """Choose the outputs, so that only those that are read are computed and sent."""
    several = options.get("num_hypotheses", 1) != 1
    wanted = [TEXT_OUTPUT, HYPOTHESES] if several else [TEXT_OUTPUT]
    if options.get("return_scores"):
        wanted += [SCORE, HYPOTHESIS_SCORES] if several else [SCORE]
    if options.get("return_alignments"):
        wanted.append(ALIGNMENTS)
    wanted += _outputs_of_verdicts(options)
    check_declared(wanted, model)
    return wanted + ([FINISH_REASON] if FINISH_REASON in model.outputs else [])


def _outputs_of_parts(model: TextModel, options: Mapping[str, OptionValue]) -> list[str]:
    of_verdicts = _outputs_of_verdicts(options)
    check_declared(of_verdicts, model)
    return [*_OF_PARTS, *of_verdicts]


def _outputs_of_verdicts(options: Mapping[str, OptionValue]) -> list[str]:
    return [QUALITY, QUALITY_FLAGS] if asks_for_verdicts(options) else []


class _Outputs:
    """The tensors of a response. Reading strings as arrays would take three times as long."""

    def __init__(self, response: service_pb2.ModelInferResponse) -> None:
        self._response = response
        self._positions = {output.name: i for i, output in enumerate(response.outputs)}

    def values(self, name: str) -> list[Any] | None:
        """Return the values of a tensor; None if it was not sent."""
        at = self._positions.get(name)
        if at is None:
            return None
        if self._response.outputs[at].datatype == "BYTES" and self._response.raw_output_contents:
            return list(_strings(self._response.raw_output_contents[at]))
        values: list[Any] = InferResult(self._response).as_numpy(name).ravel().tolist()
        return values


def _strings(raw: bytes) -> Iterator[bytes]:
    """Read strings, each preceded by its length."""
    at = 0
    while at < len(raw):
        start = at + 4
        at = start + int.from_bytes(raw[at:start], "little")
        yield raw[start:at]


def _rows(
    outputs: _Outputs, name: str, count: int, *, may_be_empty: bool = False
) -> list[list[Any]] | None:
    """Return the values of each translation; None if the output was not sent."""
    values = outputs.values(name)
    if values is None:
        return None
    if not values and may_be_empty:
        return [[] for _ in range(count)]
    if not values or len(values) % count:
        raise UnexpectedResponseError(f"{name} has {len(values)} values for {count} translations")
    width = len(values) // count
    return [values[i : i + width] for i in range(0, len(values), width)]


def _verdicts(outputs: _Outputs, count: int) -> list[Verdict] | None:
    """Return the verdict on each translation; None if they were not sent."""
    qualities, flags = _rows(outputs, QUALITY, count), _rows(outputs, QUALITY_FLAGS, count)
    if qualities is None or flags is None:
        return None
    pairs = zip(qualities, flags, strict=True)
    return [Verdict.read(quality, names) for [quality], [names] in pairs]


def _ranges(values: list[int]) -> tuple[tuple[int, int, int, int], ...]:
    """Return the aligned ranges of a translation; its row is padded with -1."""
    fours = zip(*(values[i::4] for i in range(4)), strict=True)
    return tuple(four for four in fours if four[0] >= 0)


MOST_TEXTS = 16
"""Texts of one request."""

WAIT_S = 0.002
"""Seconds that a text waits for others, while another request is under way."""

MOST_CHARACTERS = 400
"""Of a text that shares a request."""

# Errors that one text can cause; the others are then sent again.
_OF_ONE = (InvalidCallError, RequestRejectedError, ServerFailedError)


class JoinedTexts:
    """Sends texts that arrive at the same time with the same options in one request.

    A request costs client and server about as much as a short translation. If no request of this
    client is in progress, the texts of one iteration of the event loop are sent at once. Otherwise
    texts wait shortly for others. This is for short texts only, because all texts of a request are
    answered together.
    """

    def __init__(self, send: Send) -> None:
        """Prepare; `send` sends several texts of one call, without a key."""
        self._send = send
        self._under_way: set[asyncio.Task[list[list[Translation]]]] = set()
        self._open: dict[Hashable, _Group] = {}

    async def translate(self, text: Text, call: Call) -> list[Translation]:
        """Translate a text, together with others that arrive now."""
        if len(text.text) > MOST_CHARACTERS:
            return (await self._send([text], call, None))[0]
        key = (
            text.source is None,
            tuple(target is None for target in text.targets),
            repr(sorted(call.options.items())),
            call.headers,
            call.start_clock().timeout_s,
        )
        group = self._open.get(key)
        if group is None or not group.is_wanted or len(group.texts) == MOST_TEXTS:
            group = self._open[key] = _Group(self._ask, call, partial(self._close, key))
            group.waits = bool(self._under_way)
        try:
            return await group.add(text)
        except _OF_ONE:
            if len(group.texts) == 1:
                raise
        return (await self._send([text], call, None))[0]

    async def _ask(
        self, texts: Sequence[Text], call: Call, key: str | None
    ) -> list[list[Translation]]:
        """Send, and never cancel, because a cancellation can crash Triton 2.51."""
        asked = asyncio.ensure_future(self._send(texts, call, key))
        self._under_way.add(asked)
        asked.add_done_callback(self._end)
        return await asyncio.shield(asked)

    def _end(self, asked: asyncio.Task[list[list[Translation]]]) -> None:
        self._under_way.discard(asked)
        if not asked.cancelled():
            asked.exception()  # perhaps no task waits for it any more

    def _close(self, key: Hashable, group: _Group) -> None:
        if self._open.get(key) is group:
            del self._open[key]


class _Group:
    """Texts of one request."""

    def __init__(self, send: Send, call: Call, close: Callable[[_Group], None]) -> None:
        self.texts: list[Text] = []
        self._ask = send
        self._call = call
        self._close = close
        self._shared = Shared(self._send)
        self._full = asyncio.Event()
        self.waits = False

    @property
    def is_wanted(self) -> bool:
        """Whether a task waits for its answer; without one, it is ending."""
        return self._shared.is_wanted

    async def add(self, text: Text) -> list[Translation]:
        self.texts.append(text)
        if len(self.texts) == MOST_TEXTS:
            self._full.set()
        return await self._shared.one(len(self.texts) - 1)

    async def _send(self) -> list[list[Translation]]:
        try:
            await asyncio.sleep(0)  # other tasks can add a text
            if self.waits:
                timer = asyncio.get_running_loop().call_later(WAIT_S, self._full.set)
                await self._full.wait()
                timer.cancel()
        finally:
            self._close(self)
        return await self._ask(self.texts, self._call, None)
