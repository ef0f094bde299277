# SPDX-License-Identifier: Apache-2.0
"""Writes a model of Triton's Python backend into a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.models.translator import SETTINGS_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from ct2_triton.bench.models.translator import Settings

HUGGING_FACE, ENGINE = "HuggingFaceModel", "EngineModel"

# No queue delay, as in the configs of ct2-prepare: what waited while the last batch was computed is
# the next one, and a lone request does not wait for others.
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
    """Write a model folder of `HUGGING_FACE` or `ENGINE`; each instance is a process.

    The server must run the stub in this Python's environment, as `ct2_triton.serve` makes it.
    """
    version = folder / "1"
    version.mkdir(parents=True)
    config = _CONFIG.format(name=folder.name, instances=instances)
    (folder / "config.pbtxt").write_text(config, encoding="utf-8")
    (version / "model.py").write_text(_CODE.format(model=model), encoding="utf-8")
    settings.write(version / SETTINGS_NAME)
