# SPDX-License-Identifier: Apache-2.0
"""The commands of the pages for operators, run on free ports in a scratch folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from support.collector import Collector
from support.commands import run
from support.helm import helm_binary, needs_helm
from support.ports import free_port
from support.prometheus import MISSING, binary
from support.servers import EXPLICIT, MakeServer
from support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("deploy", "monitoring", "versions", "kubernetes", "gpu")
TEXTS = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES}
COMMANDS = re.findall(r"^```sh\n(.*?)^```", "\n".join(TEXTS.values()), re.DOTALL | re.M)
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr.\n"
needs_prometheus = pytest.mark.skipif(binary("prometheus") is None, reason=MISSING)


def _command(start: str) -> str:
    """The command that starts like this."""
    (found,) = [block.strip() for block in COMMANDS if block.startswith(start)]
    return found


def _environment() -> dict[str, str]:
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    tools = [tool for tool in (binary("promtool"), helm_binary()) if tool]
    folders[:0] = [str(Path(tool).parent) for tool in tools]
    return {**os.environ, "PATH": ":".join(folders)}


def _run(command: str, folder: Path = ROOT) -> str:
    return run("bash", "-o", "pipefail", "-c", command, folder=folder, **_environment()).stdout


@pytest.mark.server
def test_metrics_are_printed(server: TritonServer) -> None:
    target = server.metrics_url.split("/")[2]
    printed = _run(_command("curl").replace("localhost:8002", target))
    assert 'ct2_requests_total{model="nllb",result="ok",version="1"}' in printed


@pytest.mark.server
def test_the_cost_of_counting_is_measured() -> None:
    printed = _run("python benchmarks/measure_metrics.py --rows 100")
    found = re.search(r"^at most (\d+\.\d+) % of a row$", printed, re.MULTILINE)
    assert found, printed
    assert float(found[1]) > 0


@needs_prometheus
def test_the_unit_tests_of_the_alerts_pass() -> None:
    assert "SUCCESS" in _run(_command("promtool"))


@needs_prometheus
def test_prometheus_takes_the_configuration_and_the_alerts(tmp_path: Path) -> None:
    command = _command("prometheus").replace("prometheus-data", str(tmp_path / "data"))
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command} --web.listen-address={address}"],
        cwd=ROOT,
        env=_environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: "Ct2QueueGrowing" in _page(f"http://{address}/api/v1/rules"))
    finally:
        process.terminate()
        process.wait()


def _page(address: str) -> str:
    try:
        with urllib.request.urlopen(address) as page:  # noqa: S310
            text: str = page.read().decode()
    except urllib.error.URLError:
        return ""
    return text


def test_the_dashboard_is_written_again_as_it_is() -> None:
    file = ROOT / "deploy" / "grafana" / "ct2-triton.json"
    before = file.read_bytes()
    _run(_command("python tools/dashboard.py"))
    assert file.read_bytes() == before


@pytest.mark.server
def test_a_machine_is_checked(tmp_path: Path) -> None:
    prepare(PrepareOptions("demo", tmp_path / "model_repository"))
    printed = _run(f"{_command('ct2-serve --check')} --free-ports", tmp_path)
    assert GERMAN.split()[-2] in printed


@pytest.mark.server
def test_models_are_listed_shown_and_verified(tmp_path: Path, make_server: MakeServer) -> None:
    prepare(PrepareOptions("demo", tmp_path / "model_repository"))
    server = make_server(tmp_path / "model_repository")
    address = server.grpc_url
    listed = _run(_command("ct2-models list").replace("localhost:8001", address), tmp_path)
    assert listed.splitlines()[1].split()[:3] == ["demo", "1", "yes"]
    assert listed.endswith("READY\n")
    shown = _run(_command("ct2-models show"), tmp_path)
    assert "license: apache-2.0" in shown
    assert shown.endswith("demo: unchanged\n")


@needs_helm
def test_the_chart_is_looked_at_and_printed() -> None:
    assert "0 chart(s) failed" in _run(_command("helm lint"))
    assert "replicas: 2" in _run(_command("helm template"))


@pytest.mark.server
def test_a_version_is_added_promoted_and_rolled_back(
    tmp_path: Path, make_server: MakeServer
) -> None:
    prepare(PrepareOptions("demo", tmp_path / "model_repository"))
    assert _run(_command("ct2-prepare demo --as-version"), tmp_path).endswith("demo/2\n")
    server = make_server(tmp_path / "model_repository", server_arguments=EXPLICIT)
    address = server.grpc_url
    for action, said in (
        ("promote demo 2", "serves 2, before 1"),
        ("rollback", "serves 1, before 2"),
        ("promote demo 1 2", "serves 1, 2, before 1"),
    ):
        command = _command(f"ct2-models {action}").replace("localhost:8001", address)
        assert _run(command, tmp_path) == f"demo: {said}\n"
    canary = next(block for block in COMMANDS if "--model-versions" in block).strip()
    assert _run(f"{canary} --url {server.grpc_url}", tmp_path) == GERMAN


@pytest.mark.server
def test_a_request_is_traced_from_the_client_on(tmp_path: Path, make_server: MakeServer) -> None:
    prepare(PrepareOptions("demo", tmp_path / "model_repository"))
    serve = shlex.split(_command("ct2-serve demo -- --trace").replace("\\\n", " "))
    arguments = serve[serve.index("--") + 1 :]
    with Collector() as collector:
        arguments = [part.replace("localhost:4318", collector.address) for part in arguments]
        arguments.append("--trace-config=opentelemetry,bsp_schedule_delay=100")  # not 5 s
        server = make_server(tmp_path / "model_repository", server_arguments=arguments)
        translate = next(block for block in COMMANDS if "--header 'traceparent" in block).strip()
        _, trace, client_span, _ = translate.split("traceparent: ")[1].split("'")[0].split("-")
        sent = set()

        def send(trace_id: str) -> None:
            command = translate.replace(trace, trace_id)
            assert _run(f"{command} --url {server.grpc_url}", tmp_path) == GERMAN
            sent.add(trace_id)

        by_name = {span["name"]: span for span in collector.spans_of(send)}
        server.stop()
    assert collector.services == {"translation"}
    assert {span["traceId"] for span in collector.spans} <= sent
    assert set(by_name) == {"InferRequest", "demo", *_listed_spans()} - {"call"}
    request, model, compute = (by_name[name] for name in ("InferRequest", "demo", "compute"))
    parents = [span["parentSpanId"] for span in (request, model, compute)]
    assert parents == [client_span, request["spanId"], model["spanId"]]
    names = [event["name"] for span in (model, compute) for event in span["events"]]
    assert {"QUEUE_START", "COMPUTE_START", "COMPUTE_END"} <= set(names)


def _listed_spans() -> set[str]:
    """The backend's and Triton's spans that the page explains."""
    tables = TEXTS["monitoring"].split("## Tracing")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE))


def test_every_alert_is_listed() -> None:
    rules = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(Ct2\w+)` \|", TEXTS["monitoring"], re.MULTILINE)
    assert listed == re.findall(r"alert: (\w+)", rules)
