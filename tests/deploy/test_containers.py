# SPDX-License-Identifier: Apache-2.0
"""The CPU image, built and run: alone, by the compose file, and as a pod of the Helm chart."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import run
from support.containers import BASE, IMAGE, Engine, add_image, build_image, running_engine
from support.debian_root import ROOT
from support.helm import needs_helm, of_kind, rendered
from support.prometheus import MISSING, binary
from support.waiting import wait_until

pytestmark = pytest.mark.server

SIZE_MB = 450
"""What the CPU image may take beside Debian itself. docs/releasing.md states it."""
COMPOSE = ROOT / "deploy" / "compose.yaml"
NETWORK = f"ct2-{os.getpid()}"
TEXT = "The ticket office opens at 5:45."
ANSWER = [
    "deu_Latn  Der Fahrkartenschalter öffnet um 5:45 Uhr.",
    "fra_Latn  Le guichet ouvre à 5 h 45.",
]


@pytest.fixture(scope="module")
def built() -> Iterator[Engine]:
    with running_engine() as engine:
        build_image()
        engine.podman("network", "create", NETWORK)
        yield engine
        engine.clear()
        engine.podman("network", "rm", NETWORK)


@pytest.fixture
def engine(built: Engine) -> Engine:
    built.clear()
    return built


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    run("ct2-prepare", "demo", "--io", "both", "--model-repository", folder)
    for place in (folder, *folder.parents[:2]):  # another user reads them
        place.chmod(0o755)
    return folder


def ask(engine: Engine, address: str, models: Path) -> list[str]:
    """The translations of a client outside of the container."""
    command = [Path(sys.executable).with_name("ct2-translate"), "--url", address, "--model", "demo"]
    command += ["--model-repository", models, "--from", "eng_Latn", "--to", "deu_Latn,fra_Latn"]
    text = models.parent / "text"
    text.write_text(f"{TEXT}\n")
    return engine.run(*command, "--retry-for", "100", text).splitlines()


def get(engine: Engine, url: str) -> str:
    """A page; '' where there is none."""
    with engine.network.entered():
        try:
            with urllib.request.urlopen(url) as page:  # noqa: S310
                text: str = page.read().decode()
                return text
        except OSError:
            return ""


def test_the_image_serves_as_an_ordinary_user_on_a_read_only_root(
    engine: Engine, models: Path
) -> None:
    assert engine.megabytes(IMAGE) - engine.megabytes(BASE) < SIZE_MB
    limits = ["--memory=2g", "--cpus=1", "--cap-drop=all", "--read-only", "--tmpfs=/tmp"]
    places = ["--publish", "127.0.0.1:8001:8001", "--volume", f"{models}:/models:ro"]
    engine.podman("run", "-d", "--name", "one", "--network", NETWORK, *limits, *places, IMAGE)
    wait_until(lambda: engine.succeeds("healthcheck", "run", "one"), "its health check")
    assert ask(engine, "127.0.0.1:8001", models) == ANSWER
    assert engine.podman("exec", "one", "id", "-u") == "10001"
    assert get(engine, f"http://{engine.address('one')}:8000/v2/health/live") == ""
    assert "ct2_" in get(engine, f"http://{engine.address('one')}:8002/metrics")
    engine.podman("stop", "--time", "60", "one")
    assert engine.inspect("one", ".State.ExitCode") == "0"


@pytest.mark.skipif(binary("prometheus") is None, reason=MISSING)
def test_the_compose_file_serves_and_its_prometheus_watches(engine: Engine, models: Path) -> None:
    """Without Grafana, of which Debian has no package."""
    prometheus = Path(str(binary("prometheus")))
    add_image(yaml.safe_load(COMPOSE.read_text())["services"]["prometheus"]["image"],
              prometheus, "/bin/prometheus")  # fmt: skip
    project = NETWORK
    engine.podman("tag", IMAGE, f"localhost/{project}_triton:latest")
    compose = ["podman-compose", "--project-name", project, "--file", COMPOSE]
    variables = {"CT2_MODEL_REPOSITORY": str(models)}
    services = ["triton", "prometheus"]
    engine.run(*compose, "up", "--detach", "--no-build", *services, **variables)
    assert ask(engine, "127.0.0.1:8001", models) == ANSWER
    assert get(engine, "http://127.0.0.1:8000/v2")
    query = f"http://{engine.address(f'{project}_prometheus_1')}:9090/api/v1/query?query=up"

    def targets() -> list[Any]:
        found = json.loads(get(engine, query) or '{"data": {"result": []}}')["data"]["result"]
        return [(one["metric"]["instance"], one["value"][1]) for one in found]

    wait_until(lambda: targets() == [("triton:8002", "1")], "Prometheus's first look")
    engine.run(*compose, "down", **variables)


@needs_helm
def test_a_pod_of_the_chart_prepares_serves_and_ends(
    engine: Engine, models: Path, tmp_path: Path
) -> None:
    """Kubernetes runs probes by a clock and calls preStop; podman does neither."""
    image, _, tag = IMAGE.partition(":")
    deployment = of_kind(rendered({"image": {"repository": image, "tag": tag}}), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    manifest = tmp_path / "deployment.yaml"
    manifest.write_text(yaml.safe_dump(deployment))
    # podman 4.3 fails now and then to remove the init container when it ends; what it made stays.
    engine.run("podman", "play", "kube", "--network", NETWORK, manifest, check=False)
    name = engine.podman("pod", "ps", "--format", "{{.Name}}")
    wait_until(lambda: engine.succeeds("pod", "start", name), "the pod")
    names = engine.podman("ps", "--format", "{{.Names}}").splitlines()
    (server,) = (one for one in names if one.endswith("-triton"))
    liveness = pod["containers"][0]["livenessProbe"]["exec"]["command"]
    wait_until(lambda: engine.succeeds("exec", server, *liveness), "the liveness probe")
    (infra,) = (one for one in names if one.endswith("-infra"))
    assert ask(engine, f"{engine.address(infra)}:8001", models) == ANSWER
    assert engine.inspect(server, ".HostConfig.ReadonlyRootfs") == "true"
    assert engine.inspect(server, ".EffectiveCaps") == "[]"
    assert not engine.succeeds("exec", server, "touch", "/models/file")
    grace = pod["terminationGracePeriodSeconds"]
    engine.podman("pod", "stop", "--time", grace, name)
    assert engine.inspect(server, ".State.ExitCode") == "0"
