# SPDX-License-Identifier: Apache-2.0
"""The contenders by name. To add one: a subclass of `Contender`, and a line in `KINDS`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ct2_triton.bench.contenders.base import (
    Client,
    Contender,
    ListContender,
    ServerCounts,
    precision_of,
)
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
    "cores_of",
    "make_contender",
    "precision_of",
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
    """Return the class of a contender named `<kind>-<precision>` or `<kind>-<precision>@<cores>`.

    Raises:
        BenchError: There is none of this name.
    """
    kind, at, cores = name.partition("@")
    names = contender_names(device)
    if kind not in names:
        raise BenchError(f"no contender {kind!r} on a {device}; there are {', '.join(names)}")
    if at and not re.fullmatch("[1-9][0-9]*", cores):
        raise BenchError(f"contender {name!r}: after @ comes a number of cores, at least 1")
    return KINDS[kind.rpartition("-")[0]]


def cores_of(name: str, available: int) -> int | None:
    """Return the number of cores in a contender's name; None for one that has all.

    Raises:
        BenchError: There are not so many.
    """
    cores = name.partition("@")[2]
    if not cores:
        return None
    if int(cores) > available:
        raise BenchError(f"contender {name!r} needs {cores} cores; contenders have {available}")
    return int(cores)


def make_contender(name: str, setup: Setup) -> Contender:
    """Make the contender of this name, not started.

    Raises:
        BenchError: There is none of this name, or it has more cores than there are.
    """
    kind, cores = contender_kind(name, setup.device), cores_of(name, setup.cores)
    if cores is None:
        return kind(precision_of(name), setup)
    contender = kind(precision_of(name), replace(setup, cores=cores))
    contender.fewer_cores = cores
    return contender
