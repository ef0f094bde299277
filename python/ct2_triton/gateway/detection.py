# SPDX-License-Identifier: Apache-2.0
"""Detect the language of a text among the languages of the models, without a network.

A text is compared with all languages that the models know. A translation uses the most probable
language that they translate from, with its confidence among all.

py3langid estimates probabilities from characters. For a few words these are unreliable, so they
are multiplied with the frequency of the words in each language, from wordfreq's word lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.client.tasks import aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from ct2_triton.gateway.catalog import Catalog

_MOST_CHARACTERS = 2000  # more characters do not change the result, only the time
_SHORT = 40  # characters; a shorter text is detected together with the others of its request
_LEAST_PERCENT = 1.0
_LEAST_SHARE = 1e-10  # of py3langid, so that words can still decide for the language
_LETTERS = 0.5  # weight of py3langid's logarithms, which depend on each other and on the words
_FEW = 100  # characters; the words of a longer text are not looked up
_UNLISTED = 2.0  # how much less the words count for a language without a list than for the best one


@dataclass(frozen=True)
class Detection:
    """A detected language.

    Attributes:
        language: The language's code in the gateway.
        confidence: 0 (unknown) to 100.
    """

    language: str
    confidence: float


class Detector:
    """Detects the language of a text among given languages."""

    def __init__(self, languages: Sequence[str], find: Callable[[str], str | None]) -> None:
        """Load py3langid's model, once.

        If a text has no evidence, the answer is English or else the first language. `find` returns
        the gateway's code for py3langid's name of a language.
        """
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier: Any = LanguageIdentifier.from_pickled_model(MODEL_FILE, norm_probs=True)
        known = {name: find(name) for name in self._identifier.nb_classes}
        self._codes = {name: code for name, code in known.items() if code in languages}
        if self._codes:
            self._identifier.set_languages(sorted(self._codes))
        self._words = WordLists(list(self._identifier.nb_classes))
        self._unknown = Detection("en" if "en" in languages else languages[0], 0.0)

    @property
    def languages(self) -> list[str]:
        """Codes of the languages that can be detected."""
        return sorted({code for code in self._codes.values() if code})

    def detect(self, text: str) -> list[Detection]:
        """Detect the language of a text, best first; confidence 0 for a text without letters."""
        candidates = self._ranked(text) or [self._unknown]
        return candidates[:1] + [one for one in candidates[1:] if one.confidence >= _LEAST_PERCENT]

    def _ranked(self, text: str) -> list[Detection]:
        """Return all languages, best first; none if the text has no letters."""
        if not self._codes or not any(map(str.isalpha, text)):
            return []
        shares: dict[str, float] = {}
        for name, share in self._shares(text[:_MOST_CHARACTERS]):
            code = str(self._codes[name])
            shares[code] = shares.get(code, 0.0) + 100 * share
        ranked = sorted(shares.items(), key=lambda item: -item[1])
        return [Detection(code, round(min(share, 100.0), 1)) for code, share in ranked]

    def _shares(self, text: str) -> Iterable[tuple[str, float]]:
        """Return each language, by py3langid's name, with its probability."""
        import numpy as np

        names = self._identifier.nb_classes
        by_letters = dict(self._identifier.rank(text))
        scores = np.log([max(float(by_letters[name]), _LEAST_SHARE) for name in names])
        scores *= _LETTERS
        listed = self._words.listed
        if (evidence := self._words.evidence(text[:_FEW])) is not None:
            scores += np.where(listed, evidence, evidence.max() - _UNLISTED)
        shares = np.exp(scores - scores.max())
        return zip(names, map(float, shares / shares.sum()), strict=True)

    def source_of(self, text: str, sources: Sequence[str]) -> Detection:
        """Detect which of the source languages a text has.

        The confidence is low if the text is in another language, and 0 if there is no evidence for
        any of them.
        """
        for candidate in self._ranked(text):
            if candidate.language in sources:
                return candidate
        return Detection("en" if "en" in sources else sources[0], 0.0)

    async def sources_of(self, texts: Sequence[str], sources: Sequence[str]) -> list[Detection]:
        """Detect the source of each text; for short ones from all texts together."""

        async def find(text: str) -> Detection:
            return await aside(min(len(text), _MOST_CHARACTERS), self.source_of, text, sources)

        together = await find("\n".join(texts))
        return [await find(text) if len(text) >= _SHORT else together for text in texts]


def detector_of(catalog: Catalog) -> Detector:
    """Return a detector of all languages that the models translate from or into."""

    def code(name: str) -> str | None:
        found = catalog.find(name)
        return found.code if found else None

    return Detector(sorted(catalog.languages), code)


_UNSEEN = 1e-7  # frequency of a word that is not in a list; the lists go down to 1e-6
# Scripts without spaces between words; their characters alone determine the language.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


class WordLists:
    """The word lists of several languages, as one table sorted by the words' hashes.

    It takes an eighth of the memory of wordfreq's dictionaries.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """Read the lists of languages by ISO 639 code; some may have no list."""
        import langcodes
        import numpy as np
        from wordfreq import available_languages, get_frequency_dict, get_frequency_list

        known = available_languages("small")
        names = [langcodes.standardize_tag(code) for code in languages]
        self.listed = np.array([name in known for name in names], dtype=bool)
        tables = [_table({}, 0)]
        for i in map(int, np.flatnonzero(self.listed)):
            tables += [_table(get_frequency_dict(names[i], "small"), i)]
            get_frequency_dict.cache_clear()
            get_frequency_list.cache_clear()
        hashes, columns, gains = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        order = np.argsort(hashes)
        self._hashes, self._columns, self._gains = hashes[order], columns[order], gains[order]

    def evidence(self, text: str) -> npt.NDArray[np.float64] | None:
        """Return the evidence of the words of a text; None if no word is in any list.

        For each language it is the sum of the logarithms of the words' frequencies, relative to an
        unseen word; 0 if the language has no list.
        """
        import numpy as np

        found = np.zeros(len(self.listed))
        for word in _words(text):
            start = np.searchsorted(self._hashes, hash(word), side="left")
            end = np.searchsorted(self._hashes, hash(word), side="right")
            found[self._columns[start:end]] += self._gains[start:end]
        return found if found.any() else None


def _table(frequencies: dict[str, float], column: int) -> tuple[Any, Any, Any]:
    import numpy as np

    count = len(frequencies)
    hashes = np.fromiter(map(hash, frequencies), dtype=np.int64, count=count)
    gains = np.fromiter(frequencies.values(), dtype=np.float32, count=count)
    return hashes, np.full(count, column, dtype=np.int16), np.log(gains / _UNSEEN + 1)


def _words(text: str) -> Iterable[str]:
    from wordfreq.tokens import simple_tokenize

    return [word for word in simple_tokenize(text) if not _UNSPACED.search(word)]
