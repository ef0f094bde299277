# SPDX-License-Identifier: Apache-2.0
"""The short form of the soak; the long one is `python tests/reliability/chaos.py soak`."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from reliability.soak import Soak
from server import configs
from server.helpers import Reference
from support.repository import write_model
from support.servers import EXPLICIT

pytestmark = pytest.mark.server

REQUESTS = 300
ROUNDS = 5
# What the C library keeps of memory that was freed is not what is looked for here.
GIVE_BACK = {"MALLOC_TRIM_THRESHOLD_": "131072"}


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_nothing_stays_of_requests_of_all_shapes(
    make_server: Callable[..., TritonServer],
    tmp_path: Path,
    nllb_engine_model: Path,
    decoding: str,
) -> None:
    """A leak of 20 kB a request would show in each round; what threads and pools take does not."""
    config = configs.full(inter_threads=2, decoding=decoding)
    write_model(tmp_path, "nllb", nllb_engine_model, config)
    server = make_server(tmp_path, server_arguments=EXPLICIT, environment=GIVE_BACK)
    reference = Reference(nllb_engine_model)
    resting = [-inf]
    for seed in range(ROUNDS):
        report = Soak(server, "nllb", reference, seed=seed).run(requests=REQUESTS)
        assert not report.wrong, report.wrong[:3]
        resting.append(report.trimmed_mib)
        if resting[-1] < resting[-2] + 6:
            return
    raise AssertionError(f"it grows by 6 MiB with each {REQUESTS} requests: {resting[1:]}")
