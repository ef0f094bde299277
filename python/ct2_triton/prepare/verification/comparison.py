# SPDX-License-Identifier: Apache-2.0
"""Compare a CTranslate2 model with the answers of the checkpoint, token by token.

It is compared in CTranslate2 itself and in decode loops, which serve the model.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.engine_library import EngineLibraryError, load_core
from ct2_triton.errors import VerificationError
from ct2_triton.prepare.rules import duplicate_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.prepare.families import ExpectedVocabulary
    from ct2_triton.prepare.verification.reference import Answer, Row

# Two float32 programs add in different orders. Their logits differ by up to 6e-7 of the largest in
# tiny models, and more in deeper ones. If the two best logits are closer than this share of the
# largest, either token is accepted, and the place is reported.
NEAR_TIE = 1e-4
_WHOLE: dict[str, Any] = {"max_input_length": 0, "return_end_token": True}


@dataclass(frozen=True)
class NearTie:
    """A place where the two programs chose differently between equally good tokens.

    Attributes:
        probe: Text and languages.
        position: Index in the output, without the prefix.
        reference_id: The checkpoint's token.
        converted_id: The converted model's token.
        gap_logits: The checkpoint's logit of its token minus that of the other.
    """

    probe: str
    position: int
    reference_id: int
    converted_id: int
    gap_logits: float


class GreedyModel(ABC):
    """A converted model with greedy search, on IDs."""

    TITLE = "the converted model"

    def __init__(self, folder: Path) -> None:
        """Read the vocabularies."""
        files = vocabulary_files(folder)
        self.source_tokens = _tokens(files[0])  # source_ comes before target_
        self.target_tokens = _tokens(files[-1])
        self._first_ids = duplicate_ids(tuple(self.target_tokens))

    def same_token(self, one: int, other: int) -> bool:
        """Return whether two IDs have the same token, because CTranslate2 returns strings."""
        return self._first_ids.get(one, one) == self._first_ids.get(other, other)

    @abstractmethod
    def continue_row(self, row: Row, so_far: Sequence[int], max_tokens: int) -> list[int]:
        """Translate a row whose first tokens are forced, and return the tokens after them.

        The limit counts the forced tokens, not the prefix. `</s>` is included if it comes before
        the limit.
        """


class ConvertedModel(GreedyModel):
    """A converted model in CTranslate2 itself."""

    def __init__(self, folder: Path, compute_type: str = "default") -> None:
        """Load the model on the CPU; `default` is the stored type."""
        import ctranslate2

        super().__init__(folder)
        self._translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=compute_type
        )
        numbered = enumerate(self.target_tokens)
        self._target_ids = {token: i for i, token in numbered if i not in self._first_ids}

    def translate(
        self,
        rows: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        **options: Any,  # noqa: ANN401 - CTranslate2's
    ) -> list[list[int]]:
        """Translate rows with options of CTranslate2; prefixes are part of the answers."""
        results = self._translator.translate_batch(
            [[self.source_tokens[i] for i in row] for row in rows],
            target_prefix=[[self.target_tokens[i] for i in prefix] for prefix in prefixes],
            **options,
        )
        return [[self._target_ids[token] for token in one.hypotheses[0]] for one in results]

    def continue_row(self, row: Row, so_far: Sequence[int], max_tokens: int) -> list[int]:
        """Translate a row whose first tokens are forced; see `GreedyModel`."""
        [ids] = self.translate(
            [row.input_ids],
            [[*row.prefix_ids, *so_far]],
            beam_size=1,
            max_decoding_length=row.echoed + max_tokens,
            **_WHOLE,
        )
        return ids[row.echoed + len(so_far) :]

    def search(self, row: Row, options: Mapping[str, Any]) -> list[int]:
        """Translate a row with CTranslate2's options, in which tokens are given as IDs.

        Returns the IDs after the row's prefix, with `</s>` if it comes before the limit.
        """
        named = {**options}
        for name in ("suppress_sequences", "end_token"):
            if name in named:
                named[name] = self._named(named[name])
        [ids] = self.translate([row.input_ids], [row.prefix_ids], **_WHOLE, **named)
        return ids[row.echoed :]

    def _named(self, ids: Sequence[Any]) -> list[Any]:
        return [self._named(i) if isinstance(i, list) else self.target_tokens[i] for i in ids]


def compare(model: GreedyModel, answer: Answer, max_tokens: int) -> list[NearTie]:
    """Compare one answer of a float32 model to its last token, continuing after near ties.

    Raises VerificationError if the model chose a token that was not as good.
    """
    ties: list[NearTie] = []
    done = 0
    while done < len(answer.ids):
        found = model.continue_row(answer.row, answer.ids[:done], max_tokens)
        position = first_difference(model, answer.ids[done:], found)
        if position is None:
            break
        position += done
        ties.append(_judge(model, answer, position, found[position - done :][:1]))
        done = position + 1
    return ties


def count_equal(model: GreedyModel, answers: Sequence[Answer], max_tokens: int) -> int:
    """Count the rows whose answers equal the checkpoint's, to the last token."""
    return sum(
        first_difference(model, answer.ids, model.continue_row(answer.row, (), max_tokens)) is None
        for answer in answers
    )


def first_difference(model: GreedyModel, wanted: Sequence[int], found: Sequence[int]) -> int | None:
    """Return the first index at which two outputs differ."""
    for position, token in enumerate(wanted):
        if position >= len(found) or not model.same_token(token, found[position]):
            return position
    return len(wanted) - 1 if len(found) > len(wanted) else None


def _judge(model: GreedyModel, answer: Answer, position: int, found: Sequence[int]) -> NearTie:
    """Accept a difference at a near tie; any other ends the preparation."""
    wanted = answer.ids[position]
    gap = answer.gap(position, found[0]) if found else float("inf")
    excused = excused_gap(answer, position)
    if not found or abs(gap) > excused:
        raise VerificationError(
            f"{model.TITLE} does not answer as the checkpoint does: probe {answer.row.probe}, "
            f"token {position}: {found[0] if found else 'nothing'} for {wanted} "
            f"(logit gap {gap:.4g}, excused up to {excused:.2g})"
        )
    return NearTie(str(answer.row.probe), position, wanted, found[0], gap)


def excused_gap(answer: Answer, position: int) -> float:
    """Return the largest gap of two logits at which either token is accepted."""
    logits = map(abs, answer.candidates[position].values())
    return NEAR_TIE * max((logit for logit in logits if logit < math.inf), default=0.0)


def _tokens(path: Path) -> list[str]:
    return list(json.loads(path.read_text(encoding="utf-8")))


_SHOWN = 3


def check_vocabulary(model: Path, expected: ExpectedVocabulary) -> None:
    """Compare each vocabulary with the expected one; an error shows the first difference."""
    for path in vocabulary_files(model):
        tokens = expected.target if path.name.startswith("target") else expected.tokens
        _compare(path.name, json.loads(path.read_text(encoding="utf-8")), tokens)


def vocabulary_files(model: Path) -> list[Path]:
    """Find the vocabulary files of a converted model: one shared, or one for each side."""
    files = sorted(model.glob("*_vocabulary.json"))
    if not files:
        raise VerificationError(f"the converted model has no vocabulary file in {model}")
    return files


def _compare(name: str, found: Sequence[str], expected: Sequence[str]) -> None:
    if len(found) != len(expected):
        raise VerificationError(
            f"{name} has {len(found)} tokens where the tokenizer and the model's embedding table "
            f"call for {len(expected)}"
        )
    wrong = [i for i, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other]
    if wrong:
        shown = ", ".join(f"{i}: {found[i]!r} for {expected[i]!r}" for i in wrong[:_SHOWN])
        raise VerificationError(
            f"{name} differs from the tokenizer at {len(wrong)} of {len(expected)} ids ({shown})"
        )


@dataclass(frozen=True)
class LoopProof:
    """The result of the comparison.

    Attributes:
        near_ties: Near ties at which a loop in float32 and the checkpoint chose differently.
        stored_rows_equal: Probes whose answers by a loop on the stored model equal the
            checkpoint's.
        not_compared: Why nothing was compared; else empty.
    """

    near_ties: tuple[NearTie, ...] = ()
    stored_rows_equal: int = 0
    not_compared: str = ""


class LoopModel(GreedyModel):
    """A converted model in a decode loop."""

    TITLE = "the decode loop (--set decoding=calls does without)"

    def __init__(self, folder: Path, compute_type: str) -> None:
        """Load the model on the CPU; `default` is the stored type."""
        super().__init__(folder)
        parameters = {"compute_type": compute_type, "decoding": "loop", "calls": "refuse"}
        self._loop = load_core().Translator(str(folder), {**parameters, "proof": "off"})

    def continue_row(self, row: Row, so_far: Sequence[int], max_tokens: int) -> list[int]:
        """Translate a row whose first tokens are forced; see `GreedyModel`."""
        options = {"beam_size": 1, "max_decoding_length": row.echoed + max_tokens}
        [[answer]] = self._loop.translate(
            [row.input_ids], [[*row.prefix_ids, *so_far]], {**options, "return_end_token": True}
        )
        ids: list[int] = answer["ids"]
        return ids[row.echoed + len(so_far) :]


def compare_loops(
    exact: Path, stored: Path, answers: Sequence[Answer], max_tokens: int
) -> LoopProof:
    """Translate the probes in decode loops, in float32 and as stored.

    Raises VerificationError if a loop in float32 chose a token that was not as good.
    """
    try:
        refusal = load_core().Error
    except (ImportError, EngineLibraryError) as error:
        return LoopProof(not_compared=str(error))
    try:
        model = LoopModel(exact, "float32")
        ties = [tie for answer in answers for tie in compare(model, answer, max_tokens)]
        del model
        return LoopProof(
            tuple(ties), count_equal(LoopModel(stored, "default"), answers, max_tokens)
        )
    except refusal as error:
        return LoopProof(not_compared=str(error))
