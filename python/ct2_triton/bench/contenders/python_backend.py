# SPDX-License-Identifier: Apache-2.0
"""Triton's Python backend: with Hugging Face `generate`, and with CTranslate2's Python module."""

from __future__ import annotations

from abc import abstractmethod
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

from ct2_triton.bench.contenders.triton import TritonContender
from ct2_triton.bench.models.repository import ENGINE, HUGGING_FACE, write_python_model
from ct2_triton.bench.models.translator import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class _PythonBackendContender(TritonContender):
    """One-thread processes, together as many as there are cores, at least one for each model.

    Each instance of a model is a process with weights of its own that takes what has waited while
    it computed. One instance of several threads was slower (docs/benchmarks.md): its rows wait for
    the longest of their batch, and small matrices gain little from a second thread.
    """

    model: ClassVar[str]

    def write_repository(self, repository: Path) -> None:
        """Writes a Python model for each name."""
        for name in self.setup.models:
            write_python_model(repository / name, self.model, self._load(), self._instances)

    def settings(self) -> Mapping[str, str]:
        """Says how the batches are made."""
        return {
            "server": f"tritonserver, Python backend, {self._library()}",
            "instances": f"{self._instances} of one thread for each model, each with its weights",
            "batches": "dynamic, ragged, no queue delay; sorted by length, padded inside",
            "input": "token ids over gRPC",
        }

    @property
    def _instances(self) -> int:
        return max(1, self.setup.cores // len(self.setup.models))

    def _load(self) -> Settings:
        return Settings(
            str(self._model_folder()),
            precision=self.precision,
            beam_size=self.setup.beam_size,
            max_decoding_length=self.setup.max_decoding_length,
        )

    @abstractmethod
    def _model_folder(self) -> Path:
        """Gives the folder that an instance loads."""

    @abstractmethod
    def _library(self) -> str:
        """Names what translates, with its version."""


class PythonTransformersContender(_PythonBackendContender):
    """The usual way to serve a translation model with Triton; see `models/hugging_face.py`."""

    kind = "python-transformers"
    model = HUGGING_FACE

    def _model_folder(self) -> Path:
        return self.setup.checkpoint().absolute()

    def _library(self) -> str:
        return f"transformers {version('transformers')} on torch {version('torch')}"


class PythonEngineContender(_PythonBackendContender):
    """The same engine as ours behind the usual backend; see `models/engine.py`."""

    kind = "python-ctranslate2"
    model = ENGINE

    def _model_folder(self) -> Path:
        return self.setup.prepared(self.precision).model_folder.absolute()

    def _library(self) -> str:
        return f"ctranslate2 {version('ctranslate2')}"
