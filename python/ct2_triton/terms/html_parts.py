# SPDX-License-Identifier: Apache-2.0
"""Split HTML into texts, tags inside sentences, and the unchanged rest."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Literal, TypeAlias

from ct2_triton.terms.html_elements import OpenElements

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
_MOST_ELEMENTS = 50  # of one sentence; more are no sentence
_MOST_LEVELS = 8  # of elements in elements


@dataclass(frozen=True)
class Part:
    """A piece of a document.

    Attributes:
        kind: `text`; `open` or `close`, tags inside of a sentence; `mark`, what does not show in
            it; `raw`, the rest.
        content: The text without entities, or the name of the tag.
        html: Its text in the document.
    """

    kind: Literal["text", "open", "close", "mark", "raw"]
    content: str = ""
    html: str = ""


@dataclass(frozen=True)
class Element:
    """An element inside a sentence: its tags and its content. A mark has a start only."""

    start: str = ""
    children: list[Node] = field(default_factory=list)
    end: str = ""

    @property
    def html(self) -> str:
        """Its source, but for the way entities are written."""
        inner = (escaped(node) if isinstance(node, str) else node.html for node in self.children)
        return "".join([self.start, *inner, self.end])

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
        elif part.kind == "mark":
            element.children.append(Element(part.html))
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
        self._open = OpenElements()
        # It is never closed, because the search for missing ends takes quadratic time.
        self.feed(document)
        if self.rawdata:
            is_text = self.cdata_elem is None and self.rawdata[0] != "<" and not self._open.kept
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
        self._open.end_before(tag)
        was_kept = self._open.kept
        self._open.start(tag, keep=tag in UNTRANSLATED or _says_no(dict(attrs)))
        if was_kept or self._open.kept:
            self._add(Part("raw"))
        elif tag in INLINE:
            self._add(Part("open", tag))
        else:
            self._add(Part("mark" if tag == "wbr" else "raw"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_foreign = self._open.kept or tag in {"svg", "math"}
        if is_foreign:  # there, such a tag ends what it begins; in HTML the slash says nothing
            self._add(Part("raw"))
        else:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        was_kept = self._open.kept
        self._open.end(tag)
        is_inline = tag in INLINE and not was_kept
        self._add(Part("close", tag) if is_inline else Part("raw"))

    def handle_data(self, data: str) -> None:
        self._add(Part("raw") if self._open.kept else Part("text", data))

    def handle_comment(self, data: str) -> None:
        self._add(Part("raw" if self._open.kept else "mark"))

    def handle_decl(self, decl: str) -> None:
        self._add(Part("raw"))

    def unknown_decl(self, data: str) -> None:
        self._add(Part("raw"))

    def handle_pi(self, data: str) -> None:
        self._add(Part("raw"))


def _says_no(attributes: dict[str, str | None]) -> bool:
    said = (attributes.get("translate") or "").strip().lower()
    return said == "no" or "notranslate" in (attributes.get("class") or "").split()
