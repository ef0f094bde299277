# SPDX-License-Identifier: Apache-2.0
"""What a translation call gives back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from ct2_triton.errors import UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class Verdict:
    """What the server thinks of a translation that was asked for with `quality=True` or `on_doubt`.

    Attributes:
        quality: 0 to 1; below 0.5 exactly where a flag is raised.
        flags: Names of what looks wrong, such as "repeats" (docs/quality.md has all); a newer
            server may send others.
        not_computed: Names of the flags that the server could not compute for this translation.
    """

    quality: float
    flags: tuple[str, ...] = ()
    not_computed: tuple[str, ...] = ()

    @classmethod
    def read(cls, quality: float, flags: bytes) -> Verdict:
        """Read what a response holds.

        Args:
            quality: Value of the output `quality`.
            flags: Value of the output `quality_flags`: a JSON list of names, whose last entry may
                be an object with the list `not_computed`.

        Raises:
            UnexpectedResponseError: The flags are no such list.
        """
        try:
            entries = json.loads(flags)
            names = tuple(entry for entry in entries if isinstance(entry, str))
            further = [entry for entry in entries if isinstance(entry, dict)]
            missing = [name for entry in further for name in entry.get("not_computed", ())]
        except (ValueError, TypeError) as error:
            raise UnexpectedResponseError(
                f"quality_flags is {flags!r:.80}; a JSON list of names is needed"
            ) from error
        return cls(float(quality), names, tuple(missing))

    @classmethod
    def of_all(cls, verdicts: Collection[Verdict]) -> Verdict:
        """Give the verdict on a text whose parts were judged: the least quality, all flags."""
        flags, missing = (
            tuple(dict.fromkeys(chain.from_iterable(names)))
            for names in (
                (one.flags for one in verdicts),
                (one.not_computed for one in verdicts),
            )
        )
        return cls(min((one.quality for one in verdicts), default=1.0), flags, missing)

    def to_dict(self) -> dict[str, object]:
        """Give the verdict as JSON has it; `not_computed` only where there is something."""
        members: dict[str, object] = {"quality": round(self.quality, 4), "flags": [*self.flags]}
        return {**members, "not_computed": [*self.not_computed]} if self.not_computed else members


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
        verdict: What the server thinks of the translation, of the best hypothesis. None where
            neither `quality` nor `on_doubt` was asked for.
    """

    text: str
    ids: tuple[int, ...] = ()
    score: float | None = None
    finish_reason: str | None = None
    alignments: tuple[int, ...] | None = None
    alignment_ranges: tuple[tuple[int, int, int, int], ...] | None = None
    verdict: Verdict | None = None


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
            model sees a placeholder for each, so the words there are lost or invented. Not counted
            where the model takes text.
        draft_tokens_kept: How many tokens of a draft took no step of their own on the server;
            None without a draft, or where the model takes none or takes text.
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

    @property
    def verdict(self) -> Verdict | None:
        """What the server thinks of the translation, if `quality` was asked for."""
        return self.hypotheses[0].verdict


def empty_translation(
    source_text: str, source: str | None, target: str | None, *, judged: bool = False
) -> Translation:
    """Return the result for a sentence that holds nothing to translate.

    Args:
        source_text: The sentence.
        source: Its language.
        target: Language of the answer.
        judged: Whether `quality` was asked for: there is nothing wrong with it.
    """
    nothing = Hypothesis("", finish_reason="empty", verdict=Verdict(1.0) if judged else None)
    return Translation(source_text, source, target, (nothing,))


@dataclass(frozen=True)
class TextPart:
    """A part of a translation: what follows the part before in this language.

    Attributes:
        text: The text, in whole characters.
        index: Which of the call's target languages it belongs to, from 0.
        target: That language, as the model's own code; None for a model without languages.
        finish_reason: On the last part of a language why its translation ended, as in
            `Hypothesis.finish_reason`, or "split": a sentence was cut into several. Else None.
        verdict: On the last part of a language what the server thinks of its translation, where
            `quality` or `on_doubt` was asked for. Else None.
    """

    text: str
    index: int
    target: str | None
    finish_reason: str | None = None
    verdict: Verdict | None = None
