# SPDX-License-Identifier: Apache-2.0
"""Translate HTML so that its tags stay as they are, in their order."""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from ct2_triton.client.tasks import aside
from ct2_triton.terms.finding import places
from ct2_triton.terms.html_parts import escaped, nest, read_parts, runs
from ct2_triton.terms.html_places import Alignment, place, place_aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation
    from ct2_triton.terms.html_parts import Element, Node, Part
    from ct2_triton.terms.html_places import Span

    Sentences: TypeAlias = "list[tuple[list[Part], Element | None]]"

Align: TypeAlias = "Callable[[str], Alignment | None]"
_SPACE = re.compile(r"[ \t\r\n\f]+")  # what HTML shows as one space
# Limit on the text sent for a sentence and its elements, in lengths of the sentence.
_MOST_TIMES = 3
_ENDS = " .!?\u3002\uff01\uff1f"  # of a sentence, also in Chinese and Japanese


async def translate_html(
    client: TranslationClient,
    document: str,
    *,
    source: str | None = None,
    target: str | None = None,
    **options: Any,  # noqa: ANN401
) -> str:
    """Translate the text of HTML.

    All tags are kept unchanged and in their order, and so are scripts, styles, comments
    and what says `translate="no"`. A block ends a sentence. Tags inside of a sentence are put
    around the words that are found in its translation: as they were, or as they are translated
    alone. Where one is not found there exactly once and in order, the alignments of the tokens
    decide, if the model gives them (`return_alignments`). Where it does not, or an element's words
    do not stand together, each text between two tags is translated on its own.

    Args:
        client: Of the model.
        document: A page, or a part of one.
        source: Its language.
        target: The language wanted.
        **options: Further arguments of `TranslationClient.translate`.

    Returns:
        The translation.

    Raises:
        ClientError: The translation fails.
    """
    found = await translate_html_ranks(
        client, document, ranks=1, source=source, target=target, **options
    )
    return found.texts[0]


@dataclass(frozen=True)
class RankedTexts:
    """Translations of one text or document.

    Attributes:
        texts: Different ones, best first; one at least.
        parts: What the model gave, of which the best one consists.
    """

    texts: list[str]
    parts: list[Translation]


async def translate_html_ranks(
    client: TranslationClient,
    document: str,
    *,
    ranks: int,
    source: str | None = None,
    target: str | None = None,
    **options: Any,  # noqa: ANN401
) -> RankedTexts:
    """Translate the text of HTML, with further translations.

    That of a rank has the hypothesis of this rank of each sentence, or the last that there is.

    Args:
        client: Of the model.
        document: A page, or a part of one.
        ranks: Most translations wanted; `options` ask the model for as many (`num_hypotheses`).
        source: Its language.
        target: The language wanted.
        **options: Further arguments of `TranslationClient.translate`.

    Returns:
        The translations.

    Raises:
        ClientError: The translation fails.
    """
    known: dict[str, list[str]] = {}
    answers: dict[str, Translation] = {}

    async def learn(texts: Iterable[str]) -> None:
        asked = [text for text in dict.fromkeys(texts) if _has_words(text) and text not in known]
        if not asked:
            return
        await client.connect()
        if client.gives_alignments():
            options.setdefault("return_alignments", True)
        found = await client.translate(asked, source=source, targets=target, **options)
        ranked = ([hypothesis.text for hypothesis in one.hypotheses] for one in found)
        known.update(zip(asked, ranked, strict=True))
        answers.update((text, one) for text, one in zip(asked, found, strict=True))

    def align(text: str) -> Alignment | None:  # of the best hypothesis
        answer = answers.get(text)
        if answer is None:
            return None
        if answer.alignment_ranges is not None:
            return Alignment.of_ranges(answer)
        return None if answer.alignments is None else Alignment.of(client.tokenizer, answer)

    size = len(document)
    sentences, texts = await aside(size, _read, document)
    await learn(texts)
    documents = [
        await aside(size, _written, sentences, known, _unaligned if i else align, i)
        for i in range(ranks)
    ]
    for written in documents:
        await learn(await aside(size, _texts_alone, sentences, written))
    joined = [
        await aside(size, _joined, sentences, written, _at(rank, known))
        for rank, written in enumerate(documents)
    ]
    used = await aside(size, _used, sentences, documents[0])
    return RankedTexts(
        list(dict.fromkeys(joined)), [answers[text] for text in used if text in answers]
    )


def _unaligned(_text: str) -> None:
    return None


def _read(document: str) -> tuple[Sentences, list[str]]:
    """Read the sentences of a document, and the texts to ask for."""
    sentences = [(run, _sentence(run)) for run in runs(read_parts(document))]
    return sentences, [text for _, one in sentences if one is not None for text in _texts(one)]


def _texts_alone(sentences: Sentences, written: list[str | None]) -> list[str]:
    """Return the texts between two tags of the sentences that could not be written."""
    return [
        core(part.content)
        for (run, _), text in zip(sentences, written, strict=True)
        if text is None
        for part in run
        if part.kind == "text"
    ]


def _used(sentences: Sentences, written: list[str | None]) -> Iterable[str]:
    """Return the texts whose translations a document consists of, each once."""
    whole = (
        core(one.text)
        for (_, one), text in zip(sentences, written, strict=True)
        if one is not None and text is not None
    )
    return dict.fromkeys([*whole, *_texts_alone(sentences, written)])


def _at(rank: int, known: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the answers of a rank, or the last ones that there are."""
    return {text: answers[min(rank, len(answers) - 1)] for text, answers in known.items()}


def _written(
    sentences: Sentences,
    known: Mapping[str, list[str]],
    align: Align,
    rank: int,
) -> list[str | None]:
    """Write each sentence with its answer of a rank, and the best ones of the elements in it."""
    best, ranked = _at(0, known), _at(rank, known)

    def write(one: Element) -> str | None:
        whole = core(one.text)
        return write_sentence(one, ChainMap({whole: ranked[whole]}, best), align)

    return [None if one is None else write(one) for _, one in sentences]


def _joined(sentences: Sentences, written: list[str | None], known: Mapping[str, str]) -> str:
    return "".join(
        write_pieces(run, known) if text is None else text
        for (run, _), text in zip(sentences, written, strict=True)
    )


def write_sentence(sentence: Element, known: Mapping[str, str], align: Align) -> str | None:
    """Write the translation of a sentence, with the tags around the words that they belong to.

    `known` has the translations of its text and of the texts of the elements in it. None where the
    place of a tag is not found.
    """
    outer = _only_element(sentence)
    if outer is not None:
        inner = write_sentence(outer, known, align)
        if inner is None:
            return None
        at = next(i for i, node in enumerate(sentence.children) if node is outer)
        before, after = _html(sentence.children[:at]), _html(sentence.children[at + 1 :])
        return "".join([before, outer.start, inner, outer.end, after])
    text = sentence.text
    lead, tail = _ends(text)
    translated = known.get(core(text), core(text))

    def find(element: Element, _before: str, within: Span) -> Span | None:
        found = _find(core(element.text), translated[slice(*within)], known)
        return None if found is None else (found[0] + within[0], found[1] + within[0])

    inside = place(sentence, translated, (0, len(translated)), find)
    if inside is None and (alignment := align(core(text))) is not None:
        inside = place_aligned(sentence, alignment)
    return None if inside is None else f"{escaped(lead)}{inside}{escaped(tail)}"


def write_pieces(run: Iterable[Part], known: Mapping[str, str]) -> str:
    """Write tags as they are, with the translation of each text between them."""
    return "".join(
        _piece(part.content, known[core(part.content)])
        if part.kind == "text" and core(part.content) in known
        else part.html
        for part in run
    )


def core(text: str) -> str:
    """Return text as a model should see it: no space at its ends, single ones inside."""
    return _SPACE.sub(" ", text).strip()


def _piece(text: str, translated: str) -> str:
    lead, tail = _ends(text)
    return f"{escaped(lead)}{escaped(translated)}{escaped(tail)}"


def _ends(text: str) -> tuple[str, str]:
    """Return the space before and after a text."""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


def _sentence(run: list[Part]) -> Element | None:
    """Nest a sentence; None where there is nothing to translate as one."""
    if run[0].kind == "raw":
        return None
    sentence = nest(run)
    if sentence is None or not _has_words(sentence.text):
        return None
    whole, *parts = _texts(sentence)
    asked = len(whole) + sum(map(len, parts))
    return sentence if asked <= _MOST_TIMES * len(whole) else None


def _texts(sentence: Element) -> list[str]:
    """Return the texts to ask for, each once: that of the sentence, then those of its elements."""
    texts = [sentence.text, *(one.text for one in sentence.elements)]
    return list(dict.fromkeys(map(core, texts)))


def _only_element(sentence: Element) -> Element | None:
    """Return the element that holds the whole text, if one does."""
    filled = [
        node for node in sentence.children if (node if isinstance(node, str) else node.text).strip()
    ]
    return filled[0] if len(filled) == 1 and not isinstance(filled[0], str) else None


def _html(nodes: Iterable[Node]) -> str:
    return "".join(escaped(node) if isinstance(node, str) else node.html for node in nodes)


def _find(phrase: str, translated: str, known: Mapping[str, str]) -> tuple[int, int] | None:
    """Find a phrase of the source in a translation."""
    for words in (known.get(phrase, "").rstrip(_ENDS), phrase):
        found = list(islice(places(words, translated, in_any_case=True), 2)) if words else []
        if len(found) == 1:
            return found[0], found[0] + len(words)
    return None


def _has_words(text: str) -> bool:
    return any(map(str.isalpha, text))
