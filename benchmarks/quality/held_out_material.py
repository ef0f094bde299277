# SPDX-License-Identifier: Apache-2.0
"""What rows of the held-out set are made of; see held_out.py."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SEED = 36
KEYS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
PUNCTUATION = list(".,!?;:'\"()[]/\\*#@&%~^_+=<>|-") + list("…–—¿¡«»„“。、！？・")
HOMOGLYPHS = str.maketrans("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ")
OPEN_ENDS = ["", "", ",", " -", "...", "…", " —"]
# Left alone by unseen_names, which replaces words with a capital letter inside a sentence.
CALENDAR = {
    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January"),
    *("February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December", "I"),
}


class Pair(NamedTuple):
    """A clean sentence and its translation into `target`."""

    source: str
    target: str
    translation: str


class Fault(NamedTuple):
    """An output, and the flags that it must get and may get besides."""

    pair: Pair  # what was translated, and the translation as it should be
    translation: str
    flags: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


@dataclass
class Material:
    """What rows are made of."""

    rng: random.Random
    sentences: list[str]
    pairs: list[Pair]
    text: Mapping[str, Any]  # held_out_text.yaml
    by_source: dict[str, dict[str, str]] = field(default_factory=dict)  # source, target: text

    def __post_init__(self) -> None:
        for pair in self.pairs:
            self.by_source.setdefault(pair.source, {})[pair.target] = pair.translation

    def sentence(self, words: int = 1) -> str:
        """A clean sentence of at least `words` words."""
        return self.rng.choice([s for s in self.sentences if len(s.split()) >= words])

    def pair(self, words: int = 1) -> Pair:
        """A pair whose translation has at least `words` words and is no copy."""
        while True:
            pair = self.rng.choice(self.pairs)
            if len(pair.translation.split()) >= words and not alike(pair.source, pair.translation):
                return pair

    def unrelated(self, *pairs: Pair) -> Pair:
        """A pair of the first one's language that shares no content word with any of them."""
        taken = set().union(*(content(p.source) | content(p.translation) for p in pairs))
        choices = [p for p in self.pairs if p.target == pairs[0].target]
        while True:
            pair = self.rng.choice(choices)
            own = content(pair.source) | content(pair.translation)
            if own and not own & taken and pair.source not in {p.source for p in pairs}:
                return pair


Row = tuple[str, str | None, str]  # text, base, detail
InputMaker = Callable[[Material], Row]
FaultMaker = Callable[[Material], "Fault | None"]


def words_of(text: str) -> list[str]:
    """Words in lower case, without punctuation."""
    return re.findall(r"\w+", text.lower())


def content(text: str) -> set[str]:
    """Words long enough to carry content."""
    return {word for word in words_of(text) if len(word) > 4}


def alike(first: str, second: str) -> bool:
    """Whether half of the words of the shorter text are in the other one."""
    one, two = set(words_of(first)), set(words_of(second))
    return len(one & two) * 2 >= min(len(one), len(two))


def bare(text: str) -> str:
    """Lower case without the punctuation outside of words."""
    return " ".join(w for w in (t.strip(".,!?;:¿¡") for t in text.lower().split()) if w)


def uncapped(text: str) -> str:
    """Without the punctuation at its end."""
    return text.rstrip(" .!?")


def put(rng: random.Random, words: list[str], extra: str, first: int = 1) -> list[str]:
    """`words` with `extra` at a random place from `first` on, not at the end."""
    at = rng.randint(first, max(first, len(words) - 1))
    return [*words[:at], extra, *words[at:]]
