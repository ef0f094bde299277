# SPDX-License-Identifier: Apache-2.0
"""deploy/compose.yaml, as far as it can be looked at without a Docker engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.wheels import run_program

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return found


def test_it_follows_the_published_schema() -> None:
    program = Path(sys.executable).with_name("check-jsonschema")
    run_program(program, "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_all_that_it_mounts_is_there(services: dict[str, Any]) -> None:
    mounts = [text for service in services.values() for text in service["volumes"]]
    files = [text.split(":")[0] for text in mounts if text.startswith("./")]
    assert len(files) >= 4
    assert [name for name in files if not (DEPLOY / name).exists()] == []
    assert (DEPLOY / services["triton"]["build"]["context"] / "docker" / "Dockerfile").is_file()


def test_ports_listen_on_this_machine_only(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_prometheus_differs_in_the_place_of_the_server_only() -> None:
    alone, composed = (
        yaml.safe_load((DEPLOY / "prometheus" / name).read_text())
        for name in ("prometheus.yml", "compose.yml")
    )
    (job,) = composed["scrape_configs"]
    assert job.pop("static_configs") == [{"targets": ["triton:8002"]}]
    alone["scrape_configs"][0].pop("static_configs")
    assert composed == alone
