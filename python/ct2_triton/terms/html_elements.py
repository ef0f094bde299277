# SPDX-License-Identifier: Apache-2.0
"""Which element of HTML is open, also where its end tag is left out.

The rules are those of https://html.spec.whatwg.org/multipage/parsing.html for the elements whose
end tags are optional, as far as they tell where an element that is not translated ends.
"""

from __future__ import annotations

from collections import Counter

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
     "source", "track", "wbr"]
)  # fmt: skip
# Elements that a browser opens again where their end tag is missing, and those of other languages.
_GO_ON = frozenset(
    ["a", "b", "big", "code", "em", "font", "i", "math", "s", "small", "strike", "strong", "svg",
     "tt", "u"]
)  # fmt: skip
_CELLS = frozenset(["td", "th"])
_ROWS = _CELLS | {"tr"}
_GROUPS = _ROWS | {"tbody", "thead", "tfoot", "caption", "colgroup"}
_ITEMS = frozenset(["dt", "dd"])
_ENDS_PARAGRAPH = (
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu",
    "nav", "ol", "p", "pre", "section", "table", "ul",
)  # fmt: skip
# The open elements that the start of an element ends.
_ENDED_BY = {
    **dict.fromkeys(_ENDS_PARAGRAPH, frozenset(["p"])),
    "li": frozenset(["li", "p"]),
    **dict.fromkeys(_ITEMS, _ITEMS | {"p"}),
    "option": frozenset(["option"]),
    "optgroup": frozenset(["option", "optgroup"]),
    **dict.fromkeys(["rt", "rp"], frozenset(["rt", "rp"])),
    **dict.fromkeys(_CELLS, _CELLS),
    "tr": _ROWS,
    **dict.fromkeys(["tbody", "thead", "tfoot"], _GROUPS),
}
# Elements around which it ends nothing.
_BARRIERS = frozenset(
    ["article", "aside", "blockquote", "button", "caption", "details", "dl", "fieldset", "figure",
     "footer", "form", "header", "main", "menu", "nav", "object", "ol", "section", "select",
     "table", "td", "template", "th", "ul"]
)  # fmt: skip
_TABLE_BARRIERS = frozenset(["table", "template"])
_DEEPEST = 512  # elements in elements, as browsers have them


class OpenElements:
    """The elements that are open while a document is read, and the one that is kept as it is."""

    def __init__(self) -> None:
        """Begin a document."""
        self._around: Counter[str] = Counter()  # open around the kept element
        self._within: list[str] = []  # the kept element, and those in it
        self._names: Counter[str] = Counter()  # of these

    @property
    def kept(self) -> bool:
        """Whether an element is kept."""
        return bool(self._within)

    def end_before(self, tag: str) -> None:
        """End the kept element, or some in it, which the start of an element ends."""
        ended = _ENDED_BY.get(tag, frozenset())
        barriers = _TABLE_BARRIERS if ended & _GROUPS else _BARRIERS
        if not any(self._names[name] for name in ended):
            return
        for name in self._within[: -_DEEPEST - 1 : -1]:
            if name in barriers - ended:
                return
            if name in ended:
                self._end_within(name)

    def start(self, tag: str, *, keep: bool) -> None:
        """Begin an element; `keep`: if none is kept, it is."""
        if tag in _VOID:
            return
        if keep or self._within:
            self._within.append(tag)
            self._names[tag] += 1
        else:
            self._around[tag] += 1

    def end(self, tag: str) -> None:
        """End an element, and those in it whose end tag is missing."""
        if self._names[tag]:
            self._end_within(tag)
            return
        if not self._around[tag]:
            return
        self._around[tag] -= 1
        if self._within and self._within[0] not in _GO_ON and tag not in _GO_ON:
            self._within.clear()
            self._names.clear()

    def _end_within(self, tag: str) -> None:
        ended = ""
        while ended != tag:
            ended = self._within.pop()
            self._names[ended] -= 1
