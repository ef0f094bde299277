# SPDX-License-Identifier: Apache-2.0
"""Results of translation calls."""

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
    """The verdict on a translation that was requested with `quality=True` or `on_doubt`.

    Attributes:
        quality: 0 to 1; below 0.5 exactly when a flag is raised.
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
            UnexpectedResponseError: The flags are not such a list.
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
        """Return the verdict on a text from those of its parts: the lowest quality, all flags."""
        flags, missing = (
            tuple(dict.fromkeys(chain.from_iterable(names)))
            for names in (
                (one.flags for one in verdicts),
                (one.not_computed for one in verdicts),
            )
        )
        return cls(min((one.quality for one in verdicts), default=1.0), flags, missing)

    def to_dict(self) -> dict[str, object]:
        """Return the verdict for JSON, with `not_computed` only if it is not empty."""
        members: dict[str, object] = {"quality": round(self.quality, 4), "flags": [*self.flags]}
        return {**members, "not_computed": [*self.not_computed]} if self.not_computed else members


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of the model for a sentence.

    Attributes:
        text: The translated text.
        ids: Its token IDs, without the target prefix; empty for a text model.
        score: Log-probability as CTranslate2 defines it, or None if scores were not requested. For
            several sentences of a text model, their mean, weighted by tokens.
        finish_reason: "stop" (the model ended it), "length" (cut by the length limit), "empty"
            (there was nothing to translate), "cut" (the input was cut by an option), "split" (a
            sentence was too long and was cut into parts), or None if the model's configuration has
            no such output. For several sentences, the worst.
        alignments: For each of `ids`, the source position with most of its attention; -1 for IDs of
            the prefix. None without `return_alignments`, and for all hypotheses but the best.
        alignment_ranges: Alignments of a text model, in bytes of UTF-8: begin and end of the
            aligned part of the source text, then of the token in `text`.
        verdict: The verdict on the translation, for the best hypothesis. None without `quality` and
            `on_doubt`.
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
        source_text: The sentence.
        source: Its language, as the model's own code, or for a text model as the caller named it;
            None for a model without languages.
        target: The language of the translation, named like `source`.
        hypotheses: The hypotheses, best first; at least one.
        unknown_tokens: Number of tokens of the sentence that the vocabulary does not have. The
            model gets a placeholder for each, so these words are lost or invented. Not counted for
            text models.
        draft_tokens_kept: Number of draft tokens that needed no decode step of their own; None
            without a draft, and for text models.
        version: Version of the model that answered; "" if no request was sent.
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
        """Token IDs of the best hypothesis, without the target prefix."""
        return self.hypotheses[0].ids

    @property
    def score(self) -> float | None:
        """Score of the best hypothesis, if scores were requested."""
        return self.hypotheses[0].score

    @property
    def alignments(self) -> tuple[int, ...] | None:
        """Source position of each ID of the best hypothesis, if requested."""
        return self.hypotheses[0].alignments

    @property
    def alignment_ranges(self) -> tuple[tuple[int, int, int, int], ...] | None:
        """Alignments of a text model, in bytes of both texts, if requested."""
        return self.hypotheses[0].alignment_ranges

    @property
    def finish_reason(self) -> str | None:
        """Why the best hypothesis ended."""
        return self.hypotheses[0].finish_reason

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the translation, if requested."""
        return self.hypotheses[0].verdict


def empty_translation(
    source_text: str, source: str | None, target: str | None, *, judged: bool = False
) -> Translation:
    """Return the result for a sentence with nothing to translate.

    Args:
        source_text: The sentence.
        source: Its language.
        target: Target language.
        judged: Whether a verdict was requested; it has no flags.
    """
    nothing = Hypothesis("", finish_reason="empty", verdict=Verdict(1.0) if judged else None)
    return Translation(source_text, source, target, (nothing,))


@dataclass(frozen=True)
class TextPart:
    """A part of a translation, which follows the previous part in its language.

    Attributes:
        text: The text, in whole characters.
        index: Index in the target languages of the call, from 0.
        target: That language, as the model's own code; None for a model without languages.
        finish_reason: In the last part of a language, why its translation ended, as in
            `Hypothesis.finish_reason`. Else None.
        verdict: In the last part of a language, the verdict on its translation, with `quality` or
            `on_doubt`. Else None.
    """

    text: str
    index: int
    target: str | None
    finish_reason: str | None = None
    verdict: Verdict | None = None
