# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/how-it-works.md are what their script draws."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import diagrams


def test_the_pictures_are_up_to_date() -> None:
    assert diagrams.main(["--check"]) == 0


def test_each_is_svg_with_the_text_of_its_boxes() -> None:
    for file, picture in diagrams.PICTURES.items():
        root = ET.fromstring(file.read_text(encoding="utf-8"))  # noqa: S314  our own file
        shown = {element.text for element in root.iter() if element.tag.endswith("}text")}
        assert {line for box in picture.boxes for line in box.lines} <= shown
