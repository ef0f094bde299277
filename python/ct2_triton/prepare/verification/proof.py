# SPDX-License-Identifier: Apache-2.0
"""The whole proof: texts and IDs, then float32 outputs, then the stored model.

A client's tokenizer is compared with that of `transformers`: text to IDs, and IDs to text.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import VerificationError
from ct2_triton.prepare import conversion
from ct2_triton.prepare.progress import with_progress
from ct2_triton.prepare.tokenizers import load_tokenizer
from ct2_triton.prepare.verification.comparison import (
    ConvertedModel,
    LoopProof,
    NearTie,
    check_vocabulary,
    compare,
    compare_loops,
    count_equal,
)
from ct2_triton.prepare.verification.own_search import (
    OwnSearchProof,
    compare_own_search,
    reference_answers,
)
from ct2_triton.prepare.verification.probes import Probe, added_token_texts, choose_probes
from ct2_triton.prepare.verification.reference import Answer, ReferenceModel, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ct2_triton.prepare.verification.probes import Subject

_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


class TextProof:
    """Both tokenizers of one prepared model."""

    def __init__(self, subject: Subject) -> None:
        """Read both from the files for clients."""
        self._subject = subject
        self._rules = subject.rules
        self._pieces = read_pieces(subject.stored.tokenizer_folder, subject.rules)
        # Tokenizes texts as translations, if their IDs differ from those of sources.
        self._answers = (
            self._pieces
            if subject.vocabulary.answers is None
            else read_pieces(subject.stored.tokenizer_folder, subject.rules, of_targets=True)
        )
        self._reference = load_tokenizer(subject.stored.tokenizer_folder)
        self.decoded_rows = 0

    def probe_rows(self) -> list[Row]:
        """Build the rows of the probes like a client, without those too long for the model."""
        rows = [self._row(probe) for probe in choose_probes(self._rules)]
        limit = self._rules.max_source_tokens
        return [row for row in rows if limit is None or len(row.input_ids) <= limit]

    def check_added_tokens(self) -> None:
        """Encode and decode every added token, alone and within a sentence."""
        some = choose_probes(self._rules)[0]
        for text in added_token_texts(self._rules):
            self._row(Probe(text, some.source, some.target))

    def check_decoding(self, ids: Sequence[int]) -> None:
        """Compare the text of IDs in both tokenizers."""
        known = [i for i in ids if i < self._rules.tokenizer_size]
        found = self._pieces.decode(known)
        wanted = self._reference.decode(
            known, skip_special_tokens=True, clean_up_tokenization_spaces=False
        ).strip()
        if found not in (wanted, _with_characters(wanted)):
            raise VerificationError(
                f"a client would read {found!r} in {known}, and transformers reads {wanted!r}"
            )
        self.decoded_rows += 1

    def _row(self, probe: Probe) -> Row:
        pieces = self._pieces.encode(probe.text)
        ids = self._rules.input_ids(pieces, probe.source, probe.target)
        wanted = self._subject.family.reference_ids(
            self._reference,
            self._subject.checkpoint.config,
            probe.text,
            probe.source,
            probe.target,
        )
        if ids != wanted:
            raise VerificationError(
                f"a client would send {ids} for {probe}, and transformers gives {wanted}"
            )
        self.check_decoding(self._answers.encode(probe.text))
        prefix = self._rules.target_prefix(probe.target)
        return Row(probe, ids, prefix, self._rules.prefix_length(probe.target))


def _with_characters(text: str) -> str:
    """Decode bytes that some tokenizer.json files leave as `<0xE2><0x98>`."""

    def characters(match: re.Match[str]) -> str:
        return bytes.fromhex(re.sub("[<>]|0x", "", match[0])).decode(errors="replace")

    return _BYTES.sub(characters, text)


_MAX_OUTPUT_TOKENS = 32
_EXACT = "float32"


@dataclass(frozen=True)
class Proof:
    """The results of a proof.

    Attributes:
        vocabulary_tokens: Tokens compared ID by ID.
        vocabulary_differences: Tokens that the family's converter adds and removes.
        probes: Sentences translated by both programs.
        decoded_rows: Rows of IDs that a client and transformers decode to the same text.
        compared_tokens: Output tokens that are equal in the checkpoint and the float32 conversion.
        near_ties: Near ties at which they chose differently.
        own_search: Comparison of the checkpoint's own search in both programs.
        stored_rows_equal: Probes whose answers by the stored model equal the checkpoint's; others
            differ because of the precision of its weights.
        loops: Comparison with decode loops.
    """

    vocabulary_tokens: int
    vocabulary_differences: tuple[str, ...]
    probes: int
    decoded_rows: int
    compared_tokens: int
    near_ties: tuple[NearTie, ...]
    own_search: OwnSearchProof
    stored_rows_equal: int
    loops: LoopProof

    def to_dict(self) -> dict[str, Any]:
        """Return the proof for the manifest."""
        return asdict(self)


def prove(subject: Subject, report: Callable[[str], None]) -> Proof:
    """Compare a converted model with its checkpoint.

    Outputs are compared in float32, with a second conversion if the model is stored in another
    type. The checkpoint and the conversion are never in memory at the same time.
    """
    check_vocabulary(subject.stored.model, subject.vocabulary)
    texts = TextProof(subject)
    rows = texts.probe_rows()
    texts.check_added_tokens()
    missing = range(len(subject.vocabulary.target), subject.checkpoint.config["vocab_size"])
    limit = _MAX_OUTPUT_TOKENS
    reference = ReferenceModel(subject.checkpoint.folder, missing)
    greedy = with_progress(rows, len(rows), "transformers, greedy search", report)
    answers = [reference.greedy(row, limit, subject.rules.end_ids) for row in greedy]
    own = with_progress(rows, len(rows), "transformers, the model's own search", report)
    of_own_search = reference_answers(reference, subject.search, own)
    del reference
    for answer in answers:
        texts.check_decoding(answer.ids)
    ties: list[NearTie] = []
    with _exact_model(subject) as folder:
        check_vocabulary(folder, subject.vocabulary)
        exact = ConvertedModel(folder, _EXACT)
        for answer in with_progress(answers, len(answers), "CTranslate2 in float32", report):
            ties += compare(exact, answer, limit)
        own_search = compare_own_search(exact, subject.search, of_own_search)
        del exact
        loops = (
            compare_loops(folder, subject.stored.model, answers, limit)
            if subject.stored.settings.get("decoding") != "calls"
            else LoopProof(not_compared="decoding is calls")
        )
    return Proof(
        vocabulary_tokens=len(subject.vocabulary.tokens),
        vocabulary_differences=subject.vocabulary.differences,
        probes=len(rows),
        decoded_rows=texts.decoded_rows,
        compared_tokens=sum(len(answer.ids) for answer in answers),
        near_ties=tuple(ties),
        own_search=own_search,
        stored_rows_equal=_stored_rows_equal(subject, answers),
        loops=loops,
    )


@contextmanager
def _exact_model(subject: Subject) -> Iterator[Path]:
    """Yield a float32 conversion: the model itself, or a temporary one."""
    if subject.stored.quantization == _EXACT:
        yield subject.stored.model
        return
    with tempfile.TemporaryDirectory(dir=subject.stored.model.parent) as scratch:
        folder = Path(scratch) / "model"
        conversion.convert(subject.checkpoint.folder, folder, _EXACT, subject.vocabulary)
        tokenizer = load_tokenizer(subject.checkpoint.folder)
        conversion.complete_special_tokens(
            folder, tokenizer, prefix_starts=subject.rules.prefix_starts
        )
        yield folder


def _stored_rows_equal(subject: Subject, answers: Sequence[Answer]) -> int:
    """Count the rows whose answers by the stored model equal the checkpoint's."""
    try:
        stored = ConvertedModel(subject.stored.model, "default")
        return count_equal(stored, answers, _MAX_OUTPUT_TOKENS)
    except (RuntimeError, ValueError) as error:
        raise VerificationError(f"the model as stored does not translate: {error}") from error
