# SPDX-License-Identifier: Apache-2.0
"""How interim translations become captions: one small class per method, without input or output.

A guess is an interim translation: that of a segment's text so far. A policy says from which draft
the next guess starts, and which part of it is shown. The final translation starts from none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ct2_triton.words import (
    begins_with,
    common_words,
    covered_start,
    join_words,
    split_words,
    word_starts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Tokens = Sequence[Any]
    """Ids of a model of token ids, words of one that takes text."""
    Decode = Callable[[Tokens], str]
    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation


@dataclass(frozen=True)
class Guess:
    """A translation of what was said so far.

    Attributes:
        text: The translation.
        tokens: Its token ids, or its words where the model takes text.
        behind: For each token, how many words of the source follow the one that it attends to;
            None where the server does not say it.
    """

    text: str
    tokens: tuple[Any, ...] = ()
    behind: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Draft:
    """What a guess starts from.

    Attributes:
        start: Tokens of the answer's start, which is forced.
        rest: Tokens after it that bias the answer, where the model takes drafts.
        bias: How much it does, above 0 and below 1 (`draft_bias`).
    """

    start: tuple[Any, ...] = ()
    rest: tuple[Any, ...] = ()
    bias: float = 0.0


@dataclass(frozen=True)
class Shown:
    """What is shown: `committed` never changes any more, `tail` may."""

    committed: str = ""
    tail: str = ""


class Policy(Protocol):
    """One segment in one language.

    Attributes:
        guesses: Whether text is translated before its segment is final.
        attends: Whether it has a use for `Guess.behind`.
    """

    guesses: bool
    attends: bool

    def draft(self) -> Draft:
        """Say what the next guess starts from."""
        ...

    def take(self, guess: Guess) -> Shown:
        """Take the next guess and say what to show."""
        ...

    def held(self, guess: Guess) -> Shown:
        """Say what to show of a guess that must not be committed."""
        ...

    def completion(self, final: Guess) -> Draft | None:
        """Say what the final's caption starts from, where viewers have seen another start.

        None: the final takes the place of all that was shown.
        """
        ...


class FinalOnly:
    """Mode "final": nothing is shown before the segment is final."""

    guesses = False
    attends = False

    def draft(self) -> Draft:
        """Start from nothing."""
        return Draft()

    def take(self, guess: Guess) -> Shown:
        """Show nothing."""
        return Shown()

    def held(self, guess: Guess) -> Shown:
        """Show nothing."""
        return Shown()

    def completion(self, final: Guess) -> None:
        """Let the final take the place of all that was shown."""


class Agreement:
    """Commit the words that the last guesses agree on; each guess is free.

    (Local agreement; the words of a segment's end often change place, so most of it settles late.)
    """

    guesses = True
    attends = False

    def __init__(
        self,
        *,
        guesses_that_agree: int = 2,
        hold: int = 0,
        tail_mask: int | None = None,
        bias: float = 0.0,
    ) -> None:
        """Start a segment.

        Args:
            guesses_that_agree: How many guesses in a row must agree on a word.
            hold: Words at the end of what they agree on that are not committed yet.
            tail_mask: Words at the end of a guess that are not shown as tail; None: no tail.
            bias: Above 0, each guess is biased towards the one before it (`draft_bias`).
        """
        self._agree = guesses_that_agree
        self._hold = hold
        self._mask = tail_mask
        self._bias = bias
        self._guesses: list[list[str]] = []
        self._last = Guess("")
        self._committed: list[str] = []

    def draft(self) -> Draft:
        """Start from nothing, or with a bias towards the last guess."""
        return Draft((), self._last.tokens, self._bias) if self._bias > 0 else Draft()

    def take(self, guess: Guess) -> Shown:
        """Commit what the guesses agree on, and show what may be shown of the rest."""
        settled, known = self.agreed(guess), len(self._committed)
        if common_words(settled, self._committed) == known:
            self._committed += settled[known:]
        committed = join_words(self._committed)
        return Shown(committed, self._tail(split_words(guess.text), committed))

    def held(self, guess: Guess) -> Shown:
        """Show what may be shown of it, and let it agree with no other."""
        committed = join_words(self._committed)
        return Shown(committed, self._tail(split_words(guess.text), committed))

    def agreed(self, guess: Guess, most: int | None = None) -> list[str]:
        """Take the next guess, and give the words of its start that the last ones agree on.

        `most` is their number in place of all but those that are held.
        """
        words = split_words(guess.text)
        self._last = guess
        self._guesses = [*self._guesses, words][-self._agree :]
        if len(self._guesses) < self._agree:
            return []
        agreed = min(common_words(words, other) for other in self._guesses)
        return words[: max(0, agreed - self._hold) if most is None else min(agreed, most)]

    def completion(self, final: Guess) -> None:
        """Let the final take the place of all that was shown."""

    def _tail(self, words: list[str], committed: str) -> str:
        known = len(self._committed)
        if self._mask is None or common_words(words, self._committed) < known:
            return ""
        text = join_words([*self._committed, *words[known : max(known, len(words) - self._mask)]])
        return text[len(committed) :]


class Append:
    """Mode "append": viewers see additions only.

    What guesses agree on is committed, up to the first word aligned to the end of what was said
    (AlignAtt, arXiv 2305.11408): more words would change it. Where the server gives no
    alignments, the last ones are held. Where guesses no longer begin with what is committed,
    the commit goes on where it fits them best. Where the free final does not begin with what is
    committed, another is forced to, with a bias towards the rest of the free one. The free final
    is the transcript in any case.
    """

    guesses = True

    def __init__(
        self,
        decode: Decode,
        *,
        guesses_that_agree: int = 3,
        hold: int = 4,
        guard: int | None = 2,
        forces: bool = False,
        bias: float = 0.6,
    ) -> None:
        """Start a segment.

        Args:
            decode: Makes text of tokens.
            guesses_that_agree: How many guesses in a row must agree on a word.
            hold: Words at the end of what they agree on that are not committed yet, where the
                server gives no alignments.
            guard: Words at the end of the source; what is aligned to them is not committed yet.
                None: words at the end of the guess are held instead.
            forces: Whether a guess is forced to begin with what is committed. Forced guesses agree
                more, so more is committed, and earlier, also what is wrong.
            bias: How strongly what viewers see at the end is biased towards the end of the final.
        """
        self._decode = decode
        self._agreement = Agreement(guesses_that_agree=guesses_that_agree, hold=hold)
        self._guard = guard
        self.attends = guard is not None
        self._forces = forces
        self._bias = bias
        self._start: tuple[Any, ...] = ()
        self._committed = ""

    def draft(self) -> Draft:
        """Start from nothing, or from what is committed."""
        return Draft(self._start if self._forces else ())

    def take(self, guess: Guess) -> Shown:
        """Commit what guesses agree on; nothing else is shown."""
        words = self._agreement.agreed(guess, self._words_before_guard(guess))
        if not begins_with(guess.text, self._committed):
            words = words[:-1]  # a guess that changed its mind is held back by one more word
        start, settled = covered_start(guess.text, self._committed), join_words(words)
        if len(settled) > len(start):
            self._append(guess, start, settled)
        return Shown(self._committed)

    def held(self, guess: Guess) -> Shown:
        """Show nothing of it."""
        return Shown(self._committed)

    def completion(self, final: Guess) -> Draft | None:
        """Start from what is committed, with a bias towards the rest of the final."""
        if begins_with(final.text, self._committed):
            return None
        covered = covered_start(final.text, self._committed)
        start = tokens_of_start(final.tokens, covered, self._decode)
        return Draft(self._start, () if start is None else final.tokens[len(start) :], self._bias)

    def _append(self, guess: Guess, start: str, settled: str) -> None:
        """Commit what is settled after the committed start."""
        first = tokens_of_start(guess.tokens, start, self._decode)
        whole = tokens_of_start(guess.tokens, settled, self._decode)
        if first is None or whole is None:  # no token ends there
            return
        more = whole[len(first) :]
        if self._start and more and not isinstance(more[0], type(self._start[0])):
            return  # of a model of the other kind, which has taken its place
        tokens = self._start + more
        text = self._decode(tokens).rstrip()
        if begins_with(text, self._committed):
            self._start, self._committed = tokens, text

    def _words_before_guard(self, guess: Guess) -> int | None:
        """Count the whole words before the first token that is aligned to the end of the source."""
        if guess.behind is None or self._guard is None:
            return None
        forced = len(self._start) if self._forces else 0
        guard = self._guard
        looks = (i for i, left in enumerate(guess.behind) if i >= forced and left < guard)
        start = self._decode(guess.tokens[: next(looks, len(guess.tokens))])
        return common_words(split_words(start), split_words(guess.text))


def tokens_of_start(tokens: Tokens, start: str, decode: Decode) -> tuple[Any, ...] | None:
    """Find the fewest first tokens that make the start of a text; None where none ends there."""
    # Shortest: white space may be a token of its own, and belongs to what follows it.
    for length in range(len(tokens) + 1):
        if decode(tokens[:length]).rstrip() == start:
            return tuple(tokens[:length])
    return None


_KEPT_TEXTS = 64  # a text goes into several languages
NOT_IN_TEXT = 1 << 20
"""Words after that of a token which attends to no word, but to the language before the text."""


class SourceAttention:
    """Find the words of the source that tokens of an answer attend to."""

    def __init__(self, client: TranslationClient) -> None:
        """Take the client that asked for the answers."""
        self._client = client
        self._words: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def words_behind(self, answer: Translation) -> tuple[int, ...] | None:
        """Count the words of the text after the one that each token of an answer attends to.

        It is 0 for the last word, for what follows the text, and for a word of a model that takes
        text which attends to nothing of it; None where the server did not say any position.
        """
        if answer.alignment_ranges is not None:
            return _words_behind(answer) if answer.alignment_ranges else None
        alignments = answer.alignments
        if alignments is None or not any(position >= 0 for position in alignments):
            return None
        words = self._words_of_ids(answer.source_text)
        first, last = self._first_position(answer), words[-1] if words else 0

        def behind(position: int) -> int:
            if position < first:
                return NOT_IN_TEXT
            return last - words[position - first] if position < first + len(words) else 0

        return tuple(map(behind, alignments))

    def _words_of_ids(self, text: str) -> tuple[int, ...]:
        """Give for each id of a text the number of its word, from 1."""
        if text not in self._words:
            tokenizer = self._client.tokenizer
            ids = tokenizer.encode(text).ids
            counts = (len(split_words(tokenizer.decode(ids[: i + 1]))) for i in range(len(ids)))
            self._words[text] = tuple(counts)
            while len(self._words) > _KEPT_TEXTS:
                self._words.popitem(last=False)
        return self._words[text]

    def _first_position(self, answer: Translation) -> int:
        """Count the ids in front of the text in the row of source ids."""
        tokenizer = self._client.tokenizer
        rules = tokenizer.rules
        source = tokenizer.source(answer.source)
        (target,) = tokenizer.targets(answer.target)
        mark = -1  # no id
        return rules.input_ids([mark], source, target).index(mark)


def _words_behind(answer: Translation) -> tuple[int, ...]:
    """Count the same for each word of an answer: of its parts the smallest number."""
    sources, words = word_starts(answer.source_text), word_starts(answer.text)
    behind: dict[int, int] = {}
    for source, _, target, _ in answer.alignment_ranges or ():
        word = bisect_right(words, target) - 1
        left = len(sources) - bisect_right(sources, source)
        behind[word] = min(behind.get(word, left), left)
    return tuple(behind.get(word, 0) for word in range(len(words)))
