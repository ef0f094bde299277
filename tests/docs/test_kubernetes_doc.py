# SPDX-License-Identifier: Apache-2.0
"""docs/kubernetes.md: its values render, its query is the chart's, its versions are those used."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from support.helm import ROOT, helm_binary, needs_helm, of_kind, rendered

PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@needs_helm
@pytest.mark.parametrize("values", _blocks("yaml"))
def test_the_values_render(values: str) -> None:
    assert of_kind(rendered(yaml.safe_load(values)), "Deployment")


@needs_helm
def test_the_query_is_that_of_the_autoscaler() -> None:
    (values,) = (block for block in _blocks("yaml") if "autoscaling" in block)
    (trigger,) = of_kind(rendered(yaml.safe_load(values)), "ScaledObject")["spec"]["triggers"]
    (shown,) = _blocks("promql")
    assert re.sub(r"\{[^}]*\}", "", trigger["metadata"]["query"]) == shown.strip()


def test_every_file_that_a_command_names_is_there() -> None:
    named = re.findall(r"(?:docker|deploy)/[\w./-]+\w", " ".join(_blocks("sh")))
    assert len(set(named)) == 4
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_versions_are_those_that_the_tests_use() -> None:
    pinned = (ROOT / "tests" / "deploy" / "schemas.txt").read_text(encoding="utf-8")
    named = dict(re.findall(r"(Kubernetes|KEDA|operator|KServe)\s([\d.]+\d)", PAGE))
    packages = {"KEDA": "cloudcoil-models-keda", "KServe": "kserve"}
    packages["operator"] = "cloudcoil-models-prometheus-operator"
    assert [name for name, one in packages.items() if f"\n{one}=={named[name]}" not in pinned] == []
    checker = (ROOT / "tests" / "deploy" / "check_manifests.py").read_text(encoding="utf-8")
    (kubernetes,) = re.findall(r'^KUBERNETES = "(.*)"', checker, re.MULTILINE)
    assert named["Kubernetes"] == kubernetes


@needs_helm
def test_the_helm_is_the_one_named() -> None:
    (version,) = re.findall(r"with helm ([\d.]+\d),", PAGE)
    script = (ROOT / "tools" / "helm.sh").read_text(encoding="utf-8")
    assert f"# carries helm {version}\n" in script
    binary = helm_binary()
    assert binary is not None
    if binary.startswith(str(ROOT)):
        shown = subprocess.run([binary, "version", "--short"], capture_output=True, text=True)
        assert shown.stdout.startswith(f"v{version}+")
