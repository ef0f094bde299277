# SPDX-License-Identifier: Apache-2.0
"""Text to a request for a model that takes text, and its response back to translations.

One text with all its target languages is one request: the server encodes it once (docs/text.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tritonclient.grpc import InferResult, service_pb2

from ct2_triton.client.requests import check_declared, set_parameters
from ct2_triton.client.results import Hypothesis
from ct2_triton.errors import InvalidCallError, UnexpectedResponseError
from ct2_triton.prepared_model import STREAM_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ct2_triton.client.requests import OptionValue

TEXT_INPUT, TEXT_OUTPUT = "text_input", "text_output"
SOURCE_LANGUAGE, TARGET_LANGUAGES = "source_language", "target_languages"
SCORE, FINISH_REASON = "score", "finish_reason"
TARGET_INDEX = "target_index"  # of streams
HYPOTHESES, HYPOTHESIS_SCORES = "hypotheses", "hypothesis_scores"
ALIGNMENTS = "alignments"


@dataclass(frozen=True)
class TextModel:
    """What a loaded model that takes text declares, as far as the client uses it.

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
        """Read a ModelMetadataResponse.

        Returns:
            The model; None where it does not take text and give text.

        Raises:
            UnexpectedResponseError: The model sends streams.
        """
        shapes = {tensor.name: tensor.shape for tensor in metadata.inputs}
        outputs = frozenset(tensor.name for tensor in metadata.outputs)
        if TEXT_INPUT not in shapes or TEXT_OUTPUT not in outputs:
            return None
        if TARGET_INDEX in outputs:
            raise UnexpectedResponseError(
                f"model {metadata.name!r} sends translations while they grow: use "
                f"{_way_to_stream(metadata.name)}"
            )
        batched = len(shapes[TEXT_INPUT]) == 2
        return cls(metadata.name, version, frozenset(shapes), outputs, batched)


@dataclass(frozen=True)
class Text:
    """A text that goes to a model.

    Attributes:
        text: The text.
        source: Its language; None for the model's default, or a model of one pair.
        targets: Languages wanted; `(None,)` for a model of one pair.
    """

    text: str
    source: str | None
    targets: tuple[str | None, ...]


def build_text_request(
    model: TextModel,
    texts: Sequence[Text],
    options: Mapping[str, OptionValue],
    timeout_s: float | None = None,
    supersede_key: str | None = None,
) -> service_pb2.ModelInferRequest:
    """Build the ModelInferRequest of one text, or of several.

    Args:
        model: What the model declares.
        texts: The texts; all name a source or none does, and all have as many targets.
        options: Request parameters by name, such as decoding options and `split`.
        timeout_s: Time the caller has, told to Triton's scheduler as well; None for no limit.
        supersede_key: Ends the older requests of this model with the same key; None for none.

    Returns:
        The protobuf message.

    Raises:
        InvalidCallError: Something cannot be sent, or the model cannot give what is asked for.
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
    for name in _wanted_outputs(model, options):
        request.outputs.add(name=name)
    set_parameters(request, options, timeout_s, supersede_key)
    return request


def read_text_response(
    response: service_pb2.ModelInferResponse, targets: int
) -> list[tuple[Hypothesis, ...]]:
    """Read the answer to a request of one text, or of several.

    Args:
        response: The ModelInferResponse.
        targets: How many translations were asked for: of each text, one a language.

    Returns:
        For each of these its hypotheses, best first. The finish reason is that of the best.

    Raises:
        UnexpectedResponseError: A tensor is missing or does not have the shape it should have.
    """
    result = _Outputs(response)
    texts = _rows(result, HYPOTHESES, targets)  # there where there are several
    if texts is None:
        texts, scores = _rows(result, TEXT_OUTPUT, targets), _rows(result, SCORE, targets)
    else:
        scores = _rows(result, HYPOTHESIS_SCORES, targets)
    if texts is None:
        raise UnexpectedResponseError(f"the answer holds no {TEXT_OUTPUT}")
    reasons = _rows(result, FINISH_REASON, targets)
    aligned = _rows(result, ALIGNMENTS, targets, may_be_empty=True)
    return [
        tuple(
            Hypothesis(
                text.decode(),
                score=None if scores is None else float(scores[i][rank]),
                finish_reason=None if reasons is None or rank else reasons[i][0].decode(),
                alignment_ranges=None if aligned is None or rank else _ranges(aligned[i]),
            )
            for rank, text in enumerate(row)
        )
        for i, row in enumerate(texts)
    ]


def _way_to_stream(model: str) -> str:
    name = model.removesuffix(STREAM_SUFFIX)
    if name == model:  # named by somebody else than ct2-prepare
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


def add_strings(
    request: service_pb2.ModelInferRequest, name: str, shape: list[int], values: Sequence[str]
) -> None:
    """Add one tensor of strings.

    Raises:
        InvalidCallError: One of them cannot be sent.
    """
    try:
        data = [value.encode() for value in values]
    except UnicodeEncodeError as error:
        raise InvalidCallError(f"{name} is not valid Unicode: {error}") from error
    request.inputs.add(name=name, datatype="BYTES", shape=shape)
    request.raw_input_contents.append(
        b"".join(len(value).to_bytes(4, "little") + value for value in data)
    )


def _wanted_outputs(model: TextModel, options: Mapping[str, OptionValue]) -> list[str]:
    """Choose the outputs, so that nothing is computed or sent that nobody reads."""
    several = options.get("num_hypotheses", 1) != 1
    wanted = [TEXT_OUTPUT, HYPOTHESES] if several else [TEXT_OUTPUT]
    if options.get("return_scores"):
        wanted += [SCORE, HYPOTHESIS_SCORES] if several else [SCORE]
    if options.get("return_alignments"):
        wanted.append(ALIGNMENTS)
    check_declared(wanted, model)
    return wanted + ([FINISH_REASON] if FINISH_REASON in model.outputs else [])


class _Outputs:
    """The tensors of a response. Strings are read here: as arrays they take three times as long."""

    def __init__(self, response: service_pb2.ModelInferResponse) -> None:
        self._response = response
        self._positions = {output.name: i for i, output in enumerate(response.outputs)}

    def values(self, name: str) -> list[Any] | None:
        """Give the values of a tensor; None where it was not sent."""
        at = self._positions.get(name)
        if at is None:
            return None
        if self._response.outputs[at].datatype == "BYTES" and self._response.raw_output_contents:
            return list(_strings(self._response.raw_output_contents[at]))
        values: list[Any] = InferResult(self._response).as_numpy(name).ravel().tolist()
        return values


def _strings(raw: bytes) -> Iterator[bytes]:
    """Read strings, each of which has its length before it."""
    at = 0
    while at < len(raw):
        start = at + 4
        at = start + int.from_bytes(raw[at:start], "little")
        yield raw[start:at]


def _rows(
    outputs: _Outputs, name: str, count: int, *, may_be_empty: bool = False
) -> list[list[Any]] | None:
    """Give the values of each translation; None where the output was not sent."""
    values = outputs.values(name)
    if values is None:
        return None
    if not values and may_be_empty:
        return [[] for _ in range(count)]
    if not values or len(values) % count:
        raise UnexpectedResponseError(f"{name} has {len(values)} values for {count} translations")
    width = len(values) // count
    return [values[i : i + width] for i in range(0, len(values), width)]


def _ranges(values: list[int]) -> tuple[tuple[int, int, int, int], ...]:
    """Give the aligned ranges of a translation; -1 fills up its row."""
    fours = zip(*(values[i::4] for i in range(4)), strict=True)
    return tuple(four for four in fours if four[0] >= 0)
