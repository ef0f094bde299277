# SPDX-License-Identifier: Apache-2.0
"""The configuration of a model that takes text, made of the one that takes ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError, UnsupportedModelError
from ct2_triton.prepare.triton_config import Parameter, Tensor
from ct2_triton.prepare.writing import check_output, written_at_once
from ct2_triton.prepared_model import CONFIG_NAME, TOKENIZER_NAME

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = "-text"
"""What the name of a text model has behind the name of the model of ids on whose files it is."""

# pad_id is for tensors of ids; the files belong to the model of ids, which verifies them.
_OF_IDS_ALONE = ("pad_id", "verify_files")

INPUTS = (
    Tensor("text_input", "TYPE_STRING", (1,)),
    Tensor("source_language", "TYPE_STRING", (1,), optional=True),
    Tensor("target_languages", "TYPE_STRING", ragged=True, optional=True),
)
OUTPUTS = (
    Tensor("text_output", "TYPE_STRING"),
    Tensor("score", "TYPE_FP32"),
    Tensor("finish_reason", "TYPE_STRING"),
    Tensor("num_input_tokens", "TYPE_UINT32"),
    Tensor("num_output_tokens", "TYPE_UINT32"),
)


def check_tokenizer(folder: Path) -> None:
    """Has the backend's own code read a tokenizer, where that is installed.

    Args:
        folder: The tokenizer's folder of a prepared model.

    Raises:
        UnsupportedModelError: The backend cannot tokenize for this model.
    """
    from ct2_triton.engine_library import load_core

    try:
        core = load_core()
    except ImportError:
        return
    try:
        core.Tokenizer(str(folder))
    except core.Error as error:
        raise UnsupportedModelError(
            f"the backend cannot tokenize for this model: {error}; prepare it with --io ids"
        ) from error


def check_text_output(model: Path, *, force: bool) -> None:
    """Says early what would make `write_text_model` fail.

    Args:
        model: Folder of the model of ids.
        force: Whether the text model may exist.

    Raises:
        OutputError: It exists, or is no folder.
    """
    check_output(model.with_name(model.name + SUFFIX), force=force)


def write_text_model(model: Path, *, force: bool) -> Path:
    """Writes the text model beside a model of ids, on the same weights, tokenizer and parameters.

    Args:
        model: Folder of the prepared model of ids.
        force: Replace a text model that is there.

    Returns:
        The folder of the text model: a configuration, and nothing to keep in step.

    Raises:
        UnsupportedModelError: The backend cannot tokenize for this model.
        OutputError: The folder cannot be written.
    """
    check_tokenizer(model / TOKENIZER_NAME)
    output = model.with_name(model.name + SUFFIX)
    text = _text_config((model / CONFIG_NAME).read_text(encoding="utf-8"), model.name)
    with written_at_once(output, force=force) as folder:
        (folder / "1").mkdir()
        (folder / CONFIG_NAME).write_text(text, encoding="utf-8")
    return output


def _text_config(config: str, name: str) -> str:
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    from ct2_triton.prepare.triton_config import TritonConfig

    ids = text_format.Parse(config, ModelConfig())
    parameters = {
        key: value.string_value for key, value in ids.parameters.items() if key not in _OF_IDS_ALONE
    }
    if "model_path" in parameters or "tokenizer_path" in parameters:
        raise SettingError("--io both sets model_path and tokenizer_path itself; leave them out")
    parameters["model_path"] = f"../{name}/1/model"
    parameters["tokenizer_path"] = f"../{name}/{TOKENIZER_NAME}"
    kind = ids.instance_group[0].Kind.Name(ids.instance_group[0].kind)
    return TritonConfig(
        name=name + SUFFIX,
        max_batch_size=ids.max_batch_size,
        inputs=INPUTS,
        outputs=OUTPUTS,
        parameters=tuple(Parameter(key, value) for key, value in sorted(parameters.items())),
        instance_kind=kind.removeprefix("KIND_").lower(),
        comment=(
            f"Written by ct2-prepare: text in and out, on the files of the model {name} beside it.",
        ),
    ).to_text()
