# SPDX-License-Identifier: Apache-2.0
"""Compare the checkpoint's own search in both programs, and list differences by design.

Greedy search is proved token by token elsewhere. Beams, penalties and limits are converted by name,
and the programs may interpret a name differently. So each probe is translated once with all of
them, and a difference must have one of the reasons listed here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import VerificationError
from ct2_triton.prepare.verification.comparison import excused_gap, first_difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ct2_triton.prepare.generation import OwnSearch
    from ct2_triton.prepare.verification.comparison import ConvertedModel
    from ct2_triton.prepare.verification.reference import Answer, ReferenceModel, Row

_MAX_OUTPUT_TOKENS = 32
# Set only on the server: they select outputs, or sample.
_NOT_COMPARED = ("num_hypotheses", "sampling_topk", "sampling_topp", "sampling_temperature")
_BEFORE_SOFTMAX = (
    "no_repeat_ngram_size",
    "repetition_penalty",
    "suppress_sequences",
    "min_decoding_length",
)


@dataclass(frozen=True)
class OwnSearchProof:
    """The result of the comparison.

    Attributes:
        search: The search, with the backend's names.
        rows: Probes that were translated.
        rows_equal: Probes with equal answers in both programs.
        reasons: Why answers may differ by design; empty if none may.
        not_compared: Why nothing was compared; else empty.
    """

    search: dict[str, Any]
    rows: int = 0
    rows_equal: int = 0
    reasons: tuple[str, ...] = ()
    not_compared: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the lines for a report."""
        search = ", ".join(f"{name} {json.dumps(value)}" for name, value in self.search.items())
        if self.not_compared:
            yield f"the model's own search ({search}) was not compared: {self.not_compared}"
            return
        yield (
            f"the model's own search ({search}): {self.rows_equal} of {self.rows} sentences are "
            "those of generate"
        )
        if self.rows_equal < self.rows:
            yield from (f"they differ by design: {reason}" for reason in self.reasons)


def reference_answers(
    reference: ReferenceModel, search: OwnSearch, rows: Iterable[Row]
) -> list[Answer] | str:
    """Translate the probes with the checkpoint's own search; return a reason if it cannot."""
    if "sampling_topk" in _options(search) or any(e.name == "do_sample" for e in search.left_out):
        return "its answers are random"
    try:
        return [reference.own_search(row, _limit(search, row)) for row in rows]
    except (ImportError, TypeError, ValueError) as error:
        return f"transformers does not run it: {error}"


def compare_own_search(
    model: ConvertedModel, search: OwnSearch, answers: Sequence[Answer] | str
) -> OwnSearchProof:
    """Translate the probes with the converted model and the converted search.

    Raises VerificationError if an answer differs without a reason.
    """
    options = _options(search)
    if isinstance(answers, str):
        return OwnSearchProof(options, not_compared=answers)
    has_prefix = any(answer.row.prefix_ids for answer in answers)
    reasons = tuple(_reasons(search, options, has_prefix=has_prefix))
    compared = {name: value for name, value in options.items() if name not in _NOT_COMPARED}
    equal = 0
    for answer in answers:
        limit = _limit(search, answer.row)
        found = model.search(answer.row, {**compared, "max_decoding_length": limit})
        position = first_difference(model, answer.ids, found)
        if position is None:
            equal += 1
        elif not reasons and not _is_near_tie(answer, position, found):
            raise VerificationError(
                f"with the search of its generation config the converted model answers differently "
                f"than the checkpoint: probe {answer.row.probe}, token {position} of {found} for "
                f"{list(answer.ids)}"
            )
    return OwnSearchProof(options, len(answers), equal, reasons)


def _options(search: OwnSearch) -> dict[str, Any]:
    return {entry.name: json.loads(entry.value) for entry in search.parameters}


def _limit(search: OwnSearch, row: Row) -> int:
    shortest = int(search.value("min_decoding_length", 0))
    enough = max(_MAX_OUTPUT_TOKENS, shortest + 8) + len(row.prefix_ids)
    return min(enough, int(search.value("max_decoding_length", enough)))


def _reasons(search: OwnSearch, options: dict[str, Any], *, has_prefix: bool) -> Iterator[str]:
    # The proof forces no end, and names a target language if the model has any.
    overridden = {"forced_eos_token_id"} | ({"forced_bos_token_id"} if has_prefix else set())
    yield from (
        f"{entry.name} is left out: {entry.reason}"
        for entry in search.left_out
        if entry.name not in overridden
    )
    if "repetition_penalty" in options or options.get("no_repeat_ngram_size") == 1:
        yield (
            "transformers counts the token that starts the decoder as generated, often </s>, and "
            "CTranslate2 does not"
        )
    if options["beam_size"] == 1:
        return
    yield "the two beam searches rank answers differently that have not ended at the length limit"
    if "early_stopping" not in search.always_here:
        yield (
            "CTranslate2 ends a beam search when beam_size answers have ended, as early_stopping "
            "true does"
        )
    names = [name for name in _BEFORE_SOFTMAX if name in options]
    if names and "renormalize_logits" not in search.always_here:
        yield (
            f"CTranslate2 applies {', '.join(names)} before the softmax, and transformers after "
            "it, which changes the scores of beams"
        )


def _is_near_tie(answer: Answer, position: int, found: Sequence[int]) -> bool:
    """Return whether both tokens were equally good for the checkpoint."""
    if position >= min(len(found), len(answer.candidates)):
        return False
    return abs(answer.gap(position, found[position])) <= excused_gap(answer, position)
