# SPDX-License-Identifier: Apache-2.0
"""The odd inputs of the held-out set; held_out.py lists the kinds."""

import json
import random
import re
import unicodedata

from held_out_material import (
    CALENDAR,
    HOMOGLYPHS,
    KEYS,
    OPEN_ENDS,
    PUNCTUATION,
    InputMaker,
    Material,
    Row,
    bare,
    put,
    uncapped,
)


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
