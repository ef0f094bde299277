# SPDX-License-Identifier: Apache-2.0
"""The backend of this package, as ct2-prepare and ct2-serve configure it."""

from __future__ import annotations

import re
import shutil
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ct2_triton.bench.contenders.base import ENGINE_ON_GPU
from ct2_triton.bench.contenders.triton import TritonContender
from ct2_triton.bench.setup import MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ct2_triton.bench.contenders.base import ServerCounts


def _histogram(metrics: str, name: str) -> tuple[int, float]:
    """Return the count and the sum of a histogram, added over all models."""
    count, total = (
        sum(float(value) for value in re.findall(rf"^{name}_{part}\{{.*\}} (\S+)$", metrics, re.M))
        for part in ("count", "sum")
    )
    return round(count), total


class BackendContender(TritonContender):
    """Our backend, with the config that ct2-prepare writes."""

    kind = "ct2-triton"
    gpu_precisions = ENGINE_ON_GPU
    parameters: ClassVar[Mapping[str, str]] = {}
    """Model parameters in addition to those that ct2-prepare writes."""

    def write_repository(self, repository: Path) -> None:
        """Write one set of files for all names, or one for each name if `distinct`."""
        prepared = self.setup.prepared(self.precision)
        files = (prepared.directory / "1").resolve()
        for model in self.setup.models:
            folder = repository / model
            folder.mkdir()
            if self.setup.distinct:
                shutil.copytree(files, folder / "1")
            else:
                (folder / "1").symlink_to(files)
            config = prepared.config_file.read_text(encoding="utf-8")
            named = config.replace(f'name: "{MODEL}"', f'name: "{model}"', 1)
            more = "".join(
                f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
                for key, value in self.parameters.items()
            )
            (folder / prepared.config_file.name).write_text(named + more, encoding="utf-8")

    def _read_counts(self) -> ServerCounts:
        """Add the token counts of the backend's own metrics."""
        with urllib.request.urlopen(self.server.metrics_url, timeout=10) as page:  # noqa: S310
            text = page.read().decode()
        first_tokens, first_token_s = _histogram(text, "ct2_first_token_seconds")
        gaps, gap_s = _histogram(text, "ct2_longest_token_gap_seconds")
        return replace(
            super()._read_counts(),
            first_tokens=first_tokens,
            first_token_s=first_token_s,
            gaps=gaps,
            gap_s=gap_s,
        )

    def settings(self) -> Mapping[str, str]:
        """Return the settings."""
        more = ", ".join(f"{key} {value}" for key, value in self.parameters.items())
        return {
            "server": "tritonserver, this package's backend",
            "configuration": "as ct2-prepare writes it" + (f", with {more}" if more else ""),
            "input": "token ids over gRPC",
        }


class CallsContender(BackendContender):
    """Our backend without decode loops: every row is decoded by a CTranslate2 call."""

    kind = "ct2-triton-calls"
    gpu_precisions = ()  # on a GPU, ct2-triton has no decode loops by default
    parameters: ClassVar[Mapping[str, str]] = {"decoding": "calls"}


class LoopContender(BackendContender):
    """Our backend's decode loop on a GPU, where CTranslate2 calls are the default."""

    kind = "ct2-triton-loop"
    precisions = ()  # on a CPU, ct2-triton has decode loops by default
    parameters: ClassVar[Mapping[str, str]] = {"decoding": "loop"}
