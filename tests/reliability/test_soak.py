# SPDX-License-Identifier: Apache-2.0
"""The short form of the soak; the long one is `python tests/reliability/chaos.py soak`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from reliability import observe
from reliability.soak import Soak
from server import configs
from server.helpers import Reference
from support.repository import write_model
from support.servers import EXPLICIT
from support.waiting import wait_until

pytestmark = pytest.mark.server

REQUESTS = 300
# What the C library keeps of memory that was freed is not what is looked for here.
GIVE_BACK = {"MALLOC_TRIM_THRESHOLD_": "131072"}


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_nothing_stays_of_requests_of_all_shapes(
    make_server: Callable[..., TritonServer],
    tmp_path: Path,
    nllb_engine_model: Path,
    decoding: str,
) -> None:
    """A leak of 20 kB a request would show. What threads and pools take once is there before."""
    config = configs.full(inter_threads=2, decoding=decoding)
    write_model(tmp_path, "nllb", nllb_engine_model, config)
    server = make_server(tmp_path, server_arguments=EXPLICIT, environment=GIVE_BACK)
    reference = Reference(nllb_engine_model)
    warm_up = Soak(server, "nllb", reference, seed=2).run(requests=REQUESTS / 2)
    report = Soak(server, "nllb", reference, seed=1).run(requests=REQUESTS)
    assert not warm_up.wrong + report.wrong, report.wrong[:3]
    # An unloaded model gives its memory back a little later than Triton says that it is gone.
    most = warm_up.trimmed_mib + 6
    wait_until(lambda: observe.resident_mib(server) < most, f"at most {most} MiB; {report}")
