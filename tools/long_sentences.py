# SPDX-License-Identifier: Apache-2.0
"""Lists sentences of over 30 words in documents: readers whose first language is another tire.

python tools/long_sentences.py                   # README, CONTRIBUTING and docs/
python tools/long_sentences.py docs/prepare.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_WORDS = 30
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:])(?:\*\*)?\s+(?=[A-Z`*\[])")
_WORD = re.compile(r"[\w'`/.-]*\w[\w'`/.-]*")


def long_sentences(text: str) -> list[tuple[int, str]]:
    """Find them; code, tables and headings are left out.

    Args:
        text: A document in Markdown.

    Returns:
        For each the number of words, and the sentence.
    """
    found = []
    for block in _BLOCK.split(_CODE.sub("", text)):
        lines = [line for line in block.splitlines() if not line.lstrip().startswith(("|", "#"))]
        for sentence in _END.split(_LINK.sub(r"\1", " ".join(line.strip() for line in lines))):
            words = len(_WORD.findall(sentence))
            if words > MOST_WORDS:
                found.append((words, sentence))
    return found


def main() -> int:
    """Print them by file; the last line counts them."""
    usual = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    total = 0
    for path in [Path(name) for name in sys.argv[1:]] or usual:
        for words, sentence in long_sentences(path.read_text(encoding="utf-8")):
            print(f"{path.name}: {words}: {sentence}")
            total += 1
    print(f"{total} sentences of over {MOST_WORDS} words")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
