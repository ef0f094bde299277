# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ct2_triton.serve.server_log import lines_that_matter

_LOG = r"""
I1121 10:56:06.833500 7997 model_lifecycle.cc:472] "loading: bad:1"
E1121 10:56:06.832733 7997 server.cc:241] "CudaDriverHelper has not been initialized."
E1121 10:56:06.833726 7997 model_lifecycle.cc:642] "failed to load 'bad' version 1: \"beam\"\nis 0"
E1121 10:56:06.833727 7997 model_lifecycle.cc:642] "failed to load 'bad' version 1: \"beam\"\nis 0"
W1121 10:56:06.834602 7997 metrics.cc:798] "DCGM unable to start: DCGM initialization error"
Error: Failed to initialize NVML
error: creating server: Internal - failed to load all models
"""


def test_errors_are_unescaped_once_each_and_harmless_ones_left_out() -> None:
    assert lines_that_matter(_LOG.splitlines(keepends=True)) == [
        "failed to load 'bad' version 1: \"beam\"\nis 0",
        "creating server: Internal - failed to load all models",
    ]


def test_a_long_list_keeps_its_beginning_and_its_end() -> None:
    log = [f'E1121 10:56:06.833726 7997 model.cc:1] "error {n}"\n' for n in range(30)]
    lines = lines_that_matter(log)
    assert lines[:2] == ["error 0", "error 1"]
    assert lines[-2:] == ["... 10 more errors ...", "error 29"]
    assert len(lines) == 21


def test_text_that_is_not_escaped_is_kept_as_it_is() -> None:
    assert lines_that_matter(['E1121 1:2:3.4 7 a.cc:1] plain "text"']) == ['plain "text"']


def test_a_log_without_errors_gives_nothing() -> None:
    assert lines_that_matter(['I1121 1:2:3.4 7 a.cc:1] "fine"']) == []
