# SPDX-License-Identifier: Apache-2.0
"""How guesses become captions: one small class for each way, without input or output.

A guess is the translation of a segment's text so far. A policy says what the next guess is given
to start from, and what of it is shown. The final translation never starts from anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ct2_triton.live.words import common_words, join_words, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ct2_triton.client.requests import OptionValue

    Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Guess:
    """A translation of what was said so far.

    Attributes:
        text: The translation.
        ids: Its token ids.
    """

    text: str
    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Draft:
    """What a guess starts from.

    Attributes:
        ids: Token ids of the answer's start.
        options: Decoding options that say what the start means; none: it is forced.
    """

    ids: tuple[int, ...] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """What is shown: `committed` never changes any more, `tail` may."""

    committed: str = ""
    tail: str = ""


class Policy(Protocol):
    """One segment in one language.

    Attributes:
        guesses: Whether text is translated before its segment is final.
        appends: Whether viewers see additions only, the final included.
    """

    guesses: bool
    appends: bool

    def draft(self) -> Draft:
        """Says what the next guess starts from."""
        ...

    def take(self, guess: Guess) -> Shown:
        """Takes the next guess and says what to show."""
        ...


class FinalOnly:
    """Mode "final": nothing is shown before the segment is final."""

    guesses = False
    appends = False

    def draft(self) -> Draft:
        """Starts from nothing."""
        return Draft()

    def take(self, guess: Guess) -> Shown:
        """Shows nothing."""
        return Shown()


class Agreement:
    """Commits the words that the last guesses agree on; each guess is free.

    (Local agreement; the words of a segment's end often change place, so most of it settles late.)
    """

    guesses = True
    appends = False

    def __init__(
        self,
        *,
        guesses_that_agree: int = 2,
        hold: int = 0,
        tail_mask: int | None = None,
        bias: float = 0.0,
    ) -> None:
        """Starts a segment.

        Args:
            guesses_that_agree: How many guesses in a row must agree on a word.
            hold: Words at the end of what they agree on that are not committed yet.
            tail_mask: Words at the end of a guess that are not shown as tail; None: no tail.
            bias: Above 0, each guess leans towards the one before it (`prefix_bias_beta`).
        """
        self._agree = guesses_that_agree
        self._hold = hold
        self._mask = tail_mask
        self._bias = bias
        self._guesses: list[list[str]] = []
        self._last = Guess("")
        self._committed: list[str] = []

    def draft(self) -> Draft:
        """Starts from nothing, or leans towards the last guess."""
        if self._bias <= 0 or not self._last.ids:
            return Draft()
        return Draft(self._last.ids, {"prefix_bias_beta": self._bias})

    def take(self, guess: Guess) -> Shown:
        """Commits what the guesses agree on, and shows what may be shown of the rest."""
        words = split_words(guess.text)
        self._last = guess
        self._guesses = [*self._guesses, words][-self._agree :]
        self._commit(words)
        committed = join_words(self._committed)
        return Shown(committed, self._tail(words, committed))

    def _commit(self, words: list[str]) -> None:
        if len(self._guesses) < self._agree:
            return
        agreed = min(common_words(words, other) for other in self._guesses)
        settled = words[: max(0, agreed - self._hold)]
        known = len(self._committed)
        if common_words(settled, self._committed) == known:
            self._committed += settled[known:]

    def _tail(self, words: list[str], committed: str) -> str:
        known = len(self._committed)
        if self._mask is None or common_words(words, self._committed) < known:
            return ""
        text = join_words([*self._committed, *words[known : len(words) - self._mask]])
        return text[len(committed) :]


class Append:
    """Mode "append": commits what two guesses agree on, and forces it in the next guess.

    The final is forced from it only where the free final does not begin with it; the free final
    is the transcript in any case.
    """

    guesses = True
    appends = True

    def __init__(self, decode: Decode, *, hold: int = 2) -> None:
        """Starts a segment.

        Args:
            decode: Makes text of token ids.
            hold: Words at the end of what two guesses agree on that are not committed yet.
        """
        self._decode = decode
        self._agreement = Agreement(hold=hold)
        self._ids: tuple[int, ...] = ()
        self._committed = ""

    def draft(self) -> Draft:
        """Starts from what is committed."""
        return Draft(self._ids)

    def take(self, guess: Guess) -> Shown:
        """Commits what two guesses agree on; nothing else is shown."""
        shown = self._agreement.take(guess)
        if shown.committed != self._committed:
            ids = ids_of_start(guess.ids, shown.committed, self._decode)
            if ids is None:  # no token ends there: commit nothing that cannot be forced
                return Shown(self._committed)
            self._ids, self._committed = ids, shown.committed
        return Shown(self._committed)


def ids_of_start(ids: Sequence[int], start: str, decode: Decode) -> tuple[int, ...] | None:
    """Finds the ids that make the start of a text.

    Args:
        ids: Ids of the text.
        start: The start.
        decode: Makes text of ids.

    Returns:
        The longest run of ids from the front that makes the start; None where no id ends there.
    """
    # Longest: white space may be an id of its own, and what follows it must not repeat it.
    for length in range(len(ids), -1, -1):
        if decode(ids[:length]).rstrip() == start:
            return tuple(ids[:length])
    return None
