# SPDX-License-Identifier: Apache-2.0
"""Sentences as a speech recognizer with errors would give them. Equal seeds give equal updates.

Each word comes when it is spoken. A word may first be misheard (a character is missing, or it
is another word that was said before) and is put right one or two words later. What was said so
far has no punctuation at its end; it comes with the final.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ct2_triton.live.updates import SegmentUpdate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LONGEST_DOUBT_WORDS = 2
_PUNCTUATION = ".,;:!?"


class RecognizerSimulator:
    """One speaker."""

    def __init__(
        self,
        speaker: str,
        seed: int,
        *,
        words_per_s: float = 2.5,
        error_rate: float = 0.15,
        pause_s: float = 0.6,
        says_stable: bool = False,
        lower_case: bool = False,
    ) -> None:
        """Start a speaker at a random time within the first two seconds.

        Args:
            speaker: Start of the segments' names.
            seed: Equal seeds give equal updates.
            words_per_s: Words spoken in a second.
            error_rate: Share of words that are misheard first.
            pause_s: Silence between two sentences.
            says_stable: Whether updates name their stable part: all but the last two words.
            lower_case: Whether there are no capitals before the final.
        """
        self._speaker = speaker
        self._rng = random.Random(f"{speaker}/{seed}")
        self._word_s = 1 / words_per_s
        self._error_rate = error_rate
        self._pause_s = pause_s
        self._says_stable = says_stable
        self._case = str.lower if lower_case else str
        self._time = self._rng.uniform(0, 2)

    def updates(self, sentences: Sequence[str], seconds: float) -> Iterator[SegmentUpdate]:
        """Speak sentences, none of which begins after `seconds`.

        Args:
            sentences: What to say.
            seconds: Length of the event.

        Yields:
            The updates, with their times.
        """
        for number, sentence in enumerate(sentences):
            if self._time >= seconds:
                return
            yield from self._sentence(f"{self._speaker}-{number}", sentence)
            self._time += self._pause_s

    def _sentence(self, segment: str, sentence: str) -> Iterator[SegmentUpdate]:
        words = sentence.split()
        doubts: dict[int, tuple[str, int]] = {}  # what is heard there, and up to which word
        for end in range(1, len(words) + 1):
            self._time += self._word_s * self._rng.uniform(0.6, 1.4)
            if self._rng.random() < self._error_rate:
                until = end + self._rng.randint(1, _LONGEST_DOUBT_WORDS)
                doubts[end - 1] = self._misheard(words, end - 1), until
            heard = [
                doubts[i][0] if i in doubts and end < doubts[i][1] else self._case(words[i])
                for i in range(end)
            ]
            heard[-1] = heard[-1].rstrip(_PUNCTUATION) or heard[-1]
            text, stable = " ".join(heard), None
            if self._says_stable:
                stable = len(" ".join(heard[:-_LONGEST_DOUBT_WORDS]))
            yield SegmentUpdate(segment, text, stable_chars=stable, time=round(self._time, 3))
        self._time += 0.5 * self._word_s
        yield SegmentUpdate(segment, sentence, final=True, time=round(self._time, 3))

    def _misheard(self, words: list[str], position: int) -> str:
        word = self._case(words[position])
        if position and self._rng.random() < 0.5:
            return self._case(self._rng.choice(words[:position]))
        cut = self._rng.randrange(len(word))
        return word[:cut] + word[cut + 1 :] or "uh"
