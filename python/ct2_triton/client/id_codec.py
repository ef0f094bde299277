# SPDX-License-Identifier: Apache-2.0
"""Turn a sentence into token-ID requests with the local tokenizer, and answers back into text.

Each row is a request of its own, even if a call has many sentences and languages. Triton's dynamic
batcher combines rows of different lengths without padding; each row is answered when it is ready,
fails alone, and can be cancelled alone. A request of several rows would need padding and lengths,
which are optional inputs and keep Triton from batching it with others, and would wait for its
slowest row. A row costs one gRPC message, a fraction of a millisecond, over a shared connection.

For the same reason, all requests of a model send the same set of inputs: always TARGET_PREFIX, with
length 0 if there is no prefix, and DRAFT_IDS if the model has this input.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from tritonclient.grpc import InferResult, service_pb2

from ct2_triton.client.calls import asks_for_verdicts, code_of, row_key
from ct2_triton.client.results import Hypothesis, Translation, Verdict, empty_translation
from ct2_triton.client.wire import check_declared, require_kind, set_parameters
from ct2_triton.errors import InvalidCallError, UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ct2_triton.client.calls import Ask, Call, OptionValue, Rows
    from ct2_triton.client.tokenization import EncodedText, Tokenizer
    from ct2_triton.prepared_model import Language

INPUT_IDS, TARGET_PREFIX, DRAFT_IDS = "INPUT_IDS", "TARGET_PREFIX", "DRAFT_IDS"
OUTPUT_IDS, SCORES, FINISH_REASON = "OUTPUT_IDS", "SCORES", "FINISH_REASON"
HYPOTHESES, HYPOTHESIS_LENGTHS = "HYPOTHESES", "HYPOTHESIS_LENGTHS"
DRAFT_TOKENS_KEPT, ALIGNMENTS = "DRAFT_TOKENS_KEPT", "ALIGNMENTS"
QUALITY, QUALITY_FLAGS = "QUALITY", "QUALITY_FLAGS"

_MOST_OTHERS = 4  # pieces by which the start of a draft may differ from the prefix alone

_INTEGERS = {
    f"{sign}INT{bits}": np.dtype(f"<{kind}{bits // 8}")
    for sign, kind in (("", "i"), ("U", "u"))
    for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True)
class ModelTensors:
    """The tensors of a loaded model that the client uses.

    Attributes:
        model: Name on the server.
        version: Version to ask for; "" leaves it to the server.
        inputs: Data type of each id input, by name.
        outputs: Names of the outputs.
        batched: Whether shapes start with the number of rows (`max_batch_size` above 0).
    """

    takes_text: ClassVar[bool] = False

    model: str
    version: str
    inputs: Mapping[str, np.dtype[Any]]
    outputs: frozenset[str]
    batched: bool

    @classmethod
    def from_metadata(
        cls, metadata: service_pb2.ModelMetadataResponse, version: str
    ) -> ModelTensors:
        """Read a ModelMetadataResponse."""
        declared = {tensor.name: tensor for tensor in metadata.inputs}
        outputs = frozenset(tensor.name for tensor in metadata.outputs)
        inputs = {
            name: _INTEGERS[declared[name].datatype]
            for name in (INPUT_IDS, TARGET_PREFIX, DRAFT_IDS)
            if name in declared and declared[name].datatype in _INTEGERS
        }
        if INPUT_IDS not in inputs or OUTPUT_IDS not in outputs:
            raise UnexpectedResponseError(
                f"model {metadata.name!r} is not a translation model: it takes "
                f"{', '.join(declared)} and gives {', '.join(sorted(outputs))}; "
                "name a model of token ids or of text, as ct2-prepare writes them"
            )
        batched = len(declared[INPUT_IDS].shape) == 2
        return cls(metadata.name, version, inputs, outputs, batched)

    @property
    def takes_drafts(self) -> bool:
        """Whether the model takes drafts and reports how many of their tokens it kept."""
        return DRAFT_IDS in self.inputs and DRAFT_TOKENS_KEPT in self.outputs

    @property
    def gives_alignments(self) -> bool:
        """Whether the model returns alignments."""
        return ALIGNMENTS in self.outputs


class IdCodec:
    """Sends sentences to a token-ID model, one request for each language."""

    takes_text: ClassVar[bool] = False

    def __init__(self, tokenizer: Tokenizer, ask: Ask) -> None:
        """Remember the model's tokenizer, and how to ask the server."""
        self._tokenizer = tokenizer
        self._ask = ask

    def start(self, text: str, call: Call) -> Rows:
        """Split a sentence once, for all languages."""
        encoded = self._tokenizer.encode(text)
        return {
            code_of(target): partial(self._translation, text, encoded, target, call)
            for target in call.targets
        }

    async def _translation(
        self, text: str, encoded: EncodedText, target: Language | None, call: Call
    ) -> Translation:
        source, wanted = code_of(call.source), code_of(target)
        if encoded.is_empty:
            return empty_translation(text, source, wanted, judged=call.judged)
        rules = self._tokenizer.rules
        row = rules.input_ids(encoded.ids, call.source, target)
        forced, draft = self._given(call)
        options = call.options
        if call.draft and not draft:  # no tokens of the draft are left for the bias
            options = {name: value for name, value in options.items() if name != "draft_bias"}
        prefix = [*rules.target_prefix(target), *forced]
        key = None if call.supersede is None else row_key(call.supersede, wanted)

        def build(tensors: ModelTensors, left_s: float | None) -> service_pb2.ModelInferRequest:
            require_kind(tensors, takes_text=False)
            return build_request(tensors, row, prefix, options, left_s, key, draft)

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

    def _given(self, call: Call) -> tuple[Sequence[int], Sequence[int]]:
        """Return the IDs of the prefix, and the IDs expected after them.

        If the prefix ends inside a piece of the draft, the draft is dropped.
        """
        forced, draft = call.prefix, call.draft
        forced = self._tokenizer.encode_target(forced) if isinstance(forced, str) else forced
        if not isinstance(draft, str):
            return forced, draft
        ids = self._tokenizer.encode_target(draft)
        if ids[: len(forced)] == tuple(forced):
            return forced, ids[len(forced) :]
        decode = self._tokenizer.decode
        start = call.prefix.strip() if isinstance(call.prefix, str) else decode(forced)
        near = range(max(len(forced) - _MOST_OTHERS, 0), len(forced) + _MOST_OTHERS + 1)
        length = next((length for length in near if decode(ids[:length]) == start), len(ids))
        return forced, ids[length:]


def build_request(
    tensors: ModelTensors,
    input_ids: Sequence[int],
    prefix: Sequence[int],
    options: Mapping[str, OptionValue],
    timeout_s: float | None = None,
    supersede_key: str | None = None,
    draft: Sequence[int] = (),
) -> service_pb2.ModelInferRequest:
    """Build the ModelInferRequest of one row.

    Args:
        tensors: What the model declares.
        input_ids: All source IDs.
        prefix: Target IDs with which the output must begin; may be empty.
        options: Decoding options by name. Lists travel as JSON strings.
        timeout_s: Time limit, also sent to the server; None for no limit.
        supersede_key: Ends older requests of this model with the same key; None for none.
        draft: Target IDs expected after `prefix`; ignored if the model takes no drafts.

    Returns:
        The protobuf message.

    Raises:
        InvalidCallError: An option cannot be sent, or the model lacks an output that it needs.
    """
    request = service_pb2.ModelInferRequest(model_name=tensors.model, model_version=tensors.version)
    if prefix and TARGET_PREFIX not in tensors.inputs:
        raise InvalidCallError(
            f"model {tensors.model!r} has no input for the target language, so none can be chosen; "
            "the tokenizer does not belong to this model, or its config.pbtxt is incomplete"
        )
    for name, row in ((INPUT_IDS, input_ids), (TARGET_PREFIX, prefix), (DRAFT_IDS, draft)):
        if name in tensors.inputs:
            _add_row(request, tensors, name, row)
    for name in _wanted_outputs(tensors, options):
        request.outputs.add(name=name)
    if len(draft) and tensors.takes_drafts:
        request.outputs.add(name=DRAFT_TOKENS_KEPT)
    set_parameters(request, options, timeout_s, supersede_key)
    return request


def read_response(
    response: service_pb2.ModelInferResponse,
    prefix_length: int,
    decode: Callable[[Sequence[int]], str],
) -> tuple[Hypothesis, ...]:
    """Read the hypotheses, best first, of the answer to a request of one row.

    The first `prefix_length` IDs are the prefix, which is removed.
    """
    result = InferResult(response)
    rows = _hypothesis_rows(result)
    scores = _values(result, SCORES, len(rows))
    reasons = _values(result, FINISH_REASON, len(rows))
    hypotheses: list[Hypothesis] = []
    alignments = _alignments(result, rows[0])
    verdict = _verdict(result)
    for row, score, reason in zip(rows, scores, reasons, strict=True):
        ids = tuple(row[prefix_length:])
        hypotheses.append(
            Hypothesis(
                decode(ids),
                ids,
                None if score is None else float(score),
                None if reason is None else reason.decode(),
                None if alignments is None or hypotheses else alignments[prefix_length:],
                verdict=None if hypotheses else verdict,
            )
        )
    return tuple(hypotheses)


def read_draft_tokens_kept(response: service_pb2.ModelInferResponse) -> int | None:
    """Read how many tokens of a draft needed no decode step of their own; None: not requested."""
    kept = _tensor(InferResult(response), DRAFT_TOKENS_KEPT)
    return None if kept is None else int(kept.reshape(-1)[0])


def _add_row(
    request: service_pb2.ModelInferRequest, tensors: ModelTensors, name: str, row: Sequence[int]
) -> None:
    """Add one id tensor as [1, n], or [n] for a model without a batch dimension."""
    dtype = tensors.inputs[name]
    sign, bits = "U" if dtype.kind == "u" else "", 8 * dtype.itemsize
    shape = [1, len(row)] if tensors.batched else [len(row)]
    request.inputs.add(name=name, datatype=f"{sign}INT{bits}", shape=shape)
    request.raw_input_contents.append(np.array(row, dtype=dtype).tobytes())


def _wanted_outputs(tensors: ModelTensors, options: Mapping[str, OptionValue]) -> list[str]:
    """Choose the outputs, so that only those that are read are computed and sent."""
    several = options.get("num_hypotheses", 1) != 1
    wanted = [HYPOTHESES, HYPOTHESIS_LENGTHS] if several else [OUTPUT_IDS]
    if options.get("return_scores"):
        wanted.append(SCORES)
    if options.get("return_alignments"):
        wanted.append(ALIGNMENTS)
    if asks_for_verdicts(options):
        wanted += [QUALITY, QUALITY_FLAGS]
    check_declared(wanted, tensors)
    return wanted + ([FINISH_REASON] if FINISH_REASON in tensors.outputs else [])


def _hypothesis_rows(result: InferResult) -> list[list[int]]:
    """Return the ids of each hypothesis, without padding and with the prefix."""
    padded = _tensor(result, HYPOTHESES)
    if padded is None:
        best = _tensor(result, OUTPUT_IDS)
        if best is None:
            raise UnexpectedResponseError(f"the answer holds neither {OUTPUT_IDS} nor {HYPOTHESES}")
        return [[int(i) for i in best.reshape(-1)]]
    lengths = _tensor(result, HYPOTHESIS_LENGTHS)
    if lengths is None or padded.ndim < 2 or lengths.size != padded.shape[-2]:
        raise UnexpectedResponseError(
            f"{HYPOTHESES} has shape {list(padded.shape)} and {HYPOTHESIS_LENGTHS} "
            f"{None if lengths is None else list(lengths.shape)}; one length a hypothesis is needed"
        )
    rows = padded.reshape(lengths.size, -1).tolist()
    return [row[:length] for row, length in zip(rows, lengths.reshape(-1).tolist(), strict=True)]


def _alignments(result: InferResult, best: list[int]) -> tuple[int, ...] | None:
    """Return the source position of each ID of the best hypothesis; None if not sent."""
    tensor = _tensor(result, ALIGNMENTS)
    if tensor is None:
        return None
    if tensor.size < len(best):
        raise UnexpectedResponseError(
            f"{ALIGNMENTS} has {tensor.size} positions for {len(best)} tokens"
        )
    return tuple(int(position) for position in tensor.reshape(-1)[: len(best)])


def _verdict(result: InferResult) -> Verdict | None:
    """Return the verdict on the best hypothesis; None if not sent."""
    [quality], [flags] = (_values(result, name, 1) for name in (QUALITY, QUALITY_FLAGS))
    return None if quality is None or flags is None else Verdict.read(quality, flags)


def _values(result: InferResult, name: str, count: int) -> list[Any]:
    """Return one value per hypothesis; None for each if the output was not sent."""
    tensor = _tensor(result, name)
    if tensor is None:
        return [None] * count
    values = list(tensor.reshape(-1))
    if len(values) < count:
        raise UnexpectedResponseError(f"{name} has {len(values)} values for {count} hypotheses")
    return values[:count]


def _tensor(result: InferResult, name: str) -> NDArray[Any] | None:
    tensor: NDArray[Any] | None = result.as_numpy(name)
    return tensor
