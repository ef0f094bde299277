# SPDX-License-Identifier: Apache-2.0
"""What a translation call gives back."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hypothesis:
    """One answer of the model for one sentence.

    Attributes:
        text: The translated text.
        ids: Its token ids, without the target prefix; none where the model gives text.
        score: Log-probability as CTranslate2 gives it, or None when scores were not asked for. Of
            several sentences of a model that takes text, their mean, weighted by tokens.
        finish_reason: "stop" (the model ended it), "length" (cut by the length limit), "empty"
            (there was nothing to translate), "cut" (the input was cut by an option), "split" (a
            sentence was too long and was cut in parts), or None when the model's config declares
            no such output. Of several sentences, the worst.
        alignments: For each of `ids`, the position in the source ids with most of its attention; -1
            for forced ids. None where `return_alignments` was not asked for, and of all hypotheses
            but the best.
        alignment_ranges: The same of a model that takes text, in bytes of UTF-8: begin and end of
            the source of a token in the source text, then of the token in `text`.
    """

    text: str
    ids: tuple[int, ...] = ()
    score: float | None = None
    finish_reason: str | None = None
    alignments: tuple[int, ...] | None = None
    alignment_ranges: tuple[tuple[int, int, int, int], ...] | None = None


@dataclass(frozen=True)
class Translation:
    """The translation of one sentence into one language.

    Attributes:
        source_text: The sentence as it was given.
        source: Its language, as the model's own code, or as it was named where the model takes
            text; None for a model without languages.
        target: The language of the answer, named as `source` is.
        hypotheses: The answers, best first; at least one.
        unknown_tokens: How many tokens of the sentence the model's vocabulary does not have. The
            model sees a placeholder for each, so the words there are lost or guessed. Not counted
            where the model takes text.
        draft_tokens_kept: How many tokens of `draft_ids` took no step of their own on the server;
            None without a draft, or where the model takes none.
        version: Version of the model that answered; "" where nothing was asked.
    """

    source_text: str
    source: str | None
    target: str | None
    hypotheses: tuple[Hypothesis, ...]
    unknown_tokens: int = 0
    draft_tokens_kept: int | None = None
    version: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """The best translated text."""
        return self.hypotheses[0].text

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids of the best answer, without the target prefix."""
        return self.hypotheses[0].ids

    @property
    def score(self) -> float | None:
        """Score of the best answer, if scores were asked for."""
        return self.hypotheses[0].score

    @property
    def alignments(self) -> tuple[int, ...] | None:
        """Where each id of the best answer comes from, if that was asked for."""
        return self.hypotheses[0].alignments

    @property
    def alignment_ranges(self) -> tuple[tuple[int, int, int, int], ...] | None:
        """The same in bytes of both texts, of a model that takes text."""
        return self.hypotheses[0].alignment_ranges

    @property
    def finish_reason(self) -> str | None:
        """Why the best answer ended."""
        return self.hypotheses[0].finish_reason


def empty_translation(source_text: str, source: str | None, target: str | None) -> Translation:
    """Return the result for a sentence that holds nothing to translate."""
    return Translation(source_text, source, target, (Hypothesis("", finish_reason="empty"),))


@dataclass(frozen=True)
class TextPart:
    """A part of a translation: what follows the part before in this language.

    Attributes:
        text: The text, in whole characters.
        index: Which of the call's target languages it belongs to, from 0.
        target: That language, as the model's own code; None for a model without languages.
        finish_reason: On the last part of a language why its translation ended, as in
            `Hypothesis.finish_reason`, or "split": a sentence was cut into several. Else None.
    """

    text: str
    index: int
    target: str | None
    finish_reason: str | None = None
