# SPDX-License-Identifier: Apache-2.0
"""How often the gateway finds the language of a text, from one word on (benchmarks/gateway.md).

The texts are the strings of Django's pages, as its translators wrote them (package index), and
paragraphs of the Universal Declaration of Human Rights (npm), cut after some words. An answer is
right if it is a language that has this very text.

    python benchmarks/measure_detection.py FOLDER

Where LibreTranslate is installed, its detector is given the same texts.
"""

from __future__ import annotations

import argparse
import gettext
import html
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from ct2_triton.gateway.detection import Detector
from tokenizer_lines import fetch

DEMO = ["de", "en", "es", "fr", "it", "nl", "pt"]
LANGUAGES = [
    "ar", "az", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi",
    "fr", "ga", "gl", "he", "hi", "hu", "id", "it", "ja", "ko", "ky", "lt", "lv", "ms", "nb", "nl",
    "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "th", "tl", "tr", "uk", "ur", "vi", "zh",
]  # fmt: skip
DJANGO = "Django-5.2-py3-none-any.whl"
WORDS = (1, 2, 3, 5, 8)
# The package's tags for the usual form of a language that has several.
_TAGS = {
    "arb": "ar", "az-Latn": "az", "de-1996": "de", "el-monoton": "el", "fil": "tl", "zh-Hans": "zh",
    "zh-Hant": "zh", "cmn-Hans": "zh", "cmn-Hant": "zh", "pt-BR": "pt", "pt-PT": "pt",
}  # fmt: skip
_ENTRY = re.compile(r"bcp47: '([^']*)',\s*code: '([^']*)'")
_PARAGRAPH = re.compile(r"<(?:p|li)[^>]*>(.*?)</(?:p|li)>", re.DOTALL)
_MESSAGE = re.compile(r'^msgid "([^"\\%{}<>]*[a-zA-Z][^"\\%{}<>]*)"$\nmsgstr', re.MULTILINE)
_LEAST = 20  # characters of a paragraph

Texts = dict[str, set[str]]  # and the languages that have them
Detect = Callable[[str], str]


def paragraphs(archive: Path) -> dict[str, list[str]]:
    """Return the Declaration's paragraphs in each language."""
    found: dict[str, list[str]] = defaultdict(list)
    with tarfile.open(archive) as files:

        def read(name: str) -> str:
            stream = files.extractfile(name)
            return stream.read().decode() if stream else ""

        names = set(files.getnames())
        for tag, code in _ENTRY.findall(read("package/index.js")):
            language = _TAGS.get(tag, tag)
            name = f"package/declaration/{code}.html"
            # Codes with digits are those of dialects.
            if language in LANGUAGES and name in names and not code.isdigit():
                for paragraph in _PARAGRAPH.findall(read(name)):
                    text = html.unescape(re.sub(r"<[^>]+>|\s+", " ", paragraph)).strip()
                    if len(text) >= _LEAST:
                        found[language].append(text)
    return found


def page_strings(folder: Path) -> Texts:
    """Return the strings of Django's pages that have no placeholders."""
    if not (folder / DJANGO).exists():
        name, version, _ = DJANGO.split("-", 2)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", f"{name}=={version}"]
        subprocess.run([*command, "-d", str(folder)], check=True)
    found: Texts = defaultdict(set)
    with zipfile.ZipFile(folder / DJANGO) as files:
        names = set(files.namelist())
        of_english = "en/LC_MESSAGES/django.po"
        for english in sorted(one for one in names if one.endswith("/" + of_english)):
            messages = _MESSAGE.findall(files.read(english).decode())
            for language in LANGUAGES:
                tag = {"zh": "zh_Hans"}.get(language, language)
                catalog = f"{english.removesuffix(of_english)}{tag}/LC_MESSAGES/django.mo"
                if language == "en" or catalog in names:
                    translated = gettext.GNUTranslations(io.BytesIO(files.read(catalog))).gettext
                    for message in messages:
                        text = message if language == "en" else translated(message)
                        if language == "en" or text != message:
                            found[text.replace("\xad", "")].add(language)
    return found


def samples(folder: Path) -> dict[str, Texts]:
    """Return texts of each length."""
    found: dict[str, Texts] = {}
    strings = page_strings(folder)
    for least, most in zip(WORDS, (*(n - 1 for n in WORDS[1:]), 99), strict=True):
        span = (
            str(least)
            if most == least
            else f"{least} to {most}"
            if most < 99
            else f"{least} or more"
        )
        title = f"strings of pages of {span} {'word' if span == '1' else 'words'}"
        found[title] = {t: of for t, of in strings.items() if least <= len(t.split()) <= most}
    declaration = paragraphs(fetch(folder))
    for most in (*WORDS, None):
        cut: Texts = defaultdict(set)
        for language, texts in declaration.items():
            for text in texts:
                cut[" ".join(text.split()[:most])].add(language)
        found[f"paragraphs, words 1 to {most}" if most else "paragraphs"] = cut
    return found


def gateway_detector(languages: Iterable[str]) -> Detect:
    """Return the gateway's detector."""
    detector = Detector(list(languages), lambda name: {"no": "nb"}.get(name, name))
    return lambda text: detector.detect(text)[0].language


def libretranslate_detector(languages: Iterable[str]) -> Detect:
    """Return LibreTranslate's detector."""
    from libretranslate.detect import Detector as Other

    detector = Other(["no" if code == "nb" else code for code in languages])
    return lambda text: {"no": "nb"}.get(code := detector.detect(text)[0].code, code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the packages are kept")
    by_length = samples(parser.parse_args().folder)
    makers = {"gateway": gateway_detector}
    try:
        import libretranslate  # noqa: F401
    except ImportError:
        pass
    else:
        makers["LibreTranslate"] = libretranslate_detector
    for languages in (DEMO, LANGUAGES):
        detectors = {name: make(languages) for name, make in makers.items()}
        print(f"\nAmong {len(languages)} languages:\n")
        print(f"| texts | number | {' | '.join(detectors)} | worst of the gateway |")
        print(f"|{'---|' * (len(detectors) + 3)}")
        for title, texts in by_length.items():
            print(_row(title, texts, set(languages), detectors), flush=True)


def _row(title: str, texts: Texts, languages: set[str], detectors: dict[str, Detect]) -> str:
    asked = {text: of & languages for text, of in texts.items() if of & languages}
    shares: list[str] = []
    by_language: dict[str, list[bool]] = {}
    for name, detect in detectors.items():
        right = {text: detect(text) in of for text, of in asked.items()}
        shares.append(f"{sum(right.values()) / len(right):.1%}")
        if name == "gateway":
            by_language = {
                language: [right[text] for text, of in asked.items() if language in of]
                for language in languages
            }
    means = sorted((sum(one) / len(one), language) for language, one in by_language.items() if one)
    worst = ", ".join(f"{language} {share:.0%}" for share, language in means[:3])
    return f"| {title} | {len(asked)} | {' | '.join(shares)} | {worst} |"


if __name__ == "__main__":
    main()
