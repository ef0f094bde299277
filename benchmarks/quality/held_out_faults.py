# SPDX-License-Identifier: Apache-2.0
"""The faulty outputs of the held-out set; held_out.py lists the kinds."""

import random
import re
from collections import Counter
from collections.abc import Callable

from held_out_inputs import value_text
from held_out_material import (
    Fault,
    FaultMaker,
    Material,
    Pair,
    alike,
    bare,
    put,
    uncapped,
    words_of,
)


def digits(text: str) -> Counter[str]:
    """Numbers of a text, without what separates thousands."""
    return Counter(re.findall(r"\d+", re.sub(r"(?<=\d)[.,\s](?=\d{3}\b)", "", text)))


def labelled(fault: Fault) -> Fault:
    """`fault`, with `values` where the numbers differ from those of the right translation."""
    if "values" in fault.flags or fault.translation == fault.pair.source:
        return fault
    right, wrong = digits(fault.pair.translation), digits(fault.translation)
    if set(right) != set(wrong):
        return fault._replace(flags=(*fault.flags, "values"))
    if right != wrong:
        return fault._replace(may=(*fault.may, "values"))
    return fault


def loop(m: Material, kind: str) -> Fault | None:
    """A translation that does not end, or starts again."""
    pair, rng = m.pair(5), m.rng
    text = uncapped(pair.translation)
    words = text.split()
    may: tuple[str, ...] = ("length", "invented")
    if kind == "word":
        text += f" {words[-1]}" * rng.randint(4, 20)
    elif kind == "phrase":
        text += f" {' '.join(words[-rng.randint(2, 4) :])}" * rng.randint(3, 12)
    elif kind == "sentence":
        text = " ".join([pair.translation] * rng.randint(3, 8))
    elif kind == "letters":
        end = re.sub(r"\W", "", words[-1])[-2:]
        if not end.isalpha():
            return None
        text += end * rng.randint(8, 30)
    else:
        at, size = rng.randint(1, len(words) // 2), rng.randint(1, 3)
        looped = words[at : at + size] * rng.randint(4, 14)
        rest = words[at + size :] if kind == "inside" else []
        may = may if rest else (*may, "uncovered")
        text = " ".join([*words[:at], *looped, *rest])
    return Fault(pair, text, ("repeats",), may)


def copied(m: Material, nearly: bool = False) -> Fault:
    pair = m.pair(4)
    text, may = pair.source, ("language", "uncovered", "invented")
    if nearly:
        words = text.split()
        words[-1] = pair.translation.split()[-1]
        text = m.rng.choice([bare(text), uncapped(text), " ".join(words)])
    return Fault(pair, text, ("copied",), may)


def other_language(m: Material, unrelated: bool = False) -> Fault | None:
    pair = m.pair(5)
    source = m.unrelated(pair).source if unrelated else pair.source
    others = {k: v for k, v in m.by_source[source].items() if k != pair.target}
    if not others:
        return None
    text = others[m.rng.choice(list(others))]
    right = m.by_source[source].get(pair.target, pair.translation)
    if alike(text, right) or alike(text, pair.source) or len(text.split()) < 5:
        return None
    flags = ("language", "uncovered", "invented") if unrelated else ("language",)
    may = ("length",) if unrelated else ("uncovered", "invented")
    return Fault(pair, text, flags, may)


def number_fault(m: Material, way: str) -> Fault | None:
    """A number of the translation removed, changed or added."""
    pair = m.pair(4)
    words = pair.translation.split()
    places = [i for i, word in enumerate(words) if re.search(r"\d", word)]
    new = str(m.rng.randint(11, 99))
    if way == "added":
        if new in digits(pair.translation):
            return None
        text = " ".join(put(m.rng, words, new))
        return Fault(pair, text, ("values",), ("invented",))
    if not places:
        return None
    at = m.rng.choice(places)
    if way == "removed":
        del words[at]
        text = " ".join(words)
    else:
        spots = [i for i, c in enumerate(words[at]) if c.isdigit()]
        spot = m.rng.choice(spots)
        digit = m.rng.choice([c for c in "123456789" if c != words[at][spot]])
        words[at] = words[at][:spot] + digit + words[at][spot + 1 :]
        text = " ".join(words)
    if set(digits(text)) == set(digits(pair.translation)):
        return None
    return Fault(
        pair, text, ("values",), ("uncovered",) if way == "removed" else ("uncovered", "invented")
    )


def with_value(text: str, value: str) -> str:
    """`text` with a value in brackets before its last sign."""
    cut = uncapped(text)
    return f"{cut} ({value}){text[len(cut) :]}"


def changed_value(rng: random.Random, value: str) -> str:
    """`value` with one letter or digit replaced."""
    at = rng.choice([i for i, c in enumerate(value) if c.isascii() and c.isalnum()])
    old = value[at]
    letters = "0123456789" if old.isdigit() else "abdefhklmnprstuvz"
    return value[:at] + rng.choice([c for c in letters if c != old.lower()]) + value[at + 1 :]


def value_fault(m: Material, way: str) -> Fault:
    """A URL, e-mail address or placeholder removed, changed or added; or kept, as a control."""
    clean = m.pair(3)
    value = value_text(m.rng, m.rng.choice(["url", "email", "placeholder"]))
    right = Pair(
        with_value(clean.source, value), clean.target, with_value(clean.translation, value)
    )
    if way == "kept":
        return Fault(right, right.translation)
    if way == "added":
        return Fault(clean, right.translation, ("values",), ("invented",))
    if way == "removed":
        return Fault(right, clean.translation, ("values",), ("uncovered",))
    text = with_value(clean.translation, changed_value(m.rng, value))
    return Fault(right, text, ("values",), ("uncovered", "invented"))


def joined(*pairs: Pair) -> Pair:
    """The text of several pairs of one language, as one."""
    return Pair(
        " ".join(p.source for p in pairs), pairs[0].target, " ".join(p.translation for p in pairs)
    )


def sentence_dropped(m: Material, of: int = 2) -> Fault:
    pairs = [m.pair(5)]
    while len(pairs) < of:
        pairs.append(m.unrelated(*pairs))
    kept = [pairs[0], pairs[2]] if of == 3 else [m.rng.choice(pairs)]
    return Fault(joined(*pairs), joined(*kept).translation, ("uncovered",), ("length",))


def clause_cut(m: Material) -> Fault | None:
    """The clause before the first or after the last comma is missing."""
    pair = m.pair(10)
    parts = re.split(r"(?<=[,;:]) ", pair.translation)
    if len(parts) < 2:
        return None
    last = m.rng.random() < 0.6
    gone, kept = (parts[-1], parts[:-1]) if last else (parts[0], parts[1:])
    text = " ".join(kept)
    if len(gone.split()) < 4 or len(text.split()) < 3:
        return None
    text = (
        text.rstrip(",;:") + pair.translation[len(uncapped(pair.translation)) :] if last else text
    )
    return Fault(pair, text[0].upper() + text[1:], ("uncovered",), ("length",))


def end_cut(m: Material) -> Fault:
    """The last 40 to 60 percent of the words are missing."""
    pair = m.pair(10)
    words = pair.translation.split()
    kept = words[: int(len(words) * m.rng.uniform(0.4, 0.6))]
    return Fault(pair, " ".join(kept).rstrip(",;:"), ("uncovered",), ("length",))


def appended(m: Material, way: str) -> Fault | None:
    """A translation followed by something that the source does not say."""
    pair = m.pair(4)
    other, text = m.unrelated(pair), uncapped(pair.translation)
    if way == "sentence":
        text = f"{pair.translation} {other.translation}"
    elif way == "stock":
        if re.search("watching|see you|thank", pair.source.lower()):
            return None  # much the same as what is appended
        text = f"{pair.translation} {m.rng.choice(m.text['stock'][pair.target])}"
    else:
        clause = uncapped(other.translation).lstrip("¿¡")
        if re.search(r"[.!?¿¡:]\s?\D", clause):
            return None  # more than one
        if words_of(clause)[0] not in words_of(other.source):  # no name
            clause = clause[0].lower() + clause[1:]
        text = f"{text}, {m.text['conjunctions'][pair.target]} {clause}."
    return Fault(pair, text, ("invented",), ("length",))


def unrelated(m: Material) -> Fault:
    pair = m.pair(5)
    return Fault(pair, m.unrelated(pair).translation, ("uncovered", "invented"), ("length",))


def too_short(m: Material) -> Fault:
    pair = m.pair(12)
    return Fault(pair, pair.translation.split()[0].strip("¿¡.,:"), ("length", "uncovered"))


def too_long(m: Material) -> Fault:
    pairs = [m.pair(4)]
    while len(pairs) < 6:
        other = m.unrelated(pairs[0])
        pairs += [other] if other not in pairs and len(other.translation.split()) > 5 else []
    text = joined(*pairs).translation
    if len(text) < 4 * len(pairs[0].translation):
        return too_long(m)
    return Fault(pairs[0], text, ("length", "invented"))


def empty(m: Material) -> Fault:
    return Fault(m.pair(3), m.rng.choice(["", "", " ", "."]), ("length",), ("uncovered",))


def control(m: Material, change: Callable[[str], str]) -> Fault:
    """A right translation, with the same change on both sides."""
    clean = m.pair(3)
    pair = Pair(change(clean.source), clean.target, change(clean.translation))
    return Fault(pair, pair.translation)


def clean_sentences(m: Material, count: int) -> Fault:
    pairs = [m.pair(4)]
    while len(pairs) < count:
        pairs.append(m.unrelated(*pairs))
    return Fault(joined(*pairs), joined(*pairs).translation)


def clean_identical(m: Material) -> Fault:
    text = m.rng.choice(m.text["identical"])
    return Fault(Pair(text, m.rng.choice(list(m.text["stock"])), text), text)


def clean_repetition(m: Material) -> Fault:
    texts = m.rng.choice(m.text["repetitions"])
    target = m.rng.choice(list(m.text["stock"]))
    return Fault(Pair(texts["eng"], target, texts[target]), texts[target])


FAULTS: dict[str, FaultMaker] = {
    "loop_word": lambda m: loop(m, "word"),
    "loop_phrase": lambda m: loop(m, "phrase"),
    "loop_sentence": lambda m: loop(m, "sentence"),
    "loop_inside": lambda m: loop(m, "inside"),
    "loop_at_end": lambda m: loop(m, "end"),
    "loop_letters": lambda m: loop(m, "letters"),
    "copied": copied,
    "copied_nearly": lambda m: copied(m, nearly=True),
    "other_language": other_language,
    "other_language_unrelated": lambda m: other_language(m, unrelated=True),
    "number_removed": lambda m: number_fault(m, "removed"),
    "number_changed": lambda m: number_fault(m, "changed"),
    "number_added": lambda m: number_fault(m, "added"),
    "value_removed": lambda m: value_fault(m, "removed"),
    "value_changed": lambda m: value_fault(m, "changed"),
    "value_added": lambda m: value_fault(m, "added"),
    "sentence_dropped": sentence_dropped,
    "middle_dropped": lambda m: sentence_dropped(m, of=3),
    "clause_cut": clause_cut,
    "end_cut": end_cut,
    "sentence_appended": lambda m: appended(m, "sentence"),
    "clause_appended": lambda m: appended(m, "clause"),
    "stock_appended": lambda m: appended(m, "stock"),
    "unrelated": unrelated,
    "too_short": too_short,
    "too_long": too_long,
    "empty": empty,
    "clean": lambda m: control(m, lambda text: text),
    "clean_two_sentences": lambda m: clean_sentences(m, 2),
    "clean_three_sentences": lambda m: clean_sentences(m, 3),
    "clean_value": lambda m: value_fault(m, "kept"),
    "clean_doubled": lambda m: control(m, lambda text: f"{text} {text}"),
    "clean_capitals": lambda m: control(m, str.upper),
    "clean_lower_case": lambda m: control(m, bare),
    "clean_identical": clean_identical,
    "clean_repetition": clean_repetition,
}
