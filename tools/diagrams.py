# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/how-it-works.md as SVG from the tables below.

python tools/diagrams.py            write docs/images/architecture.svg and request.svg
python tools/diagrams.py --check    fail when one is out of date
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path

from generated_file import write_or_check

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_LINE = 17  # pixels between two lines of text


@dataclass(frozen=True)
class Box:
    """A box with a title and lines of text. Coordinates are pixels of its left upper corner."""

    x: int
    y: int
    width: int
    height: int
    lines: tuple[str, ...]
    fill: str = "#ffffff"


@dataclass(frozen=True)
class Arrow:
    """An arrow through these points; its label, if any, and the middle of that."""

    points: tuple[tuple[int, int], ...]
    label: tuple[str, int, int] = ("", 0, 0)


@dataclass(frozen=True)
class Picture:
    """A picture: its size, its description for readers who do not see it, and what is on it."""

    width: int
    height: int
    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


_CLIENT, _SERVER, _OURS, _ENGINE = "#e8f0fe", "#f6f6f6", "#e6f4ea", "#fef7e0"

ARCHITECTURE = Picture(
    width=860,
    height=420,
    title="The parts of a translation server",
    boxes=(
        Box(10, 60, 170, 62, ("Python client", "ct2-translate, ct2-live"), _CLIENT),
        Box(10, 150, 170, 62, ("ct2-gateway", "LibreTranslate's API"), _CLIENT),
        Box(10, 240, 170, 62, ("Any other client", "gRPC, curl, browser"), _CLIENT),
        Box(250, 10, 600, 400, ("tritonserver",), _SERVER),
        Box(265, 140, 130, 82, ("gRPC, HTTP", "versions, metrics,", "traces"), "#ffffff"),
        Box(420, 50, 415, 345, ("backend (shared library)",), _OURS),
        Box(440, 90, 170, 82, ("Front", "checks rows; splits and", "tokenizes text")),
        Box(645, 90, 170, 82, ("Queue", "fair between requests,", "bounded")),
        Box(440, 215, 170, 82, ("Decode loops", "continuous batching,", "packed weights"), _ENGINE),
        Box(645, 215, 170, 82, ("CTranslate2 calls", "other options, GPU"), _ENGINE),
        Box(440, 325, 375, 50, ("Scheduler", "one worker thread per core, for all models")),
    ),
    arrows=(
        Arrow(((180, 91), (265, 160))),
        Arrow(((180, 181), (265, 181))),
        Arrow(((180, 271), (265, 202))),
        Arrow(((395, 160), (440, 140))),
        Arrow(((610, 131), (645, 131)), ("rows", 627, 123)),
        Arrow(((690, 172), (560, 215)), ("admission", 575, 191)),
        Arrow(((740, 172), (740, 215))),
        Arrow(((525, 325), (525, 297))),
        Arrow(((730, 325), (730, 297))),
    ),
)

REQUEST = Picture(
    width=860,
    height=330,
    title="The life of a request with two rows",
    boxes=(
        Box(10, 30, 120, 70, ("Client", "sends a request"), _CLIENT),
        Box(160, 30, 120, 70, ("Front", "checks each row"), _OURS),
        Box(310, 30, 120, 70, ("Queue", "rows wait"), _OURS),
        Box(460, 30, 120, 70, ("Admission", "between steps"), _OURS),
        Box(610, 30, 120, 70, ("Prefill", "encoder, prefix"), _ENGINE),
        Box(160, 150, 80, 44, ("step n",), _ENGINE),
        Box(250, 150, 80, 44, ("step n+1",), _ENGINE),
        Box(340, 150, 80, 44, ("step n+2",), _ENGINE),
        Box(430, 150, 80, 44, ("step n+3",), _ENGINE),
        Box(520, 150, 80, 44, ("step n+4",), _ENGINE),
        Box(250, 205, 170, 24, ("row 1 ends: stop",), "#ffffff"),
        Box(250, 237, 260, 24, ("row 2 ends: stop; response",), "#ffffff"),
        Box(160, 269, 440, 24, ("rows of other clients join and leave at any step",), "#f6f6f6"),
        Box(670, 180, 180, 70, ("Front", "writes tensors or text"), _OURS),
    ),
    arrows=(
        Arrow(((130, 65), (160, 65))),
        Arrow(((280, 65), (310, 65))),
        Arrow(((430, 65), (460, 65))),
        Arrow(((580, 65), (610, 65))),
        Arrow(
            ((670, 100), (670, 125), (290, 125), (290, 150)),
            ("one token a row and step", 480, 119),
        ),
        Arrow(((510, 249), (635, 249), (635, 215), (670, 215))),
        Arrow(
            ((760, 250), (760, 312), (70, 312), (70, 100)),
            ("response, when the last row has ended", 400, 307),
        ),
    ),
)


def draw(picture: Picture) -> str:
    """Return the picture as SVG text."""
    size = f'width="{picture.width}" height="{picture.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {picture.width} '
        f'{picture.height}" font-family="sans-serif" font-size="13" fill="#202124">',
        "<!-- Written by tools/diagrams.py. -->",
        f"<title>{escape(picture.title)}</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#5f6368"/></marker></defs>',
        f'<rect {size} fill="#ffffff"/>',
    ]
    parts += [part for box in picture.boxes for part in _box(box)]
    parts += [part for arrow in picture.arrows for part in _arrow(arrow)]
    return "\n".join([*parts, "</svg>", ""])


def _box(box: Box) -> list[str]:
    parts = [
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6" '
        f'fill="{box.fill}" stroke="#5f6368"/>'
    ]
    # The title of a box that holds others stands at its top, other text in the middle.
    is_frame = len(box.lines) == 1 and box.height > 100
    text_height = _LINE * len(box.lines)
    top = box.y + 20 if is_frame else box.y + (box.height - text_height) // 2 + 13
    for at, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if at == 0 and (len(box.lines) > 1 or is_frame) else ""
        parts.append(
            f'<text x="{box.x + box.width // 2}" y="{top + at * _LINE}" '
            f'text-anchor="middle"{weight}>{escape(line)}</text>'
        )
    return parts


def _arrow(arrow: Arrow) -> list[str]:
    points = " ".join(f"{x},{y}" for x, y in arrow.points)
    line = f'<polyline points="{points}" fill="none" stroke="#5f6368" marker-end="url(#head)"/>'
    label, x, y = arrow.label
    if not label:
        return [line]
    text = f'<text x="{x}" y="{y}" text-anchor="middle" font-size="12">{escape(label)}</text>'
    return [line, text]


PICTURES = {IMAGES / "architecture.svg": ARCHITECTURE, IMAGES / "request.svg": REQUEST}


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pictures; `arguments` are those of the command line."""
    return max(
        write_or_check("diagrams.py", __doc__, file, partial(draw, picture), arguments)
        for file, picture in PICTURES.items()
    )


if __name__ == "__main__":
    sys.exit(main())
