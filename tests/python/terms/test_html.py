# SPDX-License-Identifier: Apache-2.0
"""HTML: cut into parts, translated by a client that is a dictionary, and put together again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ct2_triton.client import Hypothesis, Translation
from ct2_triton.terms import translate_html
from ct2_triton.terms.html_parts import blocks, nest, read_parts, text_of
from ct2_triton.terms.html_places import Alignment, place_aligned

GERMAN = {
    "The red train leaves today.": "Der rote Zug fährt heute ab.",
    "red": "rot",
    "train": "Zug",
    "today": "Heute.",
    "The red train": "Der rote Zug",
    "leaves": "Blätter",
}


class Dictionary:
    """Translates what `GERMAN` has, and writes all else in capitals."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def connect(self) -> None:
        pass

    def gives_alignments(self) -> bool:
        return False

    async def translate(self, texts: list[str], **_: Any) -> list[Translation]:
        self.asked += texts
        answers = [GERMAN.get(text, text.upper()) for text in texts]
        return [Translation("", None, None, (Hypothesis(answer),)) for answer in answers]


async def _translated(document: str) -> str:
    return await translate_html(Dictionary(), document)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("document", "translation"),
    [
        ("<p>one</p><p>two</p>", "<p>ONE</p><p>TWO</p>"),
        ("<p>\n one\n two </p>", "<p>\n ONE TWO </p>"),
        ("one<br>two<br/>three", "ONE<br>TWO<br/>THREE"),
        # Tags go around their words, where these are found.
        ("The red <b>train</b> leaves <i>today</i>.", "Der rote <b>Zug</b> fährt <i>heute</i> ab."),
        ("<a href='x'>The red <b>train</b> leaves today.</a>",
         "<a href='x'>Der rote <b>Zug</b> fährt heute ab.</a>"),
        ("<em>The red <b>train</b></em> leaves today.",
         "<em>Der rote <b>Zug</b></em> fährt heute ab."),
        # Where they are not, each text is translated on its own.
        ("The <b>red</b> train leaves today.", "THE <b>rot</b> TRAIN LEAVES TODAY."),
        ("Go <b>on</b> and <i>on</i>.", "GO <b>ON</b> AND <i>ON</i>."),
        ("<b>one <i>two</b> three</i>", "<b>ONE <i>TWO</b> THREE</i>"),
        # What does not show is no end of a sentence.
        ("The red train <!-- x -->leaves today.", "Der rote Zug fährt <!-- x -->heute ab."),
        ("The red train<a name=x></a> leaves <i>today</i>.",
         "Der rote Zug fährt<a name=x></a> <i>heute</i> ab."),
        ("<!-- x -->The <i class=icon></i> red <b>train</b> leaves to<wbr>day.<u></u>",
         "<!-- x -->Der <i class=icon></i>rote <b>Zug</b> fährt heute<wbr> ab.<u></u>"),
        ("<b>The red train leaves today.</b> <!-- x -->",
         "<b>Der rote Zug fährt heute ab.</b> <!-- x -->"),
        ("one<i><u> </u></i>two", "ONE<i><u> </u></i> TWO"),
        # What stays.
        ("<script>if (a < b) c('<p>d</p>')</script><style>p {}</style><!-- a <b> -->one",
         "<script>if (a < b) c('<p>d</p>')</script><style>p {}</style><!-- a <b> -->ONE"),
        ("<div translate=no>a <div>b</div> c</div><i class='x notranslate'>d</i>e",
         "<div translate=no>a <div>b</div> c</div><i class='x notranslate'>d</i>E"),
        ("<pre>a\n  b</pre><code>c</code> d", "<pre>a\n  b</pre><code>c</code> D"),
        ('<!DOCTYPE html><IMG Alt="a &quot; b" src=c>one',
         '<!DOCTYPE html><IMG Alt="a &quot; b" src=c>ONE'),
        ("<p>12:30 &nbsp; &copy; 5</p>", "<p>12:30 &nbsp; &copy; 5</p>"),
        ("one <b", "ONE <b"),
        ("one<script>two", "ONE<script>two"),
        # Entities.
        ("a &lt; b &amp;&amp; c &eacute;&#233;&nbsp;d", "A &lt; B &amp;&amp; C ÉÉ&nbsp;D"),
        ("a < b & c", "A &lt; B &amp; C"),
        ("", ""),
    ],
)  # fmt: skip
async def test_a_document(document: str, translation: str) -> None:
    assert await _translated(document) == translation
    assert "".join([await _translated(one) for one in blocks(document)]) == translation


@pytest.mark.parametrize(
    ("document", "translation"),
    [
        ("<ul><li translate=no>a<li>b</ul>c", "<ul><li translate=no>a<li>B</ul>C"),
        ("<ul><li translate=no>a</ul>b", "<ul><li translate=no>a</ul>B"),
        ("<ul><li translate=no>a<ul><li>b</ul>c<li>d</ul>",
         "<ul><li translate=no>a<ul><li>b</ul>c<li>D</ul>"),
        ("<ul><li translate=no><div>a<li>b</ul>", "<ul><li translate=no><div>a<li>B</ul>"),
        ("<dl><dt class=notranslate>a<dd>b</dl>", "<dl><dt class=notranslate>a<dd>B</dl>"),
        ("<p translate=no>a<p>b", "<p translate=no>a<p>B"),
        ("<div><p translate=no>a <b>b</div>c", "<div><p translate=no>a <b>b</div>C"),
        ("<p translate=no>a<br>b <span>c<div>d", "<p translate=no>a<br>b <span>c<div>D"),
        ("<p translate=no>a <button><p>b</button>c</p>d",
         "<p translate=no>a <button><p>b</button>c</p>D"),
        ("<table><tr><td translate=no>a<td>b<tr><th>c</table>",
         "<table><tr><td translate=no>a<td>B<tr><th>C</table>"),
        ("<table><tr translate=no><td>a<td>b<tr><td>c</table>d",
         "<table><tr translate=no><td>a<td>b<tr><td>C</table>D"),
        ("<table><tr><td translate=no>a<table><tr><td>b<td>c</table>d</table>e",
         "<table><tr><td translate=no>a<table><tr><td>b<td>c</table>d</table>E"),
        ("<select><option translate=no>a<option>b</select>",
         "<select><option translate=no>a<option>B</select>"),
        ("<div translate=no>a</ul></b></p>b</div>c", "<div translate=no>a</ul></b></p>b</div>C"),
        # As in a browser, these go on.
        ("<p><code>a</p><p>b", "<p><code>a</p><p>b"),
    ],
)  # fmt: skip
async def test_what_is_not_translated_may_have_no_end_tag(document: str, translation: str) -> None:
    assert await _translated(document) == translation


@pytest.mark.parametrize("piece", ["<li>", "<span>", "<p>", "</ul>", "<td>", "<table><td>"])
async def test_many_open_elements_are_read(piece: str) -> None:
    document = "<ul><li translate=no>" + piece * 50_000 + "<li>" * 10_000
    assert text_of(f"{document}</ul></table></ul>") is not None


def test_a_document_is_cut_after_its_texts() -> None:
    document = "<h1>one</h1> <p>two <b>three</b><pre>four</pre>five &amp; six"
    assert blocks(document) == [
        "<h1>one",
        "</h1> <p>two <b>three</b>",
        "<pre>four</pre>five &amp; six",
    ]


async def test_text_without_words_is_not_sent_and_each_text_once() -> None:
    client = Dictionary()
    await translate_html(client, "<p>one</p> <p>12</p><p>&mdash;</p><p>one</p>")  # type: ignore[arg-type]
    assert client.asked == ["one"]


@pytest.mark.parametrize("levels", [1, 2, 5, 49])
async def test_elements_in_elements_are_asked_a_few_times_only(levels: int) -> None:
    document = "<b>a " * levels + "one two three " * 1000 + "four" + "</b>" * levels
    client = Dictionary()
    assert await translate_html(client, document) == document.upper().replace("B>", "b>")  # type: ignore[arg-type]
    assert sum(map(len, client.asked)) <= 4 * len(document)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ('<button type="submit" class="x">Ab<b>brechen</b></button>', "Abbrechen"),
        ("<p>one &amp; two</p><script>three</script><p>four", "one & two\nfour"),
        ("one", "one"),
        ("", ""),
    ],
)
def test_the_text_of_a_document(document: str, text: str) -> None:
    assert text_of(document) == text


WORDS = [(at, at + 1) for at in range(0, 11, 2)]  # of "a b c d e f"
LINKS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)
TREES = st.recursive(
    st.sampled_from(["a", "b c", " ", "d. "]),
    lambda inner: st.lists(inner, max_size=3).map(lambda some: f"<b>{' '.join(some)}</b> <i>e</i>"),
    max_leaves=6,
)


@given(TREES, LINKS)
def test_aligned_tags_are_balanced_and_in_order_whatever_looks_at_what(
    document: str, links: set[tuple[int, int]]
) -> None:
    sentence = nest(read_parts(document))
    assert sentence is not None
    alignment = Alignment("u v w x y z", WORDS, WORDS, links)
    placed = place_aligned(sentence, alignment)
    if placed is not None:
        assert re.findall("<[^>]*>", placed) == re.findall("<[^>]*>", document)
        assert re.sub("<[^>]*>", "", placed).split() == ["u", "v", "w", "x", "y", "z"]


@pytest.mark.parametrize(
    ("document", "links", "placed"),
    [
        ("a <b>b</b> c", {(0, 0), (2, 1), (1, 2)}, "u v <b>w</b> x y z"),
        ("a <b>b <i>c</i></b>", {(3, 2), (2, 1)}, "u v <b>w <i>x</i></b> y z"),
        ("<b>a</b> <i>b</i>", {(0, 1), (1, 0)}, None),  # not in their order
        ("a <b>b c</b>", {(0, 1), (1, 0), (2, 2)}, None),  # not together
        ("a <b>b</b> c", {(0, 0)}, None),  # nothing looks there
        ("a <b>b</b> c", {(6, 1)}, None),  # a token behind the last word
        ("a <b></b> c", {(0, 0)}, "u v w <b></b>x y z"),
    ],
)
def test_tags_go_where_the_words_went(
    document: str, links: set[tuple[int, int]], placed: str | None
) -> None:
    sentence = nest(read_parts(document))
    assert sentence is not None
    assert place_aligned(sentence, Alignment("u v w x y z", WORDS, WORDS, links)) == placed


PIECES = st.sampled_from(
    ["<b>", "</b>", "<p>", "</p>", "<i x='>'>", "</i>", "<br>", "one ", "two", " &amp; ", "&nbsp;",
     "<", ">", "<!--", "-->", "<script>", "</script>", "\n", "<span translate=no>", "</span>", "</",
     "<svg/>", "<pre>", "</pre>", "é中", "<a\nb>", "</a>", "<?", "<![CDATA[", "]]>", "&", "&#x",
     "\r\n", "12", "</>"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=20).map("".join))
async def test_whatever_comes_all_markup_stays_in_its_order(document: str) -> None:
    parts = read_parts(document)
    assert "".join(part.html for part in parts) == document
    translated = await _translated(document)

    def markup(text: str) -> list[str]:
        return [part.html for part in read_parts(text) if part.kind != "text"]

    at = 0
    for tag in (part.html for part in parts if part.kind != "text"):
        assert tag in translated[at:]
        at = translated.index(tag, at) + len(tag)
    if not re.search(r"<(?![a-z/])|&|<!|</(?![a-z])|\]\]", document):
        assert markup(translated) == markup(document)


@pytest.mark.parametrize(
    "piece", ["<a ", "<!--", "<b>", "</", "<", "&", "<b>a</b>", "<a b='", "<b></b>"]
)
async def test_long_documents_of_any_kind_are_read(piece: str) -> None:
    document = piece * 5000
    assert "".join(part.html for part in read_parts(document)) == document
    assert await _translated(document)


def test_ranges_in_bytes_become_words() -> None:
    source, text = "Früh öffnet Zoë.", "Zoë öppnar tidigt."
    pairs = [("Zoë", "Zoë"), ("öffnet", "öppnar"), ("Früh", "tidigt"), (".", ".")]

    def place(part: str, whole: str) -> tuple[int, int]:
        begin = whole.encode().index(part.encode())
        return begin, begin + len(part.encode())

    ranges = tuple((*place(left, source), *place(right, text)) for left, right in pairs)
    answer = Translation(source, "de", "sv", (Hypothesis(text, alignment_ranges=ranges),))
    alignment = Alignment.of_ranges(answer)
    assert alignment.links == {(0, 2), (1, 1), (2, 0)}
    assert alignment.span(5, 11) == (4, 10)
