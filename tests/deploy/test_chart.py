# SPDX-License-Identifier: Apache-2.0
"""The Helm chart and KServe's manifests, as far as they can be looked at without a cluster."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfile_parse import DockerfileParser

import ct2_triton
from ct2_triton import _core
from support.helm import (
    CHART,
    KSERVE,
    ROOT,
    helm,
    mistakes,
    needs_helm,
    needs_schemas,
    of_kind,
    rendered,
)
from support.prometheus import MISSING, binary

Manifests = list[dict[str, Any]]

PROMETHEUS = {"serverAddress": "http://prometheus:9090"}
AUTOSCALED = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "autoscaling": {"enabled": True, "prometheus": PROMETHEUS},
}
ON_A_VOLUME = {"modelRepository": {"existingClaim": "models", "prepare": []}}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "autoscaled": AUTOSCALED,
    "volume": {**ON_A_VOLUME, "replicas": 3, "models": ["demo"], "service": {"headless": True}},
    "gpus": {**ON_A_VOLUME, "gpus": 1, "resources": {"limits": {"memory": "16Gi"}}},
    "prepared for gpus": {"gpus": 2, "modelRepository": {"prepareImage": "ct2-triton:0.1.0"}},
    "all that can be named": {
        **AUTOSCALED,
        "image": {"repository": "images.example.org/mt/ct2-triton", "tag": "1"},
        "imagePullSecrets": [{"name": "pull"}],
        "serverArguments": ["--log-verbose=1"],
        "env": [{"name": "OMP_WAIT_POLICY", "value": "passive"}],
        "modelRepository": {
            "existingClaim": "models",
            "prepare": [
                {"name": "a", "source": "owner/a", "arguments": ["--set", "beam_size=4"]},
                {"name": "b", "source": "/models/b-converted"},
            ],
            "prepareEnv": [{"name": "HF_HUB_OFFLINE", "value": "1"}],
        },
        "service": {"type": "LoadBalancer", "annotations": {"example.org/internal": "true"}},
        "disruptionBudget": {"maxUnavailable": "25%"},
        "serviceAccountName": "translation",
        "priorityClassName": "high",
        "podAnnotations": {"a": "b"},
        "podLabels": {"team": "captions"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
    },
}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replicas": -1}, "at '/replicas': minimum: got -1, want 0"),
    ({"replica": 2}, "additional properties 'replica' not allowed"),
    ({"drain": {"delay": 3}}, "at '/drain': additional properties 'delay' not allowed"),
    ({"autoscaling": {"enabled": True}}, "prometheus/serverAddress': '' does not match pattern"),
    ({"autoscaling": {"ratio": 0}}, "autoscaling/ratio': exclusiveMinimum: got 0, want 0"),
    ({"disruptionBudget": {"maxUnavailable": "many"}}, "'many' does not match pattern"),
    ({"service": {"type": "Node"}}, "must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'"),
    (
        {"service": {"type": "NodePort", "headless": True}},
        "service/type': value must be 'ClusterIP'",
    ),
    ({"serverArguments": ["log-verbose=1"]}, "'log-verbose=1' does not match pattern '^--'"),
    ({"modelRepository": {"prepare": [{"name": "a"}]}}, "missing property 'source'"),
    ({"modelRepository": {"prepare": [{"name": "../a", "source": "a"}]}}, "'../a' does not match"),
    ({"modelRepository": {"prepare": []}}, "the server would have no model: name a volume"),
    ({"gpus": 1}, "the image for GPUs has no ct2-prepare"),
    ({**ON_A_VOLUME, "gpus": 1, "models": ["demo"]}, "models must be empty with gpus"),
    (
        {**AUTOSCALED, "serviceMonitor": {"enabled": False}},
        "autoscaling needs metrics in Prometheus: set serviceMonitor.enabled",
    ),
    (
        {**AUTOSCALED, "autoscaling": {**AUTOSCALED["autoscaling"], "minReplicas": 5}},
        "autoscaling.minReplicas is 5, more than maxReplicas, which is 4",
    ),
]


def _kserve() -> Manifests:
    files = sorted(KSERVE.glob("*.yaml"))
    return [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]


def _pods(manifests: Manifests) -> Manifests:
    templates = [m["spec"]["template"] for m in manifests if m["kind"] == "Deployment"]
    return [*(m for m in manifests if m["kind"] == "Pod"), *templates]


@needs_helm
@pytest.mark.parametrize("name", VARIANTS)
def test_helm_finds_nothing_to_say(name: str) -> None:
    result = helm("lint", "--strict", CHART, values=VARIANTS[name])
    assert "0 chart(s) failed" in result.stdout, result.stdout


def _all() -> Manifests:
    """All manifests of all variants, each once."""
    texts = {json.dumps(m) for values in VARIANTS.values() for m in rendered(values)}
    return [*map(json.loads, sorted(texts)), *_kserve()]


def _misspelt() -> Manifests:
    manifests = rendered(AUTOSCALED) + _kserve()
    for manifest in manifests:
        manifest["metadata"]["name"] = "misspelt"
        manifest["spec"]["sepc"] = 1
    return manifests


def _wrong_inside() -> Manifests:
    (runtime,) = (m for m in _kserve() if m["kind"] == "ServingRuntime")
    runtime["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] = "often"
    scaled = of_kind(rendered(AUTOSCALED), "ScaledObject")
    del scaled["spec"]["triggers"][0]["type"]
    for manifest in (runtime, scaled):
        manifest["metadata"]["name"] = "inside"
    return [runtime, scaled]


@pytest.fixture(scope="module")
def found() -> list[str]:
    """What the published schemas say against good and bad manifests, in one go."""
    return mistakes([*_all(), *_misspelt(), *_wrong_inside()])


@needs_helm
@needs_schemas
def test_all_manifests_follow_the_published_schemas(found: list[str]) -> None:
    assert {m["kind"] for m in _all()} == {
        *("Deployment", "Service", "PodDisruptionBudget", "Pod"),
        *("ServiceMonitor", "ScaledObject", "ServingRuntime", "InferenceService"),
    }
    assert [line for line in found if line.split()[1] not in ("misspelt:", "inside:")] == []


@needs_helm
@needs_schemas
def test_the_schemas_find_a_key_that_is_misspelt_in_each_kind(found: list[str]) -> None:
    lines = [line for line in found if line.split()[1] == "misspelt:"]
    assert len(lines) == len(_misspelt()) == 9
    assert all("('sepc' was unexpected)" in line for line in lines)


@needs_helm
@needs_schemas
def test_the_schemas_find_mistakes_deep_in_a_manifest(found: list[str]) -> None:
    assert [line for line in found if line.split()[1] == "inside:"] == [
        "ServingRuntime inside: $.spec.containers[0].readinessProbe.periodSeconds: "
        "'often' is not of type 'integer', 'null'",
        "ScaledObject inside: $.spec.triggers[0]: 'type' is a required property",
    ]


@needs_helm
@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_wrong_values_are_refused_with_a_reason(values: dict[str, Any], message: str) -> None:
    result = helm("template", "news", CHART, values=values)
    assert result.returncode != 0
    assert message in result.stderr
    assert result.stdout == ""


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == {*values, "global"}
    for name, section in schema["properties"].items():
        if "properties" in section and name != "resources":
            assert set(section["properties"]) == set(values[name]), name


def test_the_version_is_that_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == ct2_triton.__version__
    (runtime,) = (m for m in _kserve() if m["kind"] == "ServingRuntime")
    (container,) = runtime["spec"]["containers"]
    assert container["image"] == f"ct2-triton:{ct2_triton.__version__}"


@needs_helm
@pytest.mark.parametrize("name", VARIANTS)
def test_names_and_labels_lead_from_one_manifest_to_the_next(name: str) -> None:
    manifests = rendered(VARIANTS[name])
    deployment = of_kind(manifests, "Deployment")
    pod = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod
    budget = of_kind(manifests, "PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"].items() <= pod
    services = [m for m in manifests if m["kind"] == "Service"]
    assert len(services) == 2
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    for service in services:
        assert service["spec"]["selector"].items() <= pod
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    test = of_kind(manifests, "Pod")["metadata"]["labels"].items()
    assert not deployment["spec"]["selector"]["matchLabels"].items() <= test


@needs_helm
def test_the_monitor_finds_the_metrics_and_the_autoscaler_what_it_found() -> None:
    manifests = rendered(AUTOSCALED)
    metrics = of_kind(manifests, "Service", "-metrics")
    others = of_kind(manifests, "Service", "triton")
    monitor = of_kind(manifests, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= metrics["metadata"]["labels"].items()
    assert not wanted <= others["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == metrics["spec"]["ports"][0]["name"]
    scaled = of_kind(manifests, "ScaledObject")
    deployment = of_kind(manifests, "Deployment")
    assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]
    (trigger,) = scaled["spec"]["triggers"]
    selected = f'{{namespace="translation", service="{metrics["metadata"]["name"]}"}}'
    assert trigger["metadata"]["query"].count(selected) == 2
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    (relabeling,) = monitor["spec"]["endpoints"][0]["relabelings"]
    assert f'up{{job="{relabeling["replacement"]}"}}' in alerts


def _query() -> str:
    (trigger,) = of_kind(rendered(AUTOSCALED), "ScaledObject")["spec"]["triggers"]
    query: str = trigger["metadata"]["query"]
    return query


@needs_helm
def test_the_query_names_metrics_that_there_are() -> None:
    named = set(re.findall(r"\bct2_[a-z_]+", _query()))
    assert named == {"ct2_waiting_rows", "ct2_decoding_rows"}
    assert named <= {metric["name"] for metric in _core.metrics()}
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in named)


@needs_helm
@pytest.mark.skipif(binary("promtool") is None, reason=MISSING)
@pytest.mark.parametrize(
    ("waiting", "decoding", "answer"),
    [("0x20", "0x20", 0.0), ("0x20", "8x20", 0.0), ("12x20", "8x20", 1.5), ("4x20", "0x20", 8.0)],
)
def test_the_query_gives_waiting_rows_for_each_decoded_row_of_all_pods(
    waiting: str, decoding: str, answer: float, tmp_path: Path
) -> None:
    ours = 'namespace="translation", service="news-ct2-triton-metrics"'
    series = [
        {"series": f'{name}{{{labels}, pod="{pod}"}}', "values": values}
        for labels, pods in ((ours, "ab"), ('namespace="other", service="x"', "c"))
        for pod in pods
        for name, values in (
            ("ct2_waiting_rows", waiting if labels == ours else "1000x20"),
            ("ct2_decoding_rows", decoding if labels == ours else "1000x20"),
        )
    ]
    expected = [{"labels": "{}", "value": answer}]
    asked = {"expr": _query(), "eval_time": "4m", "exp_samples": expected}
    lost = {"expr": _query(), "eval_time": "30m", "exp_samples": []}  # no series, no number
    test = {"interval": "15s", "input_series": series, "promql_expr_test": [asked, lost]}
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"tests": [test]}), encoding="utf-8")
    tool = binary("promtool")
    assert tool is not None
    result = subprocess.run([tool, "test", "rules", file], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@needs_helm
@pytest.mark.parametrize("name", VARIANTS)
def test_every_container_has_the_rights_of_the_image_and_no_more(name: str) -> None:
    pods = [pod["spec"] for pod in _pods(rendered(VARIANTS[name]))]
    user = DockerfileParser(str(ROOT / "docker" / "Dockerfile")).structure
    (uid,) = (int(step["value"]) for step in user if step["instruction"] == "USER")
    for pod in pods:
        assert pod["securityContext"]["runAsUser"] == uid
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]
    (server,) = (one for pod in pods for one in pod["containers"] if one["name"] == "triton")
    writable = {m["mountPath"] for m in server["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/tmp"}  # noqa: S108 - the container's


def _seconds(probe: dict[str, Any]) -> int:
    period: int = probe["periodSeconds"]
    return period * int(probe["failureThreshold"])


@needs_helm
@pytest.mark.parametrize(("delay", "leave", "start"), [(10, 60, 300), (0, 1, 5), (30, 600, 1801)])
def test_a_pod_has_the_time_that_its_start_and_its_end_take(
    delay: int, leave: int, start: int
) -> None:
    drain = {"delaySeconds": delay, "exitSeconds": leave}
    manifests = rendered({"drain": drain, "startSeconds": start})
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    (server,) = pod["containers"]
    assert server["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", str(delay)]
    assert f"--exit-timeout-secs={leave}" in server["args"]
    assert pod["terminationGracePeriodSeconds"] >= delay + leave + 10
    assert f"--timeout={start}" in server["args"]
    assert _seconds(server["startupProbe"]) > start


def test_kserve_leaves_a_pod_the_same_time() -> None:
    service, runtime = sorted(_kserve(), key=lambda manifest: str(manifest["kind"]))
    (server,) = runtime["spec"]["containers"]
    delay = int(server["lifecycle"]["preStop"]["exec"]["command"][1])
    (leave,) = (int(one.split("=")[1]) for one in server["args"] if "exit-timeout" in one)
    predictor = service["spec"]["predictor"]
    assert predictor["terminationGracePeriodSeconds"] >= delay + leave + 10
    assert predictor["model"]["runtime"] == runtime["metadata"]["name"]
    formats = [one["name"] for one in runtime["spec"]["supportedModelFormats"]]
    assert predictor["model"]["modelFormat"]["name"] in formats
    security = server["securityContext"]
    assert security["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]


@needs_helm
def test_gpus_are_asked_for_and_what_the_image_leaves_open_is_closed() -> None:
    pod = of_kind(rendered(VARIANTS["gpus"]), "Deployment")["spec"]["template"]["spec"]
    (server,) = pod["containers"]
    assert server["resources"]["limits"] == {"memory": "16Gi", "cpu": "2", "nvidia.com/gpu": 1}
    assert "--model-repository=/models" in server["args"]
    closed = [one for one in server["args"] if "shared-memory,logging,trace:" in one]
    assert [one.split("=")[0] for one in closed] == [
        "--http-restricted-api",
        "--grpc-restricted-protocol",
    ]
    # The key is an id of the pod, which a client cannot know.
    assert all(one.endswith("=$(POD_UID)") for one in closed)
    assert "POD_UID" in [variable["name"] for variable in server["env"]]


@needs_helm
@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("http", [False, True])
def test_http_is_closed_unless_it_is_asked_for(gpus: int, http: bool) -> None:
    repository = {"existingClaim": "models", "prepare": []}
    manifests = rendered({"service": {"http": http}, "gpus": gpus, "modelRepository": repository})
    (server,) = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    host = "0.0.0.0" if http else "127.0.0.1"
    if gpus:
        assert f"--http-address={host}" in server["args"]
    else:
        assert {"name": "CT2_SERVE_HTTP_HOST", "value": host} in server["env"]
    ports = [port["name"] for port in server["ports"]]
    assert ("http" in ports) == http
    service = of_kind(manifests, "Service", "ct2-triton")
    assert ("http" in [port["name"] for port in service["spec"]["ports"]]) == http
