# SPDX-License-Identifier: Apache-2.0
"""Make the held-out set for the verdicts: odd inputs, and faulty outputs with their flags.

Thresholds and rules of the verdicts must not be tuned on this set, nor on its seed with other
sentences: it measures them once they are fixed. It was written without sight of their code.

Inputs are JSON lines `{"kind", "text", "base", "detail"}`. `base` is the clean sentence that the
text was made of, or null. `detail` is what was done: a count, a language, a value.

    clean             the control: nothing changed
    word_repeated     one word 2 to 40 times           phrase_repeated   2 to 5 words 2 to 40 times
    sentence_repeated the sentence 2 to 12 times       letter_repeated   one letter 4 to 40 times
    target_language   a sentence of a target language  unseen_language   20 others, in 10 scripts
    mixed_languages   English and a target language    long_text         200 words
    capitals          all capitals                     lower_case        no capitals, no punctuation
    one_word          one word                         numbers_only      numbers, dates, telephones
    word_salad        the words shuffled               gibberish         random letters
    half_sentence     cut before or after a word       fillers           um, you know
    restarts          speech that starts again         typing_errors     1 to 5 of them
    url, email, placeholder, number                    one or two of them in the sentence
    markup            HTML, Markdown, SSML, subtitles  emoji             1 to 4 of them
    punctuation_only  no word at all                   unseen_names      new names in it
    silence           what recognizers write, or people say, in silence
    odd_characters    invisible, full-width, decomposed, of other alphabets

Faults are JSON lines `{"kind", "flags", "may", "source", "target", "translation", "clean"}`.
`flags` must be found, those of `may` are justified too, and every other one is a false alarm.
`unsure` is not judged: it rests on scores, not on the text. `values` is added to `flags` where a
number is missing or new because of the fault, and to `may` where only its count changed.

    repeats           loop_word, loop_phrase, loop_sentence, loop_inside, loop_at_end, loop_letters
    copied            copied, copied_nearly (lower case, no punctuation, or one word translated)
    language          other_language (the same sentence), other_language_unrelated
    values            number_removed, number_changed, number_added; value_removed, value_changed,
                      value_added: a URL, an address or a placeholder
    uncovered         sentence_dropped (of two), middle_dropped (of three), clause_cut, end_cut
    invented          sentence_appended, clause_appended, stock_appended
    uncovered and invented         unrelated
    length and uncovered           too_short
    length and invented            too_long
    length            empty
    none              clean, clean_two_sentences, clean_three_sentences, clean_value, clean_doubled,
                      clean_identical, clean_capitals, clean_lower_case, clean_repetition
"""

import argparse
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

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


# --- Odd inputs


def word_repeated(m: Material) -> Row:
    base = m.sentence(3)
    words, count = base.split(), m.rng.randint(2, 40)
    at = m.rng.randrange(len(words))
    word = words[at] if at < len(words) - 1 else uncapped(words[at])
    joint = m.rng.choice([" ", " ", ", "]) if word[-1].isalnum() else " "
    words[at] = joint.join([word] * count) + words[at][len(word) :]
    return " ".join(words), base, str(count)


def phrase_repeated(m: Material) -> Row:
    base = m.sentence(7)
    words, count, size = base.split(), m.rng.randint(2, 40), m.rng.randint(2, 5)
    at = m.rng.randrange(len(words) - size)
    return (
        " ".join([*words[:at], *words[at : at + size] * count, *words[at + size :]]),
        base,
        str(count),
    )


def sentence_repeated(m: Material) -> Row:
    base, count = m.sentence(), m.rng.randint(2, 12)
    return m.rng.choice([" ", " ", "\n"]).join([base] * count), base, str(count)


def letter_repeated(m: Material) -> Row:
    base, count = m.sentence(), m.rng.randint(4, 40)
    at = m.rng.choice([i for i, letter in enumerate(base) if letter.lower() in "aeiou"])
    return base[:at] + base[at] * count + base[at + 1 :], base, str(count)


def target_language(m: Material) -> Row:
    pair = m.pair(3)
    return pair.translation, None, pair.target


def unseen_language(m: Material) -> Row:
    language = m.rng.choice(list(m.text["unseen_languages"]))
    return m.rng.choice(m.text["unseen_languages"][language]), None, language


def mixed_languages(m: Material) -> Row:
    pair, way = m.pair(6), m.rng.randrange(3)
    source, other = pair.source.split(), pair.translation.split()
    if way == 0:  # the language changes inside the sentence
        text = " ".join(source[: len(source) // 2] + other[len(other) // 2 :])
    elif way == 1:  # from sentence to sentence
        text = f"{pair.source} {m.unrelated(pair).translation}"
    else:  # a few words of the other language
        at = m.rng.randrange(len(source) - 2)
        text = " ".join([*source[:at], *other[at : at + 2], *source[at + 2 :]])
    return text, pair.source, pair.target


def capitals(m: Material) -> Row:
    base = m.sentence(2)
    return base.upper(), base, ""


def lower_case(m: Material) -> Row:
    base = m.sentence(3)
    return bare(base), base, ""


def one_word(m: Material) -> Row:
    return str(m.rng.choice(m.text["one_word"])), None, ""


def long_text(m: Material) -> Row:
    words: list[str] = []
    while len(words) < 200:
        words += m.sentence().split()
    text = " ".join(words)
    return (bare(text), None, "no punctuation") if m.rng.random() < 0.3 else (text, None, "")


def number_text(rng: random.Random) -> str:
    """A number as people write one, of 14 ways."""
    n = rng.randrange(1, 10 ** rng.randint(1, 9))
    a, b, c = rng.randint(1, 12), rng.randint(10, 59), rng.randint(1900, 2099)
    ways = [
        *(str(n), f"{n:,}", f"{n:,}".replace(",", "."), f"{n:,}".replace(",", " "), f"-{b}.{a}"),
        *(f"{b}%", f"{a}:{b}", f"{a}/{a + 9}/{c}", f"{c}-{a:02}-{b // 2:02}", f"€{b}.{a:02}"),
        *(f"+44 20 7946 0{n % 1000:03}", f"{a}-{b % 7}", f"{a}.{b}e-{a}", f"{b} × {a} = {a * b}"),
    ]
    return rng.choice(ways)


def numbers_only(m: Material) -> Row:
    count = m.rng.choice([1, 1, 2, 3, 5, 10, 30])
    joint = m.rng.choice([" ", ", ", "\n", " - "])
    return joint.join(number_text(m.rng) for _ in range(count)), None, str(count)


def word_salad(m: Material) -> Row:
    base = m.sentence(6)
    words = uncapped(base).split()
    while words == uncapped(base).split():
        m.rng.shuffle(words)
    return uncapped(" ".join(words)) + m.rng.choice(["", "."]), base, ""


def gibberish(m: Material) -> Row:
    def word() -> str:
        return "".join(m.rng.choice("".join(KEYS)) for _ in range(m.rng.randint(2, 11)))

    count = m.rng.randint(1, 14)
    return " ".join(word() for _ in range(count)), None, str(count)


def half_sentence(m: Material) -> Row:
    base = m.sentence(6)
    words = base.split()
    at = m.rng.randint(len(words) // 4 + 1, len(words) * 3 // 4)
    if m.rng.random() < 0.25:
        return " ".join(words[at:]), base, "end"
    return " ".join(words[:at]).rstrip(",;:") + m.rng.choice(OPEN_ENDS), base, "start"


def fillers(m: Material) -> Row:
    base, count = m.sentence(5), m.rng.randint(1, 4)
    words = base.split()
    for _ in range(count):
        words = put(m.rng, words, m.rng.choice(m.text["fillers"]))
    if m.rng.random() < 0.5:
        words.insert(0, m.rng.choice(m.text["openers"]))
    return " ".join(words), base, str(count)


def restarts(m: Material) -> Row:
    base, way = m.sentence(6), m.rng.randrange(4)
    words, mark = base.split(), m.rng.choice([" -", ",", "...", ""])
    at = m.rng.randint(2, max(2, len(words) // 2))
    start = " ".join(words[:at]).rstrip(",;:")
    if way == 0:  # the same words again
        return f"{start}{mark} {base}", base, "again"
    if way == 1:  # with an apology
        return f"{start}{mark} {m.rng.choice(m.text['corrections'])} {base}", base, "corrected"
    if way == 2:  # another sentence, given up
        other = " ".join(m.sentence(6).split()[:3]).rstrip(",;:")
        return (
            f"{other}{mark or ' -'} {m.rng.choice(m.text['corrections'])} {base}",
            base,
            "given up",
        )
    at = m.rng.randrange(len(words) - 1)
    head = words[at][0]
    words[at] = m.rng.choice([f"{words[at]} {words[at]} {words[at]}", f"{head}-{head}-{words[at]}"])
    return " ".join(words), base, "stutter"


def typing_error(rng: random.Random, text: str) -> str:
    """`text` with two letters swapped, or one dropped, doubled or mistyped, or a space missing."""
    at = rng.choice([i for i in range(len(text) - 2) if text[i : i + 2].isalpha()])
    way = rng.randrange(5)
    if way == 0:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    if way == 1:
        return text[:at] + text[at + 1 :]
    if way == 2:
        return text[:at] + text[at] + text[at:]
    if way == 3 and " " in text:
        at = rng.choice([i for i, letter in enumerate(text) if letter == " "])
        return text[:at] + text[at + 1 :]
    row = next((keys for keys in KEYS if text[at].lower() in keys), KEYS[0])
    near = max(0, row.find(text[at].lower()) + rng.choice([-1, 1]))
    return text[:at] + row[min(near, len(row) - 1)] + text[at + 1 :]


def typing_errors(m: Material) -> Row:
    base, count = m.sentence(4), m.rng.randint(1, 5)
    text = base
    for _ in range(count):
        text = typing_error(m.rng, text)
    return (text, base, str(count)) if text != base else typing_errors(m)


def value_text(rng: random.Random, kind: str) -> str:
    """A URL, e-mail address, placeholder or number."""
    name = rng.choice(
        [
            "live",
            "news",
            "ticket-shop",
            "radio7",
            "help",
            "my_team",
            "press",
            "weather",
            "maps",
            "q-and-a",
        ]
    )
    host = rng.choice(
        ["example.com", "example.org", "www.example.net", "intra.example", "127.0.0.1:8080"]
    )
    n = rng.randrange(1, 10 ** rng.randint(2, 6))
    if kind == "url":
        path = rng.choice(
            [f"/{name}", f"/{name}/{n}", f"/?q={name}&page={n}", f"/a/{name}.html#{n}", ""]
        )
        return rng.choice(["https://", "https://", "http://", "ftp://", ""]) + host + path
    if kind == "email":
        host = host.removeprefix("www.").replace("127.0.0.1:8080", "mail.example")
        return f"{name}{rng.choice(['', '+eu', f'.{n}', '.desk'])}@{host}"
    if kind == "placeholder":
        name = rng.choice(["name", "count", "user_id", "city", "first-name", "total"])
        digit = n % 9
        ways = [f"{{{name}}}", f"{{{{ {name} }}}}", f"%({name})s", f"{{{digit}}}", f"${{{name}}}"]
        return rng.choice(
            [
                *ways,
                "%s",
                "%d",
                f"%{digit}$s",
                f"__{name.upper()}__",
                f"<x id={digit}/>",
                f"[[{name}]]",
            ]
        )
    return number_text(rng)


def with_values(m: Material, kind: str) -> Row:
    base = m.sentence(4)
    values = [value_text(m.rng, kind) for _ in range(m.rng.choice([1, 1, 1, 2]))]
    words = base.split()
    for value in values:
        way = m.rng.randrange(3)
        if way == 0:
            words = put(m.rng, words, value)
        elif way == 1:
            last = uncapped(words[-1])
            words[-1] = f"{last} ({value}){words[-1][len(last) :]}"
        else:
            words += [m.rng.choice(["See", "More:", "Please note", "Reference:"]), value]
    return " ".join(words), base, " ".join(values)


def markup(m: Material) -> Row:
    base = m.sentence(4)
    words = base.split()
    at = m.rng.randrange(len(words) - 1)
    end = m.rng.randint(at + 1, len(words))
    part = " ".join(words[at:end])
    inside = {
        "html": f"<b>{part}</b>",
        "link": f'<a href="https://example.com/?a=1&amp;b=2">{part}</a>',
        "unclosed": f'<span class="x">{part}',
        "entity": f"{part}&nbsp;&mdash;&#160;",
        "markdown": m.rng.choice(
            [f"**{part}**", f"`{part}`", f"[{part}](https://example.org)", f"~~{part}~~"]
        ),
        "ssml": f'{part} <break time="300ms"/>',
        "latex": f"\\textbf{{{part}}}",
        "template": f"{{% if x %}}{part}{{% endif %}}",
    }
    around = {
        "paragraph": f'<p lang="en">{base}<br/></p>',
        "heading": f"## {base}",
        "list": f"- {base}\n- {m.sentence()}",
        "table": f"| {base} | {part} |",
        "subtitle": m.rng.choice(
            [f"{{\\an8}}{base}", f"<v Anna>{base}", f"1\n00:00:01,000 --> 00:00:03,500\n{base}"]
        ),
        "json": json.dumps({"id": 7, "text": base}),
        "comment": f"<!-- {part} --> {base}",
    }
    way = m.rng.choice([*inside, *around])
    text = around[way] if way in around else " ".join([*words[:at], inside[way], *words[end:]])
    return text, base, way


def emoji(m: Material) -> Row:
    base, count = m.sentence(3), m.rng.randint(1, 4)
    words = base.split()
    signs = m.rng.sample(m.text["emoji"], count)
    for sign in signs:
        words = [*words, sign] if m.rng.random() < 0.5 else put(m.rng, words, sign, 0)
    if m.rng.random() < 0.15:
        return "".join(signs), None, "alone"
    return " ".join(words), base, str(count)


def punctuation_only(m: Material) -> Row:
    count = m.rng.randint(1, 20)
    if m.rng.random() < 0.3:
        return m.rng.choice(PUNCTUATION) * count, None, "one sign"
    return m.rng.choice(["", " "]).join(m.rng.choice(PUNCTUATION) for _ in range(count)), None, ""


def unseen_names(m: Material) -> Row:
    base = m.sentence(4)
    found = re.findall(r"(?<=[a-z,] )[A-Z][^\W\d]+(?: [A-Z][^\W\d]+)*", base)
    names = [name for name in found if not CALENDAR & set(name.split())]
    new = m.rng.sample(m.text["names"], 2)
    if not names:
        return f"{new[0]}, {new[1]}: {base}", base, "before"
    text = base
    for old, name in zip(dict.fromkeys(names), new, strict=False):
        text = re.sub(rf"\b{re.escape(old)}\b", name, text)
    return text, base, "replaced"


def silence(m: Material) -> Row:
    phrases = m.rng.sample(m.text["silence"], m.rng.choice([1, 1, 1, 2, 3]))
    count = m.rng.choice([1, 1, 1, 1, 2, 5, 12]) if len(phrases) == 1 else 1
    return " ".join(phrases * count), None, str(count)


def odd_characters(m: Material) -> Row:
    base = m.sentence(3)
    rng, at = m.rng, m.rng.randrange(1, len(base) - 1)
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in base)
    ways = {
        "zero width": base[:at] + rng.choice("\u200b\u200c\u2060\ufeff") + base[at:],
        "soft hyphen": base[:at] + "\u00ad" + base[at:],
        "no-break spaces": base.replace(" ", rng.choice("\u00a0\u202f\u2003")),
        "full width": wide,
        "decomposed": unicodedata.normalize("NFD", base.replace("e", "é")),
        "homoglyphs": base.translate(HOMOGLYPHS),
        "white space": rng.choice(["  ", "\t", "\n", " \n "]).join(base.split()),
        "direction": f"\u202e{base}\u202c",
        "mojibake": f"{base[:at]}Ã©â€™{base[at:]}",
        "replacement": f"{base[:at]}\ufffd{base[at + 1 :]}",
        "accents": "".join(c + rng.choice("\u0301\u0308\u0337") for c in base),
        "no spaces": base.replace(" ", ""),
    }
    way = rng.choice(list(ways))
    return ways[way], base, way


def clean_input(m: Material) -> Row:
    base = m.sentence()
    return base, base, ""


INPUTS: dict[str, InputMaker] = {
    "clean": clean_input,
    **{
        make.__name__: make
        for make in (
            *(word_repeated, phrase_repeated, sentence_repeated, letter_repeated, target_language),
            *(
                unseen_language,
                mixed_languages,
                long_text,
                capitals,
                lower_case,
                one_word,
                numbers_only,
            ),
            *(
                word_salad,
                gibberish,
                half_sentence,
                fillers,
                restarts,
                typing_errors,
                markup,
                emoji,
            ),
            *(punctuation_only, unseen_names, silence, odd_characters),
        )
    },
    "url": lambda m: with_values(m, "url"),
    "email": lambda m: with_values(m, "email"),
    "placeholder": lambda m: with_values(m, "placeholder"),
    "number": lambda m: with_values(m, "number"),
}


# --- Faulty outputs


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
    """A translation with something behind it that the source does not say."""
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


# --- Files


def make_inputs(m: Material, each: int) -> Iterable[dict[str, Any]]:
    """Up to `each` different odd inputs of every kind."""
    for kind, make in INPUTS.items():
        rows: dict[str, Row] = {}
        for _ in range(each * 30):
            if len(rows) < each:
                row = make(m)
                rows.setdefault(row[0], row)
        for text, base, detail in rows.values():
            yield {"kind": kind, "text": text, "base": base, "detail": detail}


def make_faults(m: Material, each: int) -> Iterable[dict[str, Any]]:
    """Up to `each` different outputs of every kind, with the flags that they must get."""
    for kind, make in FAULTS.items():
        faults: dict[tuple[str, str, str], Fault] = {}
        for _ in range(each * 30):
            fault = make(m) if len(faults) < each else None
            if fault:
                key = (fault.pair.source, fault.pair.target, fault.translation)
                faults.setdefault(key, labelled(fault))
        for fault in faults.values():
            yield {
                "kind": kind,
                "flags": list(fault.flags),
                "may": list(fault.may),
                "source": fault.pair.source,
                "target": fault.pair.target,
                "translation": fault.translation,
                "clean": fault.pair.translation,
            }


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines and print how many there are of each kind."""
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            counts[row["kind"]] += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{path}: {sum(counts.values())} rows, {len(counts)} kinds: {dict(counts)}")


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sentences", type=Path, required=True, help="clean English sentences, one a line"
    )
    parser.add_argument(
        "--pairs", type=Path, required=True, help="JSON lines with source, target and translation"
    )
    parser.add_argument(
        "--inputs", type=Path, required=True, help="JSON lines of odd inputs to write"
    )
    parser.add_argument("--faults", type=Path, required=True, help="JSON lines of outputs to write")
    parser.add_argument("--each", type=int, default=100, help="rows of each kind")
    parser.add_argument("--seed", type=int, default=SEED)
    args = parser.parse_args()
    lines = args.sentences.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(x) for x in args.pairs.read_text(encoding="utf-8").splitlines()]
    text = yaml.safe_load(
        Path(__file__).with_name("held_out_text.yaml").read_text(encoding="utf-8")
    )
    pairs = [Pair(row["source"], row["target"], row["translation"]) for row in rows]
    sentences = [line for line in lines if line]
    write(
        args.inputs,
        make_inputs(Material(random.Random(args.seed), sentences, pairs, text), args.each),
    )
    write(
        args.faults,
        make_faults(Material(random.Random(args.seed), sentences, pairs, text), args.each),
    )


if __name__ == "__main__":
    main()
