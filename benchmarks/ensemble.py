# SPDX-License-Identifier: Apache-2.0
"""The classic ensemble that a text model is compared with, beside a prepared token-ID model.

It has a tokenizer in Triton's Python backend, the token-ID model and a detokenizer in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import TYPE_STRING, ModelConfig

from ct2_triton.prepared_model import CONFIG_NAME, TOKENIZER_NAME

_TEXT, _SOURCE, _TARGET, _OUT = "text_input", "source_language", "target_languages", "text_output"
_INPUT_IDS, _PREFIX, _OUTPUT_IDS = "INPUT_IDS", "TARGET_PREFIX", "OUTPUT_IDS"
_STEPS_FILE = Path(__file__).with_name("ensemble_steps.py")
ENSEMBLE_SUFFIX, TOKENIZER_SUFFIX, DETOKENIZER_SUFFIX = "-ensemble", "-tokenizer", "-detokenizer"
_STEPS = {
    TOKENIZER_SUFFIX: ("TokenizerModel", (_TEXT, _SOURCE, _TARGET), (_INPUT_IDS, _PREFIX)),
    DETOKENIZER_SUFFIX: ("DetokenizerModel", (_OUTPUT_IDS, _TARGET), (_OUT,)),
}


def write_ensemble(model: Path) -> None:
    """Write the three models of an ensemble beside a token-ID model."""
    ids = text_format.Parse((model / CONFIG_NAME).read_text(encoding="utf-8"), ModelConfig())
    types = {tensor.name: tensor.data_type for tensor in (*ids.input, *ids.output)}
    for suffix in (*_STEPS, ENSEMBLE_SUFFIX):
        folder = model.with_name(model.name + suffix)
        (folder / "1").mkdir(parents=True)
        config = ModelConfig(name=folder.name, max_batch_size=ids.max_batch_size)
        if suffix in _STEPS:
            _fill_step(config, model.name, suffix, types)
            code = f"{_STEPS_FILE.read_text()}\n\nTritonPythonModel = {_STEPS[suffix][0]}\n"
            (folder / "1" / "model.py").write_text(code, encoding="utf-8")
        else:
            _fill_ensemble(config, model.name)
        (folder / CONFIG_NAME).write_text(text_format.MessageToString(config), encoding="utf-8")


def _fill_step(config: Any, name: str, suffix: str, types: dict[str, int]) -> None:
    """Fill in the configuration of a Python model with one instance, which is one process."""
    _, inputs, outputs = _STEPS[suffix]
    config.backend = "python"
    _add_tensors(config, inputs, outputs, types)
    config.instance_group.add(kind="KIND_CPU", count=1)
    config.dynamic_batching.SetInParent()
    config.parameters["tokenizer_path"].string_value = f"../{name}/{TOKENIZER_NAME}"


def _fill_ensemble(config: Any, name: str) -> None:
    """Connect the steps' tensors, each of which has the same name in all steps."""
    config.platform = "ensemble"
    _add_tensors(config, (_TEXT, _SOURCE, _TARGET), (_OUT,), {})
    steps = {name + suffix: tensors for suffix, (_, *tensors) in _STEPS.items()}
    tokenizer, detokenizer = steps
    engine = {name: [(_INPUT_IDS, _PREFIX), (_OUTPUT_IDS,)]}
    order = {tokenizer: steps[tokenizer], **engine, detokenizer: steps[detokenizer]}
    for step, (inputs, outputs) in order.items():
        added = config.ensemble_scheduling.step.add(model_name=step, model_version=-1)
        added.input_map.update({tensor: tensor for tensor in inputs})
        added.output_map.update({tensor: tensor for tensor in outputs})


def _add_tensors(
    config: Any,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    types: dict[str, int],
) -> None:
    """Declare tensors of ID rows, with the model's type, and tensors of one text per row."""
    for names, declared in ((inputs, config.input), (outputs, config.output)):
        for name in names:
            tensor = declared.add(name=name, dims=[-1 if name in types else 1])
            tensor.data_type = types.get(name, TYPE_STRING)
            if name in types and declared is config.input:
                tensor.allow_ragged_batch = True
