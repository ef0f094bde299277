# SPDX-License-Identifier: Apache-2.0
"""Load, reload and unload under traffic, versions, instances, the end of the server."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Ids, Reference, sentences
from server.moments import Occupied, in_backend
from support.endless import ALLOWS_ENDLESS, endless_model
from support.repository import write_model
from support.servers import EXPLICIT, MakeServer
from support.tiny import TinyOptions, tiny_engine_model
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}
ONE_WORKER = {"inter_threads": 1, "intra_threads": 1}


@pytest.fixture(scope="session")
def other_model() -> Path:
    """The same vocabulary, other weights."""
    return tiny_engine_model("nllb", TinyOptions(d_model=48))


class Traffic:
    """Clients that ask for one row again and again until told to stop."""

    def __init__(self, server: TritonServer, model: str, row: Ids, prefix: Ids) -> None:
        self.answers: list[tuple[float, Ids | Exception]] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(server.grpc_url, model, row, prefix))
            for _ in range(4)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        self.wait_for(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Waits until so many more answers are in."""
        wanted = len(self.answers) + more
        while len(self.answers) < wanted:
            time.sleep(0.01)

    def _run(self, url: str, model: str, row: Ids, prefix: Ids) -> None:
        connection = Connection(url)
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                answer: Ids | Exception = connection.translate(model, row, prefix, **LIMIT)
            except InferenceServerException as error:
                answer = error
            self.answers.append((started, answer))
        connection.close()


def test_a_reload_under_traffic_serves_the_new_weights(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    server_repository: Path,
    nllb_engine_model: Path,
    other_model: Path,
    reference: Reference,
) -> None:
    """No request fails, and none that starts after a reload gets an answer of the old weights."""
    model = load(configs.plain())
    row, prefix = sentences(reference, 1)[0]
    expected = {
        folder: Reference(folder).translate(row, prefix, **LIMIT)
        for folder in (nllb_engine_model, other_model)
    }
    assert expected[nllb_engine_model] != expected[other_model]
    files = server_repository / model / "1" / "model"
    with Traffic(server, model, row, prefix) as traffic:
        for folder in (other_model, nllb_engine_model, other_model):
            shutil.copytree(folder, files, dirs_exist_ok=True)
            connection.raw.load_model(model)
            loaded = time.monotonic()
            traffic.wait_for(20)
            late = [answer for started, answer in list(traffic.answers) if started > loaded]
            assert late
            assert all(answer == expected[folder] for answer in late)
    assert all(answer in expected.values() for _, answer in traffic.answers)


def test_unloading_under_traffic_answers_everything(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    """Each request is answered, or refused because the model has gone."""
    model = load(configs.plain())
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(row, prefix, **LIMIT)
    with Traffic(server, model, row, prefix) as traffic:
        connection.raw.unload_model(model)
        traffic.wait_for(20)
        connection.raw.load_model(model)
        traffic.wait_for(20)
    answers = [answer for _, answer in traffic.answers]
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert all(answer == expected for answer in answers if not isinstance(answer, Exception))
    assert all("has no available versions" in str(error) for error in refused)
    assert answers[-1] == expected


def test_unloading_with_requests_queued_answers_them(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """The first of them runs, and the others wait for the only worker."""
    settings = {**ONE_WORKER, **ALLOWS_ENDLESS, "max_batch_rows": 1, "decoding": "calls"}
    model = load(configs.plain(**settings), engine_model=endless_model())
    rows = sentences(reference, 24)
    long = {"beam_size": 1, "min_decoding_length": 400, "max_decoding_length": 400}
    roomy = Reference(endless_model())
    expected = [roomy.translate(row, prefix, **long) for row, prefix in rows]
    with Occupied(connection, model, *rows[0]):
        queued = [connection.start(model, [row], [prefix], **long) for row, prefix in rows]
        last = in_backend(connection, model, *rows[1], "last", **long)
    connection.raw.unload_model(model)
    assert last.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected[1]]
    for answer, ids in zip(queued, expected, strict=True):
        assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [ids]


def test_two_versions(
    load: LoadModel,
    connection: Connection,
    server_repository: Path,
    other_model: Path,
    reference: Reference,
) -> None:
    model = load(configs.plain("version_policy { all {} }"))
    shutil.copytree(other_model, server_repository / model / "2" / "model")
    connection.raw.load_model(model)
    row, prefix = sentences(reference, 1)[0]
    newer = Reference(other_model).translate(row, prefix, **LIMIT)
    older = reference.translate(row, prefix, **LIMIT)
    assert older != newer
    for version, expected in (("1", older), ("2", newer), ("", newer)):
        answer = connection.infer(model, [row], [prefix], version=version, **LIMIT)
        assert answer["OUTPUT_IDS"].tolist() == [expected]


def test_instances_come_and_go_without_a_reload(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    server_repository: Path,
    reference: Reference,
) -> None:
    model = load(configs.plain("instance_group { count: 1 kind: KIND_CPU }"))
    file = server_repository / model / "config.pbtxt"
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(row, prefix, **LIMIT)
    with Traffic(server, model, row, prefix) as traffic:
        for count in (3, 1, 2):
            file.write_text(configs.plain(f"instance_group {{ count: {count} kind: KIND_CPU }}"))
            connection.raw.load_model(model)
            (group,) = connection.raw.get_model_config(model).config.instance_group
            assert group.count == count
            traffic.wait_for(20)
    assert all(answer == expected for _, answer in traffic.answers)


def resident_kib(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def test_reloads_do_not_make_the_process_grow(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path
) -> None:
    """20 MB of weights, 20 times: without malloc_trim those of four would stay with old threads.

    On a server of its own: what threads keep of other tests' requests is not counted.
    """
    large = tiny_engine_model("nllb", TinyOptions(vocab_size=40_000, d_model=128))
    weights_kib = (large / "model.bin").stat().st_size // 1024
    assert weights_kib > 20_000
    write_model(tmp_path, "other", nllb_engine_model)
    write_model(tmp_path, "large", large)
    server = make_server(tmp_path, server_arguments=EXPLICIT)
    connection = Connection(server.grpc_url)

    def unload() -> None:
        connection.raw.unload_model("large")
        wait_until(lambda: not connection.raw.is_model_ready("large"))

    unload()
    before = resident_kib(server.process.pid)
    for _ in range(20):
        connection.raw.load_model("large")
        unload()
    wait_until(lambda: resident_kib(server.process.pid) < before + 3 * weights_kib)
    connection.close()


def test_the_server_ends_with_requests_in_flight(make_server: Any, tmp_path: Path) -> None:
    """They are answered, and the process ends by itself, with status 0."""
    reference = Reference(endless_model())
    write_model(tmp_path, "nllb", endless_model())
    server = make_server(tmp_path, server_arguments=["--exit-timeout-secs=600"])
    connection = Connection(server.grpc_url)
    rows = sentences(reference, 3)
    options = {"beam_size": 1, "min_decoding_length": 4000, "max_decoding_length": 4000}
    begin = {"beam_size": 1, "min_decoding_length": 300, "max_decoding_length": 300}
    expected = [reference.translate(row, prefix, **begin) for row, prefix in rows]
    pending = [
        in_backend(connection, "nllb", row, prefix, f"row {i}", **options)
        for i, (row, prefix) in enumerate(rows)
    ]
    assert server.stop() == 0
    for answer, ids in zip(pending, expected, strict=True):
        [found] = answer.get_result().as_numpy("OUTPUT_IDS").tolist()
        assert (len(found), found[:300]) == (4000, ids)
    connection.close()
