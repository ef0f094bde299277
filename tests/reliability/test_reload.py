# SPDX-License-Identifier: Apache-2.0
"""The short form of the reload loop; the long one is `python tests/reliability/chaos.py reload`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from reliability import observe
from reliability.reload_loop import ReloadLoop, large_models, write_reload_repository
from server import configs
from server.helpers import Connection, Reference, sentences
from support.repository import write_model
from support.servers import EXPLICIT
from support.waiting import wait_until

pytestmark = pytest.mark.server

ROUNDS = 12
LIMIT = {"max_decoding_length": 8}


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_reloads_under_traffic(
    make_server: Callable[..., TritonServer], tmp_path: Path, decoding: str
) -> None:
    """Every answer is of weights that may answer; memory stays; both other versions answer."""
    engine_models = large_models()
    write_reload_repository(tmp_path, engine_models, decoding)
    server = make_server(tmp_path, server_arguments=EXPLICIT)
    report = ReloadLoop(server, tmp_path, engine_models).run(ROUNDS)
    assert not report.wrong, report.wrong[:5]
    assert report.rounds == ROUNDS
    assert min(report.answered.values()) > 0
    assert set(report.answered) == {"loop", "steady", "gone"}
    # The weights that each load leaves behind would be nine times as much. What threads keep of
    # rows that ran at that moment comes and goes: up to 2.4 weights were seen. That freed weights
    # go back to the system is shown where nothing else runs: server/test_lifecycle.py.
    weights_mib = (engine_models[0] / "model.bin").stat().st_size / 2**20
    assert min(report.resident_mib[-3:]) < min(report.resident_mib[:3]) + 5 * weights_mib
    # One thread left behind by each load would be six of them. gRPC's pool may grow by a few.
    assert min(report.threads[-3:]) < max(report.threads[:4]) + 6


def test_the_weights_of_the_same_files_are_in_memory_once(
    make_server: Callable[..., TritonServer], tmp_path: Path, nllb_engine_model: Path
) -> None:
    """Three models on the same files cost what one costs, until the last of them is unloaded."""
    large, _ = large_models()
    weights_mib = (large / "model.bin").stat().st_size / 2**20
    names = ["one", "two", "three"]
    for name in names:
        folder = tmp_path / name / "1" / "model"
        folder.mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(configs.plain(inter_threads=1))
        for file in large.iterdir():
            (folder / file.name).symlink_to(file)
    write_model(tmp_path, "tiny", nllb_engine_model, configs.plain())  # brings the library
    explicit = ["--model-control-mode=explicit", "--load-model=tiny"]
    server = make_server(tmp_path, server_arguments=explicit)
    connection = Connection(server.grpc_url)
    reference = Reference(large)
    (row, prefix), *_ = sentences(reference, 1)
    expected = reference.translate(row, prefix, **LIMIT)
    before = observe.resident_mib(server)
    connection.translate("tiny", row, prefix, **LIMIT)
    for name in names:
        connection.raw.load_model(name)
        assert connection.translate(name, row, prefix, **LIMIT) == expected
    assert observe.resident_mib(server) < before + 2 * weights_mib
    for name in names:
        assert connection.translate(names[-1], row, prefix, **LIMIT) == expected
        connection.raw.unload_model(name)
    wait_until(
        lambda: observe.resident_mib(server) < before + weights_mib / 2, "the weights to be freed"
    )
    connection.close()
