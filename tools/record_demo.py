# SPDX-License-Identifier: Apache-2.0
"""Records a real run of the demo as an SVG that moves, for README.

    python tools/record_demo.py

Each line appears when the demo printed it; a pause of more than 1.5 s is shortened to that. Where a
picture does not move, its end is shown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "tools" / "demo.py"
RECORDING = ROOT / "docs" / "images" / "demo.svg"
COLUMNS = 104
ROWS = 22
LONGEST_PAUSE_S = 1.5
END_S = 6.0
LETTER_PX, LINE_PX, MARGIN_PX = 7.83, 18, 14


class Line(NamedTuple):
    """A printed line.

    Attributes:
        at_s: When it was printed, in seconds from the start.
        text: The line.
    """

    at_s: float
    text: str


def record(command: list[str]) -> list[Line]:
    """Run a command and notes when it printed which line.

    Args:
        command: The command.

    Returns:
        Its lines, standard error among them.
    """
    start = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101
        lines = [Line(time.monotonic() - start, text.rstrip("\n")) for text in process.stdout]
    if process.returncode != 0:
        raise SystemExit("\n".join(line.text for line in lines[-20:]))
    return lines


def without_long_pauses(lines: list[Line]) -> list[Line]:
    """Shortens pauses, and breaks lines that are too long for the picture."""
    shown, before_s, now_s = [], 0.0, 0.0
    for line in lines:
        now_s += min(line.at_s - before_s, LONGEST_PAUSE_S)
        before_s = line.at_s
        parts = textwrap.wrap(line.text, COLUMNS, subsequent_indent="    ", drop_whitespace=False)
        shown += [Line(now_s, part) for part in parts or [""]]
    return shown


def to_svg(lines: list[Line]) -> str:
    """Draws a terminal in which the newest line is always the last one.

    Args:
        lines: What to show, by time.

    Returns:
        The SVG: one animation moves the whole text up, line by line.
    """
    total_s = lines[-1].at_s + END_S
    last = len(lines) - ROWS
    steps = {0.0: 0}
    for number, line in enumerate(lines):
        steps[round(100 * line.at_s / total_s, 3)] = number + 1 - ROWS
    frames = "".join(
        f"{share:g}%{{transform:translateY({-LINE_PX * rows}px)}}" for share, rows in steps.items()
    )
    width = round(COLUMNS * LETTER_PX + 2 * MARGIN_PX)
    height = ROWS * LINE_PX + 2 * MARGIN_PX
    text = "".join(_text(number, line.text) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="A run of the demo">\n'
        "<style>text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "fill:#d4d7dd;white-space:pre}.c{fill:#7ee787}.s{fill:#ffffff;font-weight:bold}"
        f"@keyframes up{{{frames}100%{{transform:translateY({-LINE_PX * last}px)}}}}"
        f".t{{transform:translateY({-LINE_PX * last}px);"
        f"animation:up {total_s:.2f}s step-end infinite}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#16181d"/>\n'
        f'<svg x="{MARGIN_PX}" y="{MARGIN_PX}" width="{width - 2 * MARGIN_PX}" '
        f'height="{ROWS * LINE_PX}"><g class="t" '
        f'transform="translate(0 {-LINE_PX * last})" xml:space="preserve">\n{text}</g></svg>\n'
        "</svg>\n"
    )


def _text(number: int, text: str) -> str:
    kind = {"$": ' class="c"', ">": ' class="s"'}.get(text[:1], "")
    return f'<text{kind} y="{LINE_PX * number + 13}">{escape(text)}</text>\n' if text else ""


def main() -> int:
    """Record the demo and say where the picture is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORDING)
    args = parser.parse_args()
    lines = [Line(0.0, "$ make demo"), *record([sys.executable, str(DEMO)])]
    args.output.write_text(to_svg(without_long_pauses(lines)), encoding="utf-8")
    print(args.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
