# SPDX-License-Identifier: Apache-2.0
"""The configurations of text models, made from that of the token-ID model."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError, UnsupportedModelError
from ct2_triton.prepare.triton_config import Parameter, Tensor
from ct2_triton.prepare.writing import check_output, written_at_once
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    STREAM_SUFFIX,
    TEXT_SUFFIX,
    TOKENIZER_NAME,
)
from ct2_triton.version_policy import files_of, read_config

if TYPE_CHECKING:
    from pathlib import Path

    from tritonclient.grpc.model_config_pb2 import ModelConfig

# pad_id is for tensors of IDs; the files belong to the token-ID model, which verifies them.
_OF_IDS_ALONE = ("pad_id", "verify_files")

# A stream model is greedy, even if the model has another search.
_OF_OTHER_SEARCHES = (
    "beam_size",
    "patience",
    "coverage_penalty",
    "prefix_bias_beta",
    "sampling_topk",
    "sampling_topp",
    "sampling_temperature",
    "num_hypotheses",
    "return_alternatives",
    "min_alternative_expansion_prob",
)

INPUTS = (
    Tensor("text_input", "TYPE_STRING", (1,)),
    Tensor("source_language", "TYPE_STRING", (1,), optional=True),
    Tensor("target_languages", "TYPE_STRING", ragged=True, optional=True),
    Tensor("target_prefix", "TYPE_STRING", ragged=True, optional=True),
    Tensor("draft", "TYPE_STRING", ragged=True, optional=True),
    Tensor("stream", "TYPE_BOOL", (1,), optional=True),
)
OUTPUTS = (
    Tensor("text_output", "TYPE_STRING"),
    Tensor("score", "TYPE_FP32"),
    Tensor("finish_reason", "TYPE_STRING"),
    Tensor("num_input_tokens", "TYPE_UINT32"),
    Tensor("num_output_tokens", "TYPE_UINT32"),
    Tensor("hypotheses", "TYPE_STRING", (-1, -1)),
    Tensor("hypothesis_scores", "TYPE_FP32", (-1, -1)),
    Tensor("source_ranges", "TYPE_INT32", (-1, 2)),
    Tensor("target_ranges", "TYPE_INT32", (-1, -1, 2)),
    Tensor("alignments", "TYPE_INT32", (-1, -1, 4)),
    Tensor("quality", "TYPE_FP32"),
    Tensor("quality_flags", "TYPE_STRING"),
)
STREAM_OUTPUTS = (
    Tensor("text_output", "TYPE_STRING"),
    Tensor("target_index", "TYPE_UINT32"),
    Tensor("target_language", "TYPE_STRING"),
    Tensor("finish_reason", "TYPE_STRING"),
    Tensor("num_input_tokens", "TYPE_UINT32"),
    Tensor("num_output_tokens", "TYPE_UINT32"),
    Tensor("quality", "TYPE_FP32"),
    Tensor("quality_flags", "TYPE_STRING"),
)


def check_tokenizer(folder: Path) -> None:
    """Read a tokenizer with the backend's own code, if it is installed."""
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


def check_text_outputs(model: Path, io: str, *, force: bool) -> None:
    """Refuse early what would make `write_text_models` fail."""
    for suffix in _suffixes(io):
        check_output(model.with_name(model.name + suffix), force=force)


def write_text_models(model: Path, io: str, *, force: bool) -> list[Path]:
    """Write text models for a token-ID model, with the same weights, tokenizer and parameters.

    Each is only a configuration. `both` writes the text model, `stream` also the stream model;
    another `io` writes none.
    """
    outputs = []
    for suffix in _suffixes(io):
        check_tokenizer(model / TOKENIZER_NAME)
        text = _text_config(read_config(model), model.name, suffix)
        outputs.append(model.with_name(model.name + suffix))
        with written_at_once(outputs[-1], force=force) as folder:
            (folder / "1").mkdir()
            (folder / CONFIG_NAME).write_text(text, encoding="utf-8")
    return outputs


def remove_text_models(model: Path) -> list[str]:
    """Remove the text models of a token-ID model; return their names."""
    found = [model.with_name(model.name + suffix) for suffix in _suffixes("auto")]
    removed = [path for path in found if (path / CONFIG_NAME).is_file()]
    for path in removed:
        shutil.rmtree(path)
    return [path.name for path in removed]


def _suffixes(io: str) -> tuple[str, ...]:
    return {
        "both": (TEXT_SUFFIX,),
        "stream": (TEXT_SUFFIX, STREAM_SUFFIX),
        "auto": (TEXT_SUFFIX, STREAM_SUFFIX),
    }.get(io, ())


def _text_config(ids: ModelConfig, name: str, suffix: str) -> str:
    from ct2_triton.prepare.triton_config import TritonConfig

    streams = suffix == STREAM_SUFFIX
    left_out = (*_OF_IDS_ALONE, *(_OF_OTHER_SEARCHES if streams else ()))
    parameters = {
        key: value.string_value for key, value in ids.parameters.items() if key not in left_out
    }
    if "model_path" in parameters or "tokenizer_path" in parameters:
        raise SettingError("--io both sets model_path and tokenizer_path itself; leave them out")
    parameters["model_path"] = files_of(name)
    parameters["tokenizer_path"] = f"../{name}/{TOKENIZER_NAME}"
    if streams:
        parameters["beam_size"] = "1"
    kind = ids.instance_group[0].Kind.Name(ids.instance_group[0].kind)
    does = "text in, and out as it grows" if streams else "text in and out"
    return TritonConfig(
        name=name + suffix,
        max_batch_size=ids.max_batch_size,
        inputs=INPUTS,
        outputs=STREAM_OUTPUTS if streams else OUTPUTS,
        parameters=tuple(Parameter(key, value) for key, value in sorted(parameters.items())),
        instance_kind=kind.removeprefix("KIND_").lower(),
        comment=(f"Written by ct2-prepare: {does}, on the files of the model {name} beside it.",),
        decoupled=streams,
    ).to_text()
