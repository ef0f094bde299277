# SPDX-License-Identifier: Apache-2.0
"""Writes model repositories by hand, where a test must not depend on ct2-prepare."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

ONLY_THE_BACKEND = 'backend: "ctranslate2"\n'

# A Python model that returns its input: for tests of the server that need no translation.
IDENTITY_CONFIG = """
backend: "python"
max_batch_size: 0
input { name: "IN" data_type: TYPE_INT32 dims: [-1] }
output { name: "OUT" data_type: TYPE_INT32 dims: [-1] }
"""
_IDENTITY_CODE = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(SLEEP_S)
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values)])
"""


def write_model(
    repository: Path, name: str, engine_model: Path, config: str | None = ONLY_THE_BACKEND
) -> Path:
    """Write a model folder with a copy of `engine_model`.

    `config` is the text of config.pbtxt; None writes none. Returns the model's folder.
    """
    folder = repository / name
    shutil.copytree(engine_model, folder / "1" / "model")
    if config is not None:
        (folder / "config.pbtxt").write_text(config, encoding="utf-8")
    return folder


def write_whole_lists(model: Path, languages: Sequence[str]) -> None:
    """Give languages of an NLLB model lists of all its tokens, in shortlists.json.

    Their rows then go by lists, and the answers stay those of the whole vocabulary.
    """
    vocabulary = json.loads((model / "shared_vocabulary.json").read_text(encoding="utf-8"))
    everything = list(range(len(vocabulary)))
    lists = [
        {"language": code, "prefix_id": vocabulary.index(code), "tokens": everything}
        for code in languages
    ]
    (model / "shortlists.json").write_text(json.dumps({"lists": lists}), encoding="utf-8")


def write_identity_model(
    repository: Path, name: str, config: str = IDENTITY_CONFIG, sleep_s: float = 0
) -> Path:
    """Write a Python model that returns its input after a while. Returns the model's folder."""
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(
        f"SLEEP_S = {sleep_s}\n{_IDENTITY_CODE}", encoding="utf-8"
    )
    (folder / "config.pbtxt").write_text(config, encoding="utf-8")
    return folder
