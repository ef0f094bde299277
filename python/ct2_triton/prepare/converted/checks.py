# SPDX-License-Identifier: Apache-2.0
"""The checks of a model without a checkpoint to compare with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces, text_pieces
from ct2_triton.errors import UnsupportedModelError, VerificationError
from ct2_triton.prepare.verification.comparison import ConvertedModel
from ct2_triton.prepare.verification.probes import choose_probes

if TYPE_CHECKING:
    from pathlib import Path

    from ct2_triton.prepare.converted.files import ModelHeader, Vocabularies
    from ct2_triton.prepared_model import TokenRules

_LEAST_KNOWN_PERCENT = 50
_MAX_OUTPUT_TOKENS = 48
_EMBEDDINGS = (
    ("source", "encoder/embeddings_0/weight"),
    ("source", "encoder/embeddings/weight"),
    ("target", "decoder/embeddings/weight"),
)


@dataclass(frozen=True)
class Checks:
    """The results of the checks.

    Attributes:
        source_tokens: Tokens of the source vocabulary; the embedding table has as many rows.
        target_tokens: Tokens of the target vocabulary.
        files_compared: Tokenizer files whose IDs equal those of the vocabulary.
        known_percent: Share of the tokenizer's pieces that the source vocabulary has, in percent.
        round_trips: Sentences that IDs reproduce unchanged.
        with_unknown: Sentences skipped there, because the vocabulary lacks some characters.
        translated: Probes for which the stored model returned text.
        probes: Number of probes.
        example: Text and translation of one probe, for a reader to judge.
        not_proved: What these checks cannot show, one sentence each.
    """

    source_tokens: int
    target_tokens: int
    files_compared: tuple[str, ...]
    known_percent: float
    round_trips: int
    with_unknown: int
    translated: int
    probes: int
    example: tuple[str, str]
    not_proved: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the checks for the manifest."""
        return {"proved": False, **asdict(self)}

    def lines(self) -> list[str]:
        """Return the lines for a report."""
        text, answer = self.example
        return [
            f"checked: {self.source_tokens} and {self.target_tokens} tokens of both vocabularies, "
            f"{self.known_percent:.1f} % of the tokenizer's pieces known, {self.round_trips} "
            f"sentences to ids and back, {self.translated} of {self.probes} translated",
            f"for example: {text!r} is {answer!r}",
            *(f"not proved: {line}" for line in self.not_proved),
        ]


def check_rows(header: ModelHeader, vocabularies: Vocabularies) -> None:
    """Compare the sizes of the vocabularies with the rows of the embedding tables."""
    sizes = {"source": len(vocabularies.source), "target": len(vocabularies.target)}
    for side, name in _EMBEDDINGS:
        rows = header.rows(name)
        if rows not in (None, sizes[side]):
            raise VerificationError(
                f"the {side} vocabulary has {sizes[side]} tokens, and the model {rows} rows"
            )


def known_percent(file: Path, vocabularies: Vocabularies) -> float:
    """Return the percentage of a tokenizer's pieces that the model's vocabulary has.

    Raises VerificationError if it is so low that the tokenizer belongs to another model.
    """
    try:
        pieces = text_pieces(file)
    except Exception as error:  # both libraries raise various exceptions
        raise UnsupportedModelError(f"cannot read {file.name}: {error}") from error
    tokens = {*vocabularies.source, *vocabularies.target}
    known = 100 * sum(piece in tokens for piece in pieces) / max(1, len(pieces))
    if known < _LEAST_KNOWN_PERCENT:
        raise VerificationError(
            f"the model has {known:.1f} % of the pieces of {file.name}, which must be another "
            "model's"
        )
    return known


def check_round_trips(
    folder: Path, rules: TokenRules, vocabularies: Vocabularies
) -> tuple[int, int]:
    """Tokenize and decode sentences like a client; half of them must be unchanged.

    Returns the number of unchanged sentences, and of those skipped because the vocabulary lacks
    some of their characters.
    """
    pieces = read_pieces(folder, rules, of_targets=True)
    token = vocabularies.source[rules.unk_id]
    unknown = vocabularies.target.index(token) if token in vocabularies.target else -1
    rows = [pieces.encode(" ".join(probe.text.split())) for probe in choose_probes(rules)]
    able = [ids for ids in rows if unknown not in ids]
    equal = sum(pieces.encode(pieces.decode(ids)) == ids for ids in able)
    if 2 * equal < len(able):
        raise VerificationError(
            f"{len(able) - equal} of {len(able)} sentences do not come back from their ids: the "
            "tokenizer does not join what it splits"
        )
    return equal, len(rows) - len(able)


def translate_probes(model: Path, folder: Path, rules: TokenRules) -> list[tuple[str, str]]:
    """Translate the probes with CTranslate2, greedy, as stored; return text and answer of each."""
    try:
        converted = ConvertedModel(model)
    except (RuntimeError, ValueError) as error:
        raise UnsupportedModelError(f"CTranslate2 cannot load the model: {error}") from error
    pieces = read_pieces(folder, rules)
    answers = []
    for probe in choose_probes(rules):
        row = rules.input_ids(pieces.encode(probe.text), probe.source, probe.target)
        if rules.max_source_tokens is not None and len(row) > rules.max_source_tokens:
            continue
        try:
            prefix = rules.target_prefix(probe.target)
            [ids] = converted.translate(
                [row], [prefix], beam_size=1, max_decoding_length=_MAX_OUTPUT_TOKENS
            )
        except (RuntimeError, ValueError) as error:
            raise VerificationError(f"the model does not translate {probe}: {error}") from error
        answers.append((probe.text, pieces.decode(rules.without_prefix(ids, probe.target))))
    if not any(answer for _, answer in answers):
        raise VerificationError(
            f"the model answers none of {len(answers)} sentences with text: the tokenizer or "
            "the vocabulary is another model's"
        )
    return answers
