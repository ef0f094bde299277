# SPDX-License-Identifier: Apache-2.0
"""The whole proof: ids, then float32 outputs, then the model that is shipped."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import VerificationError
from ct2_triton.prepare import conversion
from ct2_triton.prepare.verification.comparison import ConvertedModel, NearTie, compare
from ct2_triton.prepare.verification.probes import choose_probes
from ct2_triton.prepare.verification.reference import Answer, Row, reference_answers
from ct2_triton.prepare.verification.vocabulary import check_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.families import ExpectedVocabulary, Family
    from ct2_triton.prepared_model import TokenRules

_MAX_OUTPUT_TOKENS = 32
_EXACT = "float32"


@dataclass(frozen=True)
class Proof:
    """What was compared.

    Attributes:
        vocabulary_tokens: Tokens compared id by id.
        vocabulary_differences: What the family's converter adds and removes.
        probes: Sentences translated by both programs.
        compared_tokens: Output tokens of the checkpoint that the float32 conversion repeated.
        near_ties: Where they chose differently between equally good tokens.
        stored_rows_equal: Probes that the model as stored answers like the checkpoint; the rest
            differ by the precision of its weights.
    """

    vocabulary_tokens: int
    vocabulary_differences: tuple[str, ...]
    probes: int
    compared_tokens: int
    near_ties: tuple[NearTie, ...]
    stored_rows_equal: int

    def to_dict(self) -> dict[str, Any]:
        """Gives the proof for the manifest."""
        return asdict(self)


@dataclass(frozen=True)
class Subject:
    """What is to be proved equal to its checkpoint.

    Attributes:
        checkpoint: The checkpoint.
        family: Its family.
        vocabulary: The vocabulary that the conversion must have.
        rules: What clients will go by.
        tokenizer_folder: The tokenizer files that clients will read.
        model: Folder of the converted model.
        quantization: Type it was stored in.
    """

    checkpoint: Checkpoint
    family: Family
    vocabulary: ExpectedVocabulary
    rules: TokenRules
    tokenizer_folder: Path
    model: Path
    quantization: str


def prove(subject: Subject) -> Proof:
    """Compares a converted model with its checkpoint.

    The outputs are compared in float32, with a second conversion when the model is stored in
    another type; the checkpoint and the conversion are never in memory at the same time.

    Args:
        subject: What to compare.

    Returns:
        What was compared.

    Raises:
        VerificationError: Something differs.
        ConversionError: The second conversion failed.
    """
    check_vocabulary(subject.model, subject.vocabulary)
    rows = probe_rows(subject)
    missing = range(subject.rules.vocabulary_size, subject.checkpoint.config["vocab_size"])
    limit = _MAX_OUTPUT_TOKENS
    answers = list(reference_answers(subject.checkpoint.folder, rows, limit, missing))
    ties: list[NearTie] = []
    with _exact_model(subject) as folder:
        check_vocabulary(folder, subject.vocabulary)
        exact = ConvertedModel(folder, _EXACT)
        for answer in answers:
            ties += compare(exact, answer, limit)
        del exact
    return Proof(
        vocabulary_tokens=len(subject.vocabulary.tokens),
        vocabulary_differences=subject.vocabulary.differences,
        probes=len(rows),
        compared_tokens=sum(len(answer.ids) for answer in answers),
        near_ties=tuple(ties),
        stored_rows_equal=_stored_rows_equal(subject, answers),
    )


def probe_rows(subject: Subject) -> list[Row]:
    """Builds the ids of the probes as a client does, and holds them against `transformers`.

    Args:
        subject: Of it, the family, the rules and the tokenizer folder are used.

    Returns:
        A row for each probe that the model has positions for.

    Raises:
        VerificationError: A client would send other ids.
    """
    tokenizer: PreTrainedTokenizerBase = conversion.load_tokenizer(subject.tokenizer_folder)
    rules = subject.rules
    pieces = read_pieces(subject.tokenizer_folder, rules)
    rows = []
    for probe in choose_probes(rules):
        ids = rules.input_ids(pieces.encode(probe.text), probe.source, probe.target)
        wanted = subject.family.reference_ids(
            tokenizer, subject.checkpoint.config, probe.text, probe.source, probe.target
        )
        if ids != wanted:
            raise VerificationError(
                f"a client would send {ids} for {probe}, and transformers gives {wanted}"
            )
        if rules.max_source_tokens is None or len(ids) <= rules.max_source_tokens:
            rows.append(Row(probe, ids, rules.target_prefix(probe.target)))
    return rows


@contextmanager
def _exact_model(subject: Subject) -> Iterator[Path]:
    """Lends a float32 conversion: the model itself, or a temporary one."""
    if subject.quantization == _EXACT:
        yield subject.model
        return
    with tempfile.TemporaryDirectory(dir=subject.model.parent) as scratch:
        folder = Path(scratch) / "model"
        conversion.convert(subject.checkpoint.folder, folder, _EXACT)
        tokenizer = conversion.load_tokenizer(subject.checkpoint.folder)
        conversion.complete_special_tokens(folder, tokenizer)
        yield folder


def _stored_rows_equal(subject: Subject, answers: Sequence[Answer]) -> int:
    """Counts the rows that the stored model answers like the checkpoint; it must answer all."""
    try:
        stored = ConvertedModel(subject.model, "default")
        found = [stored.continue_row(answer.row, (), _MAX_OUTPUT_TOKENS) for answer in answers]
    except (RuntimeError, ValueError) as error:
        raise VerificationError(f"the model as stored does not translate: {error}") from error
    return sum(
        len(ids) == len(answer.ids) and all(map(stored.same_token, ids, answer.ids))
        for ids, answer in zip(found, answers, strict=True)
    )
