# SPDX-License-Identifier: Apache-2.0
"""How usual each word of a text is in several languages: the word lists of wordfreq."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

_UNSEEN = 1e-7  # frequency of a word that is not in a list; the lists go down to 1e-6
# Scripts without spaces between words; their letters alone tell the language.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


class WordLists:
    """The lists of several languages, as one table that is sorted by the words' hashes.

    It takes an eighth of the memory of the dictionaries that wordfreq has.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """Read the lists of ISO 639 codes; languages without a list may be among them."""
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
        """Sum up what the words of a text say; None where no word is in any list.

        For each language it is the logarithm of its words' frequency there, above that of unseen
        words; 0 where the language has no list.
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
