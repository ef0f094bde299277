# SPDX-License-Identifier: Apache-2.0
"""What a probe says of a port."""

from __future__ import annotations

import socket

from ct2_triton.serve.http_probe import HttpProbe


def test_a_port_answers_while_something_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        probe = HttpProbe("127.0.0.1", listening.getsockname()[1])
        assert probe.answers()
    assert not probe.answers()
