# SPDX-License-Identifier: Apache-2.0
"""Holds Kubernetes manifests against published schemas, strictly: an unknown key is a mistake.

Runs as a program with .venvs/kubernetes/schemas on its path; manifests come on standard input. It
prints one line a mistake, and ends with status 1 if there is any. Plain kinds are those of
kubernetes-validate; KEDA's and the Prometheus operator's are those of cloudcoil's models; KServe's
are made of the tables in its Python package.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import referencing
import yaml

SCHEMAS = Path(__file__).resolve().parents[2] / ".venvs" / "kubernetes" / "schemas"
KUBERNETES = "1.35"
PLAIN = SCHEMAS / "kubernetes_validate/kubernetes-json-schema" / f"v{KUBERNETES}.0-local-strict"
CLOUDCOIL = {
    "keda.sh/v1alpha1": "cloudcoil.models.keda.v1alpha1",
    "monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1",
}
SCALARS = {"str": "string", "int": "integer", "bool": "boolean", "float": "number"}


def cloudcoil_schema(module: str, kind: str) -> dict[str, Any]:
    """The schema of a model of cloudcoil, closed to keys that it does not know."""
    model = getattr(importlib.import_module(module), kind)
    schema: dict[str, Any] = model.model_json_schema(by_alias=True)
    for part in (schema, *schema["$defs"].values()):
        if "properties" in part:
            part.setdefault("additionalProperties", False)
    return schema


@cache
def _definitions() -> dict[str, Any]:
    text = (PLAIN / "_definitions.json").read_text(encoding="utf-8")
    definitions: dict[str, Any] = json.loads(text)
    return definitions


def _of_type(name: str) -> dict[str, Any]:
    """The schema of a type as KServe's Python package writes it, such as list[V1Container]."""
    inner = re.fullmatch(r"list\[(.*)\]", name)
    if inner:
        return {"type": "array", "items": _of_type(inner[1])}
    inner = re.fullmatch(r"dict\(str, (.*)\)", name)
    if inner:
        return {"type": "object", "additionalProperties": _of_type(inner[1])}
    if name in SCALARS:
        return {"type": SCALARS[name]}
    if re.match(r"V1(alpha|beta)\d", name):
        return kserve_schema(name)
    for group in ("core.v1", "apimachinery.pkg.apis.meta.v1"):
        full = f"io.k8s.{'api.' if group == 'core.v1' else ''}{group}.{name.removeprefix('V1')}"
        if name.startswith("V1") and full in _definitions()["$defs"]:
            return {"$ref": f"{_definitions()['$id']}#/$defs/{full}"}
    return {}  # a type of Go or Knative


@cache
def kserve_schema(name: str) -> dict[str, Any]:
    """The schema of a class of KServe's Python package, which is read and not imported."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"(V1\w+?\d)(?=[A-Z])", r"\1_", name))
    file = SCHEMAS / "kserve" / "models" / (re.sub("_+", "_", words).lower() + ".py")
    if not file.exists():
        return {}  # named by the package, and not in it
    (tree,) = (
        node
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    tables = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    keys = tables["attribute_map"]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {keys[one]: _of_type(kind) for one, kind in tables["openapi_types"].items()},
    }


def _plain_schema(version: str, kind: str) -> dict[str, Any]:
    group, _, version = version.rpartition("/")
    name = "-".join(filter(None, [kind.lower(), group.split(".")[0], version]))
    schema: dict[str, Any] = json.loads((PLAIN / f"{name}.json").read_text(encoding="utf-8"))
    return schema


@cache
def _schema_of(version: str, kind: str) -> dict[str, Any]:
    if version in CLOUDCOIL:
        return cloudcoil_schema(CLOUDCOIL[version], kind)
    if version.startswith("serving.kserve.io/"):
        schema = kserve_schema(version.rpartition("/")[2].capitalize() + kind)
        assert schema, f"KServe's package has no {kind}"
        return schema
    return _plain_schema(version, kind)


def mistakes(manifest: dict[str, Any]) -> list[str]:
    """What is wrong with one manifest."""
    registry = referencing.Resource.from_contents(_definitions()) @ referencing.Registry()
    schema = _schema_of(manifest["apiVersion"], manifest["kind"])
    validator = jsonschema.Draft202012Validator(schema, registry=registry)
    where = f"{manifest['kind']} {manifest['metadata']['name']}"
    return [f"{where}: {e.json_path}: {e.message}" for e in validator.iter_errors(manifest)]


def main() -> int:
    """Check what comes on standard input."""
    found = [
        line
        for manifest in yaml.safe_load_all(sys.stdin)
        if manifest is not None
        for line in mistakes(manifest)
    ]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
