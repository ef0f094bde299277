# SPDX-License-Identifier: Apache-2.0
"""Triton's Python backend: with Hugging Face `generate`, and with CTranslate2's Python module.

Each in two layouts, because the model and the machine decide which is faster: the fair baseline
is the faster of the two in a run. Both use every core, and no core twice.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

from ct2_triton.bench.contenders.base import ENGINE_ON_GPU, PYTORCH_ON_GPU
from ct2_triton.bench.contenders.triton import TritonContender
from ct2_triton.bench.models.translator import SETTINGS_NAME, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HUGGING_FACE, ENGINE = "HuggingFaceModel", "EngineModel"

# No queue delay, as in the configs of ct2-prepare: the requests that arrived while a batch was
# computed form the next one, and a single request does not wait for others.
_CONFIG = """\
name: "{name}"
backend: "python"
max_batch_size: 256
input {{ name: "INPUT_IDS" data_type: TYPE_INT32 dims: [-1] allow_ragged_batch: true }}
input {{ name: "TARGET_PREFIX" data_type: TYPE_INT32 dims: [-1] allow_ragged_batch: true }}
output {{ name: "OUTPUT_IDS" data_type: TYPE_INT32 dims: [-1] }}
instance_group {{ kind: KIND_CPU count: {instances} }}
dynamic_batching {{}}
"""

_CODE = "from ct2_triton.bench.models.python_model import {model} as TritonPythonModel\n"


def write_python_model(folder: Path, model: str, settings: Settings, instances: int) -> None:
    """Write the folder of a model `HUGGING_FACE` or `ENGINE`; each instance is a process.

    The server must run the stub in this Python's environment, as `ct2_triton.serve` does.
    """
    version = folder / "1"
    version.mkdir(parents=True)
    config = _CONFIG.format(name=folder.name, instances=instances)
    (folder / "config.pbtxt").write_text(config, encoding="utf-8")
    (version / "model.py").write_text(_CODE.format(model=model), encoding="utf-8")
    settings.write(version / SETTINGS_NAME)


# `generate` computes all rows of a call until the longest ends; benchmarks/README.md compares 8 to
# 64.
_TRANSFORMERS_ROWS_PER_CALL = 16


class _PythonBackendContender(TritonContender):
    """A Python model for each name; the models share the cores evenly, at least one each.

    Every instance is a process with its own weights, and takes the requests that arrived while it
    was computing, without a queue delay.
    """

    model: ClassVar[str]

    def write_repository(self, repository: Path) -> None:
        """Write a Python model for each name."""
        for name in self.setup.models:
            write_python_model(
                repository / name, self.model, self.translator_settings(), self.instances
            )

    def settings(self) -> Mapping[str, str]:
        """Return the batching settings."""
        settings = self.translator_settings()
        return {
            "server": f"tritonserver, Python backend, {self._library()}",
            "instances": f"{self.instances} for each model, each with its weights, "
            f"{settings.workers} x {settings.threads} threads",
            "batches": "dynamic, ragged, no queue delay; sorted by length, in calls of up to "
            f"{settings.rows_per_call} rows, padded inside",
            "input": "token ids over gRPC",
        }

    @property
    def cores_per_model(self) -> int:
        """Number of cores for each model."""
        return max(1, self.setup.cores // len(self.setup.models))

    @property
    def instances(self) -> int:
        """Number of processes of each model; on a CPU with one thread each, unless overridden."""
        return 1 if self.setup.device == "gpu" else self.cores_per_model

    def translator_settings(self) -> Settings:
        """Return what each instance loads."""
        return self.translator(self._model_folder())

    @abstractmethod
    def _model_folder(self) -> Path:
        """Return the model folder that an instance loads."""

    @abstractmethod
    def _library(self) -> str:
        """Return the name and the version of the library."""


class PythonTransformersContender(_PythonBackendContender):
    """The usual way to serve a translation model with Triton; see `models/hugging_face.py`."""

    kind = "python-transformers"
    gpu_precisions = PYTORCH_ON_GPU
    model = HUGGING_FACE

    def translator_settings(self) -> Settings:
        """Return what each instance loads, with the best number of rows per call."""
        return replace(super().translator_settings(), rows_per_call=_TRANSFORMERS_ROWS_PER_CALL)

    def _model_folder(self) -> Path:
        return self.setup.checkpoint()

    def _library(self) -> str:
        return f"transformers {version('transformers')} on torch {version('torch')}"


class ThreadedPythonTransformersContender(PythonTransformersContender):
    """Hugging Face in one multi-threaded process: less memory, larger batches."""

    kind = "python-transformers-threads"
    gpu_precisions = ()  # on a GPU, each model has one process already

    @property
    def instances(self) -> int:
        """One."""
        return 1

    def translator_settings(self) -> Settings:
        """Return settings that give PyTorch all cores of the model."""
        return replace(super().translator_settings(), threads=self.cores_per_model)


class PythonEngineContender(_PythonBackendContender):
    """CTranslate2 in Triton's Python backend; see `models/engine.py`."""

    kind = "python-ctranslate2"
    gpu_precisions = ENGINE_ON_GPU
    model = ENGINE

    def _model_folder(self) -> Path:
        return self.setup.prepared(self.precision).model_folder

    def _library(self) -> str:
        return f"ctranslate2 {version('ctranslate2')}"


class PooledPythonEngineContender(PythonEngineContender):
    """CTranslate2 in one process, whose workers share the weights and the rows of each batch."""

    kind = "python-ctranslate2-workers"
    gpu_precisions = ()

    @property
    def instances(self) -> int:
        """One."""
        return 1

    def translator_settings(self) -> Settings:
        """Return settings with a single-threaded CTranslate2 worker for each core of the model."""
        return replace(super().translator_settings(), workers=self.cores_per_model)
