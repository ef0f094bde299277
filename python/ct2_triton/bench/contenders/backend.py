# SPDX-License-Identifier: Apache-2.0
"""The backend of this package, served as ct2-prepare and ct2-serve set it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.contenders.triton import TritonContender
from ct2_triton.bench.setup import MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class BackendContender(TritonContender):
    """Our backend, with the config that ct2-prepare writes."""

    kind = "ct2-triton"

    def write_repository(self, repository: Path) -> None:
        """Gives one set of files all the names."""
        prepared = self.setup.prepared(self.precision)
        for model in self.setup.models:
            folder = repository / model
            folder.mkdir()
            (folder / "1").symlink_to((prepared.directory / "1").resolve())
            config = prepared.config_file.read_text(encoding="utf-8")
            named = config.replace(f'name: "{MODEL}"', f'name: "{model}"', 1)
            (folder / prepared.config_file.name).write_text(named, encoding="utf-8")

    def settings(self) -> Mapping[str, str]:
        """Says that nothing was tuned."""
        return {
            "server": "tritonserver, this package's backend",
            "configuration": "as ct2-prepare writes it",
            "input": "token ids over gRPC",
        }
