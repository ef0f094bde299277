# SPDX-License-Identifier: Apache-2.0
"""What an update may be, and what is said of one that may not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ct2_triton.live import Caption, LiveInputError, SegmentUpdate

GOOD = b'{"segment": 7, "text": "Good morning", "final": true, "stable_chars": 4, "time": 1.5}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"segment": "1", "text": "\xff"}', "not UTF-8 at byte 26"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "the update is a JSON array; it must be an object with segment and text"),
        (b"null", "the update is a JSON null; it must be an object"),
        (b"-1.5", "the update is a JSON number; it must be an object"),
        (b"true", "the update is a JSON true or false; it must be an object"),
        (b'"a"', "the update is a JSON string; it must be an object"),
        (b'{"text": "a"}', "has no 'segment'"),
        (b'{"segment": "1"}', "has no 'text'"),
        (b'{"segment": "1", "text": "a", "txt": 1}', "unknown member 'txt'"),
        (b'{"segment": "", "text": "a"}', "segment has 0 bytes; 1 to 100"),
        (b'{"segment": "%s", "text": "a"}' % (b"x" * 101), "segment has 101 bytes"),
        (b'{"segment": true, "text": "a"}', "segment is True; it must be a text"),
        (b'{"segment": 1, "text": null}', "text is None; it must be a text"),
        (b'{"segment": 1, "text": "\\ud83d"}', "half a surrogate pair at character 0"),
        (b'{"segment": 1, "text": "a", "final": 1}', "final is 1; it must be true or false"),
        (b'{"segment": 1, "text": "a", "stable_chars": 2}', "from 0 to the length of the text, 1"),
        (b'{"segment": 1, "text": "a", "stable_chars": true}', "stable_chars is True"),
        (b'{"segment": 1, "text": "a", "time": -1}', "time is -1; it must be a number"),
        (b'{"segment": 1, "text": "a", "time": NaN}', "time is nan"),
        (b'{"segment": 1, "text": "a", "time": 1e306}', "time is 1e.306; .* 0 to 359999.999"),
        (b'{"segment": 1, "text": "a", "time": 1%s}' % (b"0" * 400), "from 0 to 359999.999,"),
        (b'{"segment": 1, "text": "a", "time": 1790000000.5}', "time is 1790000000.5; it must be"),
        (b'{"segment": 1, "text": "a", "time": 360000}', "less than 100 hours"),
    ],
)
def test_a_bad_update_is_refused_with_a_reason_and_a_good_one_taken(
    line: bytes, message: str
) -> None:
    with pytest.raises(LiveInputError, match=message.replace("(", r"\(")):
        SegmentUpdate.from_json(line)
    assert SegmentUpdate.from_json(GOOD) == SegmentUpdate("7", "Good morning", True, 4, 1.5)


@given(st.binary() | st.text())
def test_no_line_gives_another_error(line: str | bytes) -> None:
    try:
        update = SegmentUpdate.from_json(line)
    except LiveInputError:
        return
    assert isinstance(update.text, str)


def test_a_caption_as_json_leaves_out_what_it_does_not_have() -> None:
    caption = Caption("1", "deu_Latn", "Guten", " Morgen", final=False, revision=2)
    assert json.loads(caption.to_json()) == {
        "segment": "1",
        "target": "deu_Latn",
        "committed": "Guten",
        "tail": " Morgen",
        "final": False,
        "revision": 2,
        "source": "",
    }
    assert caption.shown == "Guten Morgen"
