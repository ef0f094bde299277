# SPDX-License-Identifier: Apache-2.0
"""How interim translations become captions: one small class per method, without input or output.

An interim translation is that of a segment's text so far, before its final. A policy says from
which draft the next one starts, and which part of it is shown. The final starts from no draft.
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
    """Token IDs of a token-ID model, or words of a text model."""
    Decode = Callable[[Tokens], str]
    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation


@dataclass(frozen=True)
class Interim:
    """An interim translation: that of a segment's text so far.

    Attributes:
        text: The translation.
        tokens: Its token IDs, or its words if the model takes text.
        words_after: For each token, the number of source words after the one that it is aligned
            with; None if the server returned no alignments.
    """

    text: str
    tokens: tuple[Any, ...] = ()
    words_after: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Draft:
    """What an interim translation starts from.

    Attributes:
        start: Tokens with which the translation must begin.
        rest: Tokens after them towards which the translation is biased, if the model takes drafts.
        bias: The strength of that bias, above 0 and below 1 (`draft_bias`).
    """

    start: tuple[Any, ...] = ()
    rest: tuple[Any, ...] = ()
    bias: float = 0.0


@dataclass(frozen=True)
class Shown:
    """What viewers see: `committed` does not change any more, `tail` may."""

    committed: str = ""
    tail: str = ""


class Policy(Protocol):
    """What is shown of one segment in one language.

    Attributes:
        has_interims: Whether text is translated before its segment is final.
        attends: Whether it uses `Interim.words_after`.
    """

    has_interims: bool
    attends: bool

    def draft(self) -> Draft:
        """Return what the next interim starts from."""
        ...

    def take(self, interim: Interim) -> Shown:
        """Take the next interim and say what to show."""
        ...

    def held(self, interim: Interim) -> Shown:
        """Return what to show of an interim translation that must not be committed."""
        ...

    def completion(self, final: Interim) -> Draft | None:
        """Return what the final's caption starts from if viewers have seen another start.

        None: the final replaces all that was shown.
        """
        ...


class FinalOnly:
    """Mode "final": nothing is shown before the segment is final."""

    has_interims = False
    attends = False

    def draft(self) -> Draft:
        """Start from nothing."""
        return Draft()

    def take(self, interim: Interim) -> Shown:
        """Show nothing."""
        return Shown()

    def held(self, interim: Interim) -> Shown:
        """Show nothing."""
        return Shown()

    def completion(self, final: Interim) -> None:
        """Let the final replace all that was shown."""


class Agreement:
    """Commit the words on which the last interim translations agree (local agreement).

    No translation is forced. The last words of a segment often change their order, so most of them
    are committed late.
    """

    has_interims = True
    attends = False

    def __init__(
        self,
        *,
        agreeing_interims: int = 2,
        hold: int = 0,
        tail_mask: int | None = None,
        bias: float = 0.0,
    ) -> None:
        """Start a segment.

        Args:
            agreeing_interims: How many interim translations in a row must agree on a word.
            hold: Number of words at the end of the agreement that are not committed yet.
            tail_mask: Number of words at the end that are not shown as tail; None: no tail.
            bias: Above 0, each translation is biased towards the previous one (`draft_bias`).
        """
        self._agree = agreeing_interims
        self._hold = hold
        self._mask = tail_mask
        self._bias = bias
        self._recent: list[list[str]] = []
        self._last = Interim("")
        self._committed: list[str] = []

    def draft(self) -> Draft:
        """Start from nothing, or with a bias towards the previous translation."""
        return Draft((), self._last.tokens, self._bias) if self._bias > 0 else Draft()

    def take(self, interim: Interim) -> Shown:
        """Commit the words that agree, and show the rest up to the mask as tail."""
        settled, known = self.agreed(interim), len(self._committed)
        if common_words(settled, self._committed) == known:
            self._committed += settled[known:]
        committed = join_words(self._committed)
        return Shown(committed, self._tail(split_words(interim.text), committed))

    def held(self, interim: Interim) -> Shown:
        """Show it up to the mask; it counts for no agreement."""
        committed = join_words(self._committed)
        return Shown(committed, self._tail(split_words(interim.text), committed))

    def agreed(self, interim: Interim, most: int | None = None) -> list[str]:
        """Take the next interim, and return its first words, on which the last interims agree.

        `most` limits their number, instead of holding back the last ones.
        """
        words = split_words(interim.text)
        self._last = interim
        self._recent = [*self._recent, words][-self._agree :]
        if len(self._recent) < self._agree:
            return []
        agreed = min(common_words(words, other) for other in self._recent)
        return words[: max(0, agreed - self._hold) if most is None else min(agreed, most)]

    def completion(self, final: Interim) -> None:
        """Let the final replace all that was shown."""

    def _tail(self, words: list[str], committed: str) -> str:
        known = len(self._committed)
        if self._mask is None or common_words(words, self._committed) < known:
            return ""
        text = join_words([*self._committed, *words[known : max(known, len(words) - self._mask)]])
        return text[len(committed) :]


class Append:
    """Mode "append": viewers see additions only.

    The words on which interim translations agree are committed, up to the first one that is aligned
    with the end of the source (AlignAtt, arXiv 2305.11408), because more source words would change
    it. If the server returns no alignments, the last words of the agreement are held back instead.
    If an interim translation no longer begins with the committed text, words are appended where
    the two fit best. If the unconstrained final does not begin with the committed text, another
    final is forced to, with a bias towards the rest of the first one. The unconstrained final is
    always the transcript.
    """

    has_interims = True

    def __init__(
        self,
        decode: Decode,
        *,
        agreeing_interims: int = 3,
        hold: int = 4,
        guard: int | None = 2,
        forces: bool = False,
        bias: float = 0.6,
    ) -> None:
        """Start a segment.

        Args:
            decode: Makes text of tokens.
            agreeing_interims: How many interim translations in a row must agree on a word.
            hold: Number of words at the end of the agreement that are not committed yet, if the
                server returns no alignments.
            guard: Number of words at the end of the source; a word aligned with one of them is not
                committed yet. None: use `hold`.
            forces: Whether interim translations must begin with the committed text. They then agree
                more, so more is committed, and earlier, including mistakes.
            bias: How strongly the forced final is biased towards the rest of the first one.
        """
        self._decode = decode
        self._agreement = Agreement(agreeing_interims=agreeing_interims, hold=hold)
        self._guard = guard
        self.attends = guard is not None
        self._forces = forces
        self._bias = bias
        self._start: tuple[Any, ...] = ()
        self._committed = ""

    def draft(self) -> Draft:
        """Start from nothing, or from the committed text."""
        return Draft(self._start if self._forces else ())

    def take(self, interim: Interim) -> Shown:
        """Commit the words that agree; nothing else is shown."""
        words = self._agreement.agreed(interim, self._words_before_guard(interim))
        if not begins_with(interim.text, self._committed):
            words = words[:-1]  # it contradicts what is committed: hold one more word back
        start, settled = covered_start(interim.text, self._committed), join_words(words)
        if len(settled) > len(start):
            self._append(interim, start, settled)
        return Shown(self._committed)

    def held(self, interim: Interim) -> Shown:
        """Show nothing of it."""
        return Shown(self._committed)

    def completion(self, final: Interim) -> Draft | None:
        """Start from the committed text, with a bias towards the rest of the final."""
        if begins_with(final.text, self._committed):
            return None
        covered = covered_start(final.text, self._committed)
        start = tokens_of_start(final.tokens, covered, self._decode)
        return Draft(self._start, () if start is None else final.tokens[len(start) :], self._bias)

    def _append(self, interim: Interim, start: str, settled: str) -> None:
        """Commit the words of `settled` after `start`, which corresponds to the committed text."""
        first = tokens_of_start(interim.tokens, start, self._decode)
        whole = tokens_of_start(interim.tokens, settled, self._decode)
        if first is None or whole is None:  # no token ends there
            return
        more = whole[len(first) :]
        if self._start and more and not isinstance(more[0], type(self._start[0])):
            return  # the model was replaced by one of the other kind (token IDs, text)
        tokens = self._start + more
        text = self._decode(tokens).rstrip()
        if begins_with(text, self._committed):
            self._start, self._committed = tokens, text

    def _words_before_guard(self, interim: Interim) -> int | None:
        """Count the whole words before the first token aligned with the end of the source."""
        if interim.words_after is None or self._guard is None:
            return None
        forced = len(self._start) if self._forces else 0
        guard = self._guard
        after = enumerate(interim.words_after)
        unsettled = (i for i, words in after if i >= forced and words < guard)
        start = self._decode(interim.tokens[: next(unsettled, len(interim.tokens))])
        return common_words(split_words(start), split_words(interim.text))


def tokens_of_start(tokens: Tokens, start: str, decode: Decode) -> tuple[Any, ...] | None:
    """Find the fewest first tokens whose text is `start`; None if no token ends there."""
    # The fewest, because white space may be a token of its own and belongs to the next word.
    for length in range(len(tokens) + 1):
        if decode(tokens[:length]).rstrip() == start:
            return tuple(tokens[:length])
    return None


_KEPT_TEXTS = 64  # each text is translated into several languages
NOT_IN_TEXT = 1 << 20
"""Value of `words_after` for a token aligned with the language token before the text."""


class SourceAttention:
    """Find the source words with which the tokens of a translation are aligned."""

    def __init__(self, client: TranslationClient) -> None:
        """Take the client that sent the requests."""
        self._client = client
        self._words: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def words_after(self, answer: Translation) -> tuple[int, ...] | None:
        """Count, for each token of a translation, the source words after its aligned word.

        It is 0 for the last source word, for positions after the text, and for a word of a text
        model that is aligned with nothing; None if the server returned no alignments.
        """
        if answer.alignment_ranges is not None:
            return _words_after(answer) if answer.alignment_ranges else None
        alignments = answer.alignments
        if alignments is None or not any(position >= 0 for position in alignments):
            return None
        words = self._words_of_ids(answer.source_text)
        first, last = self._first_position(answer), words[-1] if words else 0

        def words_after(position: int) -> int:
            if position < first:
                return NOT_IN_TEXT
            return last - words[position - first] if position < first + len(words) else 0

        return tuple(map(words_after, alignments))

    def _words_of_ids(self, text: str) -> tuple[int, ...]:
        """Return the number of its word, from 1, for each ID of a text."""
        if text not in self._words:
            tokenizer = self._client.tokenizer
            ids = tokenizer.encode(text).ids
            counts = (len(split_words(tokenizer.decode(ids[: i + 1]))) for i in range(len(ids)))
            self._words[text] = tuple(counts)
            while len(self._words) > _KEPT_TEXTS:
                self._words.popitem(last=False)
        return self._words[text]

    def _first_position(self, answer: Translation) -> int:
        """Count the IDs before the text in `INPUT_IDS`."""
        tokenizer = self._client.tokenizer
        rules = tokenizer.rules
        source = tokenizer.source(answer.source)
        (target,) = tokenizer.targets(answer.target)
        mark = -1  # no id
        return rules.input_ids([mark], source, target).index(mark)


def _words_after(answer: Translation) -> tuple[int, ...]:
    """Count `words_after` for each word of a translation: the smallest of its parts."""
    sources, words = word_starts(answer.source_text), word_starts(answer.text)
    after: dict[int, int] = {}
    for source, _, target, _ in answer.alignment_ranges or ():
        word = bisect_right(words, target) - 1
        left = len(sources) - bisect_right(sources, source)
        after[word] = min(after.get(word, left), left)
    return tuple(after.get(word, 0) for word in range(len(words)))
