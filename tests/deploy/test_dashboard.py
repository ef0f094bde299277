# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alerts, on a real Prometheus that watches a real server under load."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dashboard
import model_bin
from ct2_triton import _core
from ct2_triton.serve import TritonServer
from server import configs
from server.helpers import LANGUAGES, Connection, Reference, padded, sentences
from server.moments import Occupied
from support.endless import ALLOWS_ENDLESS, endless_model
from support.prometheus import CONFIG, MISSING, Prometheus, binary
from support.repository import write_model
from support.servers import ServerStack
from support.waiting import wait_until

needs_prometheus = pytest.mark.skipif(binary("prometheus") is None, reason=MISSING)

UNKNOWN = 3  # <unk> of the tiny NLLB model
GREEDY = {"beam_size": 1, "max_decoding_length": 30}
QUERIES = [
    pytest.param(query, id=f"{panel.title}: {legend}")
    for panels in dashboard.SECTIONS.values()
    for panel in panels
    for legend, query in panel.queries.items()
]


def test_the_dashboard_is_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dashboard.main(["--check"]) == 0
    file = tmp_path / "other.json"
    assert dashboard.main(["--check", "--file", str(file)]) == 1
    assert "run tools/dashboard.py" in capsys.readouterr().err
    assert dashboard.main(["--file", str(file)]) == 0
    assert file.read_bytes() == dashboard.FILE.read_bytes()


def test_every_metric_of_the_table_has_a_panel_and_no_other() -> None:
    shown = json.loads(dashboard.FILE.read_text(encoding="utf-8"))
    text = " ".join(t["expr"] for panel in shown["panels"] for t in panel.get("targets", []))
    names = {re.sub("_bucket$", "", name) for name in re.findall(r"\bct2_[a-z_]+", text)}
    # That one says how old a page is: for tests.
    assert names == {metric["name"] for metric in _core.metrics()} - {"ct2_publications_total"}


@needs_prometheus
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
    ],
)
def test_promtool(command: list[str]) -> None:
    result = subprocess.run(
        [binary("promtool") or "", *command], cwd=CONFIG.parent, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_has_a_unit_test_and_a_fault() -> None:
    alerts = set(re.findall(r"alert: (\w+)", CONFIG.with_name("alerts.yml").read_text()))
    tested = CONFIG.with_name("alerts_test.yml").read_text()
    assert set(re.findall(r"alertname: (\w+)\n +exp_alerts", tested)) == alerts
    elsewhere = {"Ct2ServerGone", "Ct2GpuLost"}  # the latter: tests/server/test_emulated_gpu.py
    assert {name for name, _ in FAULTS} | elsewhere == alerts


# What fires, and for which model, once the traffic below has its faults.
FAULTS = {
    ("Ct2QueueGrowing", "crowded"),
    ("Ct2AnswersCutOff", "short"),
    ("Ct2UnknownTokens", "live"),
    ("Ct2LoopRefused", "unlooped"),
    ("Ct2RequestsRefused", "refusing"),
}


def _write_models(repository: Path, engine_model: Path, folder: Path, reference: Reference) -> None:
    """A model that has all that panels show, and one for each fault."""
    mapped = folder / "mapped"
    shutil.copytree(engine_model, mapped)
    tokens = [*reference.tokens(list(range(20, 1000))), *LANGUAGES, "</s>"]
    (mapped / "vmap.txt").write_text("\t" + " ".join(tokens) + "\n", encoding="utf-8")
    drafts = configs.entry("input", "DRAFT_IDS", "TYPE_INT32", "[-1]", "optional: true")
    live = configs.plain(drafts, **GREEDY, pad_id=1, inter_threads=1, use_vmap=True)
    written = write_model(repository, "live", mapped, live)
    languages = [
        {
            "code": code,
            "target": True,
            "target_prefix_ids": [reference.id(code)],
            "target_source_ids": [],
        }
        for code in LANGUAGES
    ]
    (written / "tokenizer").mkdir()
    (written / "tokenizer" / "languages.json").write_text(json.dumps({"languages": languages}))
    one = {"inter_threads": 1, "intra_threads": 1, "max_batch_rows": 1, "pad_id": 1}
    crowded = configs.plain(max_queued_rows=4, **one, **ALLOWS_ENDLESS)
    write_model(repository, "crowded", endless_model(), crowded)
    short = configs.plain(beam_size=1, max_decoding_length=2)
    write_model(repository, "short", engine_model, short)
    write_model(repository, "refusing", engine_model, configs.plain(**GREEDY))
    unlooped = model_bin.edited_copy(engine_model, folder / "odd", flags={"decoder/novelty": 1})
    write_model(repository, "unlooped", unlooped, configs.plain(**GREEDY))


class Traffic:
    """Requests without an end, on a thread of their own. Faults come once they are asked for."""

    def __init__(self, url: str, reference: Reference) -> None:
        self._connection = Connection(url)
        self.reference = reference
        self._rows = sentences(reference, 8)
        self._thread = threading.Thread(target=self._run)
        self._stop = threading.Event()
        self.faults = threading.Event()
        self.error: BaseException | None = None

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._connection.close()
        if self.error:
            raise self.error

    def stop(self) -> None:
        """Sends no more, and waits for the answers."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._live()
                if self.faults.is_set():
                    self._do_wrong()
        except BaseException as error:
            self.error = error

    def _live(self) -> None:
        """Greedy rows that join others, equal rows and sources, beams with padding."""
        send = self._connection.start
        ids = padded([row for row, _ in self._rows])
        prefixes = [prefix for _, prefix in self._rows]
        pending = [send("live", [row], [prefix]) for row, prefix in self._rows]
        pending += [send("live", [self._rows[0][0]] * 8, prefixes), send("live", ids, prefixes)]
        pending += [send("live", ids, prefixes, beam_size=2, quality=True)]
        pending += [send("live", ids, prefixes, more={"DRAFT_IDS": prefixes})]
        for each in pending:
            each.get_result()

    def _do_wrong(self) -> None:
        send = self._connection.start
        ids = padded([row for row, _ in self._rows])
        prefixes = [prefix for _, prefix in self._rows]
        pending = [send("short", ids, prefixes)]
        pending += [send("live", [[*row[:-1], UNKNOWN, *row[-1:]]], [p]) for row, p in self._rows]
        for each in pending:
            each.get_result()
        for _ in range(3):
            self._connection.refusal("refusing", [[-1]], [prefixes[0]])


@pytest.fixture(scope="module")
def watched(
    nllb_engine_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Prometheus, Traffic, TritonServer]]:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "repository").mkdir()
    reference = Reference(nllb_engine_model)
    _write_models(folder / "repository", nllb_engine_model, folder, reference)
    with ServerStack() as stack:
        server = stack.start(folder / "repository")
        target = server.metrics_url.split("/")[2]
        traffic = Traffic(server.grpc_url, reference)
        with Prometheus(folder, target) as prometheus, traffic:
            yield prometheus, traffic, server


@needs_prometheus
@pytest.mark.server
@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_every_panel_has_data(
    watched: tuple[Prometheus, Traffic, TritonServer], query: str
) -> None:
    prometheus, traffic, _ = watched
    asked = query.replace("$model", "live").replace("$__rate_interval", "20s")
    found: list[dict[str, Any]] = []

    def answers() -> bool:
        assert traffic.error is None
        found[:] = prometheus.query(asked)
        return bool(found)

    wait_until(answers)
    models = {each["metric"].get("model") for each in found}
    assert models == {"live"}


@needs_prometheus
@pytest.mark.server
def test_each_alert_fires_in_its_fault_and_not_before(
    watched: tuple[Prometheus, Traffic, TritonServer],
) -> None:
    prometheus, traffic, server = watched
    # What the drift of unknown tokens is held against: traffic of more than ten seconds ago.
    before = 'rate(ct2_source_tokens_total{model="live"}[60s] offset 10s)'
    wait_until(lambda: bool(prometheus.query(before)))
    assert prometheus.fired() & FAULTS <= {("Ct2LoopRefused", "unlooped")}
    traffic.faults.set()
    connection = Connection(server.grpc_url)
    rows = sentences(traffic.reference, 8)
    with Occupied(connection, "crowded", *rows[0]):
        ids, prefixes = padded([row for row, _ in rows]), [prefix for _, prefix in rows]
        waiting = connection.start("crowded", ids, prefixes, beam_size=1, max_decoding_length=2)
        wait_until(lambda: prometheus.fired() >= FAULTS)
    waiting.get_result()
    connection.close()
    traffic.stop()
    server.stop()
    wait_until(lambda: ("Ct2ServerGone", "") in prometheus.fired())
