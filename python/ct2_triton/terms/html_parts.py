# SPDX-License-Identifier: Apache-2.0
"""Split HTML into texts, tags inside sentences, and the unchanged rest.

The words of an element are found in a translation by its tokens' attention.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ct2_triton.client.results import Translation
    from ct2_triton.client.tokenization import Tokenizer

INLINE = frozenset(
    ["a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font",
     "i", "ins", "label", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup",
     "time", "tt", "u"]
)  # fmt: skip
"""Elements inside of a sentence. All others end it."""
UNTRANSLATED = frozenset(
    ["code", "kbd", "math", "noscript", "pre", "samp", "script", "style", "svg", "template",
     "textarea", "var"]
)  # fmt: skip
"""Elements of which nothing is translated."""
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
     "source", "track", "wbr"]
)  # fmt: skip
_MOST_ELEMENTS = 50  # of one sentence; more are no sentence
_MOST_LEVELS = 8  # of elements in elements


@dataclass(frozen=True)
class Part:
    """A piece of a document.

    Attributes:
        kind: `text`; `open` or `close`, tags inside of a sentence; `raw`, the rest.
        content: The text without entities, or the name of the tag.
        html: Its text in the document.
    """

    kind: Literal["text", "open", "close", "raw"]
    content: str = ""
    html: str = ""


@dataclass(frozen=True)
class Element:
    """An element inside a sentence: its tags and its content."""

    start: str = ""
    children: list[Node] = field(default_factory=list)
    end: str = ""

    @property
    def text(self) -> str:
        """Its text, without tags."""
        return "".join(node if isinstance(node, str) else node.text for node in self.children)

    @property
    def elements(self) -> list[Element]:
        """The elements in it, with those inside of these."""
        inner = [node for node in self.children if not isinstance(node, str)]
        return [*inner, *(deeper for one in inner for deeper in one.elements)]


Node: TypeAlias = "str | Element"


def read_parts(document: str) -> list[Part]:
    """Cut HTML into parts, whose `html` together is the document."""
    return _Reader(document).parts


def runs(parts: list[Part]) -> list[list[Part]]:
    """Join parts into lists of texts and tags inside of sentences, and lists of one raw part."""
    found: list[list[Part]] = []
    for part in parts:
        if part.kind == "raw" or not found or found[-1][0].kind == "raw":
            found.append([part])
        else:
            found[-1].append(part)
    return found


def text_of(document: str) -> str:
    """Return the text of HTML that is translated, without tags and entities.

    It has lines where tags end a sentence.
    """
    found = runs(read_parts(document))
    texts = ("".join(part.content for part in run if part.kind == "text") for run in found)
    return "\n".join(filter(None, texts))


def blocks(document: str) -> list[str]:
    """Cut HTML after each text that ends a sentence: the pieces mean what the whole does.

    No element of which nothing is translated is open there.
    """
    found = [""]
    for run in runs(read_parts(document)):
        found[-1] += "".join(part.html for part in run)
        if any(part.kind == "text" and not part.content.isspace() for part in run):
            found.append("")
    return found if found[-1] or len(found) == 1 else found[:-1]


def nest(run: list[Part]) -> Element | None:
    """Nest the elements of a list that `runs` gives, without raw parts, in one without tags.

    None where the tags are not balanced, or are many or deep.
    """
    if len(run) > 4 * _MOST_ELEMENTS:
        return None
    levels = [("", Element())]
    for part in run:
        name, element = levels[-1]
        if part.kind == "text":
            element.children.append(part.content)
        elif part.kind == "open":
            levels.append((part.content, Element(part.html)))
        elif name != part.content:
            return None
        else:
            levels.pop()
            levels[-1][1].children.append(replace(element, end=part.html))
        if len(levels) > _MOST_LEVELS + 1:
            return None
    return levels[0][1] if len(levels) == 1 else None


def escaped(text: str) -> str:
    """Write text as HTML."""
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


class _Reader(HTMLParser):
    """Takes each construct unchanged: from its start to that of the next."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self._begun: list[tuple[int, Part]] = []
        self._lines = [0, *(i + 1 for i, letter in enumerate(document) if letter == "\n")]
        self._untranslated: list[str] = []  # the element that is not, and others of its name in it
        # It is never closed, because the search for missing ends takes quadratic time.
        self.feed(document)
        if self.rawdata:
            is_text = self.cdata_elem is None and self.rawdata[0] != "<" and not self._untranslated
            rest = Part("text", html.unescape(self.rawdata)) if is_text else Part("raw")
            self._begun.append((len(document) - len(self.rawdata), rest))
        begun = [(0, Part("raw")), *self._begun]  # the parser may not report the first characters
        ends = [*(start for start, _ in self._begun), len(document)]
        pieces = (
            replace(part, html=document[start:end])
            for (start, part), end in zip(begun, ends, strict=True)
        )
        self.parts = [part for part in pieces if part.html]

    def _add(self, part: Part) -> None:
        line, column = self.getpos()
        self._begun.append((self._lines[line - 1] + column, part))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        within = self._untranslated
        begins = not within and (tag in UNTRANSLATED or _says_no(dict(attrs)))
        is_inline = tag in INLINE and not begins and not within
        self._add(Part("open", tag) if is_inline else Part("raw"))
        if (begins and tag not in _VOID) or tag in within:
            within.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_foreign = bool(self._untranslated) or tag in {"svg", "math"}
        if is_foreign:  # there, such a tag ends what it begins; in HTML the slash says nothing
            self._add(Part("raw"))
        else:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        is_inline = tag in INLINE and not self._untranslated
        self._add(Part("close", tag) if is_inline else Part("raw"))
        if tag in self._untranslated:
            self._untranslated.pop()

    def handle_data(self, data: str) -> None:
        self._add(Part("raw") if self._untranslated else Part("text", data))

    def handle_comment(self, data: str) -> None:
        self._add(Part("raw"))

    def handle_decl(self, decl: str) -> None:
        self._add(Part("raw"))

    def unknown_decl(self, data: str) -> None:
        self._add(Part("raw"))

    def handle_pi(self, data: str) -> None:
        self._add(Part("raw"))


def _says_no(attributes: dict[str, str | None]) -> bool:
    said = (attributes.get("translate") or "").strip().lower()
    return said == "no" or "notranslate" in (attributes.get("class") or "").split()


_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_IDS = 300  # of a sentence; more are decoded too often


@dataclass(frozen=True)
class Alignment:
    """The words of a sentence and of its translation, and the links between them.

    Attributes:
        text: The translation.
        sources: Where each word of the sentence begins and ends, in characters.
        targets: Words of the translation.
        links: Numbers of words of the translation, each with that of a source word it attends to.
    """

    text: str
    sources: Sequence[tuple[int, int]]
    targets: Sequence[tuple[int, int]]
    links: Collection[tuple[int, int]]

    @classmethod
    def of(cls, tokenizer: Tokenizer, answer: Translation) -> Alignment:
        """Read the alignments of an answer's tokens."""
        source = tokenizer.source(answer.source)
        (target,) = tokenizer.targets(answer.target)
        mark = -1  # no id
        first = tokenizer.rules.input_ids([mark], source, target).index(mark)
        source_words = _words_of(tokenizer.encode(answer.source_text).ids, tokenizer.decode)
        target_words = _words_of(answer.ids, tokenizer.decode)
        links = {
            (word, behind)
            for word, position in zip(target_words, answer.alignments or (), strict=False)
            if 0 <= position - first < len(source_words)
            if word is not None and (behind := source_words[position - first]) is not None
        }
        return cls(answer.text, _spans(answer.source_text), _spans(answer.text), links)

    @classmethod
    def of_ranges(cls, answer: Translation) -> Alignment:
        """Read the alignments of an answer of a text model."""
        sources, targets = _spans(answer.source_text), _spans(answer.text)
        at_source, at_target = _characters(answer.source_text), _characters(answer.text)
        links = {
            (word, behind)
            for left, right, start, end in answer.alignment_ranges or ()
            for word in _touched(targets, at_target[start], at_target[end])
            for behind in _touched(sources, at_source[left], at_source[right])
        }
        return cls(answer.text, sources, targets, links)

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Find the translation of a part of the source; None if its words are not contiguous."""
        inside = {
            number
            for number, (left, right) in enumerate(self.sources)
            if start <= left and right <= end
        }
        found = {word for word, behind in self.links if behind in inside}
        others = {word for word, behind in self.links if behind not in inside}
        if not found or max(found) >= len(self.targets):
            return None
        if not others.isdisjoint(range(min(found), max(found) + 1)):
            return None
        return self.targets[min(found)][0], self.targets[max(found)][1]


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(text)]


def _characters(text: str) -> list[int]:
    """Return for each byte of a text, and for its end, the number of the character."""
    bytes_of = ([i] * len(letter.encode()) for i, letter in enumerate(text))
    return [*chain.from_iterable(bytes_of), len(text)]


def _touched(spans: Sequence[tuple[int, int]], start: int, end: int) -> range:
    """Return the indices of the words with a character between two positions."""
    return range(
        bisect_right(spans, start, key=lambda span: span[1]),
        bisect_left(spans, end, key=lambda span: span[0]),
    )


def _words_of(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[int | None]:
    """Return the index of the word of each ID, from 0; None for an ID without a word."""
    some = ids[:_MOST_IDS]
    words = [len(_WORD.findall(decode(some[: i + 1]))) - 1 for i in range(len(some))]
    return [
        word if word >= 0 and _WORD.search(decode([token])) else None
        for token, word in zip(some, words, strict=True)
    ]


def place_aligned(sentence: Element, alignment: Alignment) -> str | None:
    """Put the elements of a sentence around the translations of their words.

    None if a place is not found, or out of order.
    """
    return _place(sentence, alignment, "", (0, len(alignment.text)))


def _place(
    element: Element, alignment: Alignment, before: str, span: tuple[int, int]
) -> str | None:
    """Write the content of an element, between two positions of the translation."""
    parts: list[str] = []
    at = span[0]
    for child in element.children:
        if isinstance(child, str):
            before += child
            continue
        start = len(_seen(before + "x")) - 1
        place = alignment.span(start, len(_seen(before + child.text + "x")) - 1)
        if place is None or place[0] < at or place[1] > span[1]:
            return None
        inner = _place(child, alignment, before, place)
        if inner is None:
            return None
        parts += [escaped(alignment.text[at : place[0]]), child.start, inner, child.end]
        at = place[1]
        before += child.text
    return "".join([*parts, escaped(alignment.text[at : span[1]])])


def _seen(text: str) -> str:
    """Return the start of a sentence as the model sees it."""
    return _SPACE.sub(" ", text).lstrip()
