# SPDX-License-Identifier: Apache-2.0
"""The contenders by name. To add one: a subclass of `Contender`, and a line in `KINDS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.contenders.base import Client, Contender, ListContender, ServerCounts
from ct2_triton.bench.contenders.fastapi import FastApiContender, TunedFastApiContender
from ct2_triton.bench.contenders.in_process import (
    EngineContender,
    MarianContender,
    TransformersContender,
)
from ct2_triton.bench.contenders.python_backend import (
    PooledPythonEngineContender,
    PythonEngineContender,
    PythonTransformersContender,
    ThreadedPythonTransformersContender,
)
from ct2_triton.bench.contenders.triton import (
    BackendContender,
    CallsContender,
    LoopContender,
    TritonContender,
)
from ct2_triton.bench.errors import BenchError

if TYPE_CHECKING:
    from ct2_triton.bench.setup import Setup

__all__ = [
    "KINDS",
    "Client",
    "Contender",
    "ListContender",
    "ServerCounts",
    "TritonContender",
    "contender_kind",
    "contender_names",
    "make_contender",
]

KINDS: dict[str, type[Contender]] = {
    contender.kind: contender
    for contender in (
        BackendContender,
        CallsContender,
        LoopContender,
        EngineContender,
        PythonEngineContender,
        PooledPythonEngineContender,
        PythonTransformersContender,
        ThreadedPythonTransformersContender,
        FastApiContender,
        TunedFastApiContender,
        TransformersContender,
        MarianContender,
    )
}


def contender_names(device: str = "cpu") -> list[str]:
    """Return the names that `make_contender` knows."""
    return [
        f"{kind}-{precision}"
        for kind, contender in KINDS.items()
        for precision in (contender.gpu_precisions if device == "gpu" else contender.precisions)
    ]


def contender_kind(name: str, device: str = "cpu") -> type[Contender]:
    """Return the class of a contender named `<kind>-<precision>`."""
    names = contender_names(device)
    if name not in names:
        raise BenchError(f"no contender {name!r} on a {device}; there are {', '.join(names)}")
    return KINDS[name.rpartition("-")[0]]


def make_contender(name: str, setup: Setup) -> Contender:
    """Make the contender named `<kind>-<precision>`, not started."""
    return contender_kind(name, setup.device)(name.rpartition("-")[2], setup)
