# SPDX-License-Identifier: Apache-2.0
"""What ct2-translate bulk says of its progress where standard error is no terminal."""

from __future__ import annotations

import logging
import re

import pytest

from ct2_triton.bulk import cli
from ct2_triton.translate.files import Progress


def test_the_last_line_of_progress_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_LOG_EVERY_S", -1.0)  # a line for each block
    with caplog.at_level(logging.INFO, logger="ct2_triton"):
        shown = cli._Shown(Progress(total=4, done=0))
        for lines in (1, 1, 2):
            shown.add(lines)
        shown.finish()
    shown_lines = re.findall(r"\d of 4 lines", caplog.text)
    assert shown_lines == ["1 of 4 lines", "2 of 4 lines", "4 of 4 lines"]
