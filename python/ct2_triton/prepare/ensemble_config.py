# SPDX-License-Identifier: Apache-2.0
"""The classic ensemble: a tokenizer in Python, the model of ids, a detokenizer in Python.

It is what others build around an engine of ids. Who comes from there finds it here; a text model
does the same in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ct2_triton.prepare.writing import check_output, written_at_once
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    DETOKENIZER_SUFFIX,
    ENSEMBLE_SUFFIX,
    TOKENIZER_NAME,
    TOKENIZER_SUFFIX,
)

if TYPE_CHECKING:
    from pathlib import Path

_TEXT, _SOURCE, _TARGET, _OUT = "text_input", "source_language", "target_languages", "text_output"
_INPUT_IDS, _PREFIX, _OUTPUT_IDS = "INPUT_IDS", "TARGET_PREFIX", "OUTPUT_IDS"
_CODE = """\
# Written by ct2-prepare. The server's Python needs ct2-triton with its extra `client`.
from ct2_triton.python_models import {name} as TritonPythonModel
"""
_STEPS = {
    TOKENIZER_SUFFIX: ("TokenizerModel", (_TEXT, _SOURCE, _TARGET), (_INPUT_IDS, _PREFIX)),
    DETOKENIZER_SUFFIX: ("DetokenizerModel", (_OUTPUT_IDS, _TARGET), (_OUT,)),
}
_SUFFIXES = (*_STEPS, ENSEMBLE_SUFFIX)


def check_ensemble_outputs(model: Path, *, force: bool) -> None:
    """Say early what would make `write_ensemble` fail.

    Args:
        model: Folder of the model of ids.
        force: Whether the models may exist.

    Raises:
        OutputError: One of them exists, or is no folder.
    """
    for suffix in _SUFFIXES:
        check_output(model.with_name(model.name + suffix), force=force)


def write_ensemble(model: Path, *, force: bool) -> list[Path]:
    """Write the three models of an ensemble beside a model of ids.

    Args:
        model: Folder of the prepared model of ids.
        force: Replace what is there.

    Returns:
        Their folders: tokenizer, detokenizer and ensemble.

    Raises:
        OutputError: A folder cannot be written.
    """
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    ids = text_format.Parse((model / CONFIG_NAME).read_text(encoding="utf-8"), ModelConfig())
    types = {tensor.name: tensor.data_type for tensor in (*ids.input, *ids.output)}
    outputs = []
    for suffix in _SUFFIXES:
        outputs.append(model.with_name(model.name + suffix))
        config = ModelConfig(name=outputs[-1].name, max_batch_size=ids.max_batch_size)
        if suffix in _STEPS:
            _fill_step(config, model.name, suffix, types)
        else:
            _fill_ensemble(config, model.name)
        with written_at_once(outputs[-1], force=force) as folder:
            (folder / "1").mkdir()
            text = text_format.MessageToString(config)
            (folder / CONFIG_NAME).write_text(text, encoding="utf-8")
            if suffix in _STEPS:
                code = _CODE.format(name=_STEPS[suffix][0])
                (folder / "1" / "model.py").write_text(code, encoding="utf-8")
    return outputs


def _fill_step(config: Any, name: str, suffix: str, types: dict[str, int]) -> None:  # noqa: ANN401
    """Make it a Python model, one process of one instance."""
    _, inputs, outputs = _STEPS[suffix]
    config.backend = "python"
    _add_tensors(config, inputs, outputs, types)
    config.instance_group.add(kind="KIND_CPU", count=1)
    config.dynamic_batching.SetInParent()
    config.parameters["tokenizer_path"].string_value = f"../{name}/{TOKENIZER_NAME}"


def _fill_ensemble(config: Any, name: str) -> None:  # noqa: ANN401
    """Send each tensor from where it comes to where it is needed; each has one name throughout."""
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
    config: Any,  # noqa: ANN401
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    types: dict[str, int],
) -> None:
    """Declare rows of ids, of the type that the model has, and one text of a kind for each row."""
    from tritonclient.grpc.model_config_pb2 import TYPE_STRING

    for names, declared in ((inputs, config.input), (outputs, config.output)):
        for name in names:
            tensor = declared.add(name=name, dims=[-1 if name in types else 1])
            tensor.data_type = types.get(name, TYPE_STRING)
            if name in types and declared is config.input:
                tensor.allow_ragged_batch = True
