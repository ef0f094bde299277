# SPDX-License-Identifier: Apache-2.0
"""Choose the Triton configuration of a prepared model, with a reason for each setting.

The configurations of text models are made from that of the token-ID model.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ct2_triton.errors import OutputError, SettingError, UnsupportedModelError
from ct2_triton.model_versions import files_of, followed_by, followers, read_config
from ct2_triton.prepare.triton_config import Parameter, Tensor, TritonConfig
from ct2_triton.prepare.writing import check_output
from ct2_triton.prepared_model import CONFIG_NAME, STREAM_SUFFIX, TEXT_SUFFIX, TOKENIZER_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from tritonclient.grpc.model_config_pb2 import ModelConfig

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.generation import OwnSearch
    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepare.shortlist import Shortlist
    from ct2_triton.prepared_model import TokenRules

# pad_id is for tensors of IDs; the files belong to the token-ID model, which verifies them.
_OF_IDS_ALONE = ("pad_id", "verify_files")

# By these a text model finds the files of the token-ID model.
_OF_FILES = ("model_path", "tokenizer_path")

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

_TEXT_INPUTS = (
    Tensor("text_input", "TYPE_STRING", (1,)),
    Tensor("source_language", "TYPE_STRING", (1,), optional=True),
    Tensor("target_languages", "TYPE_STRING", ragged=True, optional=True),
    Tensor("target_prefix", "TYPE_STRING", ragged=True, optional=True),
    Tensor("draft", "TYPE_STRING", ragged=True, optional=True),
    Tensor("stream", "TYPE_BOOL", (1,), optional=True),
)
_TEXT_OUTPUTS = (
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
_STREAM_OUTPUTS = (
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
    if (core := _core()) is None:
        return
    try:
        core.Tokenizer(str(folder))
    except core.Error as error:
        raise UnsupportedModelError(
            f"the backend cannot tokenize for this model: {error}; prepare it with --io ids"
        ) from error


def text_models(model: Path, options: PrepareOptions) -> list[str]:
    """Return the names of the text models that are written with a model."""
    return [model.name + suffix for suffix in _suffixes(options.io)]


def check_text_models(model: Path, options: PrepareOptions) -> None:
    """Refuse early what would make `write_text_models` fail, or replace another model."""
    names = text_models(model, options)
    for output in map(model.with_name, names):
        if output.exists() and followed_by(output) != model.name:
            raise OutputError(
                f"{output} does not share the files of {model.name}, so --io {options.io} does not "
                "replace it; choose another --name or --io, or move it away"
            )
        check_output(output, force=options.force)
    if left := [path for path in followers(model) if path.name not in names]:
        raise OutputError(
            f"{left[0]} shares the files of {model.name}, and --io {options.io} does not replace "
            "it: choose --io auto, which replaces both with the model, or move it away"
        )
    if names and (given := [name for name in _OF_FILES if name in options.settings]):
        raise SettingError(
            f"--set {given[0]}={options.settings[given[0]]} is not possible with "
            f"{' and '.join(names)}: a text model has the files of {model.name}; leave it out, or "
            "choose --io ids or text"
        )


def write_text_models(model: Path, names: Sequence[str]) -> None:
    """Write text models beside a token-ID model, with its weights, tokenizer and parameters.

    Each is only a configuration.
    """
    for name in names:
        text = _text_config(read_config(model), model.name, name.removeprefix(model.name))
        folder = model.with_name(name)
        (folder / "1").mkdir(parents=True)
        (folder / CONFIG_NAME).write_text(text, encoding="utf-8")


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
    parameters["model_path"] = files_of(name)
    parameters["tokenizer_path"] = f"../{name}/{TOKENIZER_NAME}"
    if streams:
        parameters["beam_size"] = "1"
    kind = ids.instance_group[0].Kind.Name(ids.instance_group[0].kind)
    does = "text in, and out as it grows" if streams else "text in and out"
    config = TritonConfig(
        name=name + suffix,
        max_batch_size=ids.max_batch_size,
        inputs=_TEXT_INPUTS,
        outputs=_STREAM_OUTPUTS if streams else _TEXT_OUTPUTS,
        parameters=tuple(Parameter(key, value) for key, value in sorted(parameters.items())),
        instance_kind=kind.removeprefix("KIND_").lower(),
        comment=(f"Written by ct2-prepare: {does}, on the files of the model {name} beside it.",),
        decoupled=streams,
    )
    _check(config)
    return config.to_text()


_OUTPUTS = (
    Tensor("OUTPUT_IDS", "TYPE_INT32"),
    Tensor("OUTPUT_LENGTHS", "TYPE_INT32", (1,)),
    Tensor("SCORES", "TYPE_FP32"),
    Tensor("FINISH_REASON", "TYPE_STRING"),
    Tensor("HYPOTHESES", "TYPE_INT32", (-1, -1)),
    Tensor("HYPOTHESIS_LENGTHS", "TYPE_INT32"),
    Tensor("DRAFT_TOKENS_KEPT", "TYPE_INT32", (1,)),
    Tensor("ALIGNMENTS", "TYPE_INT32"),
    Tensor("QUALITY", "TYPE_FP32"),
    Tensor("QUALITY_FLAGS", "TYPE_STRING"),
)


def write_config(
    new: NewModel,
    checkpoint: Checkpoint,
    rules: TokenRules,
    search: OwnSearch,
    shortlist: Shortlist | None = None,
) -> tuple[Parameter, ...]:
    """Write the configuration, checked by the backend's own code if it is installed.

    Returns its parameters.
    """
    options = new.options
    takes_text = options.io == "text"
    config = TritonConfig(
        name=new.folder.name,
        max_batch_size=options.max_batch_size,
        inputs=_TEXT_INPUTS
        if takes_text
        else (
            Tensor("INPUT_IDS", "TYPE_INT32", ragged=True),
            # Required if every request has one, because Triton does not batch requests with
            # different inputs.
            Tensor("TARGET_PREFIX", "TYPE_INT32", ragged=True, optional=not _has_prefix(rules)),
            Tensor("DRAFT_IDS", "TYPE_INT32", ragged=True, optional=True),
        ),
        outputs=_TEXT_OUTPUTS if takes_text else _OUTPUTS,
        parameters=_parameters(
            options.settings, rules, search.parameters, shortlist.parameters if shortlist else ()
        ),
        instance_kind=options.instance_kind,
        comment=(
            f"Written by ct2-prepare from {checkpoint.source.id}; see ct2_model.json.",
            "A request may set the decoding parameters below for itself: docs/parameters.md.",
        ),
    )
    _check(config)
    if shortlist:
        shortlist.check_search(config.parameters)
    (new.folder / CONFIG_NAME).write_text(config.to_text(), encoding="utf-8")
    for entry in search.left_out:
        new.report(str(entry))
    return config.parameters


def _has_prefix(rules: TokenRules) -> bool:
    return any(entry.target_prefix_ids for entry in rules.languages)


def _parameters(
    settings: Mapping[str, str],
    rules: TokenRules,
    of_search: tuple[Parameter, ...],
    of_shortlist: tuple[Parameter, ...],
) -> tuple[Parameter, ...]:
    """Return the default parameters, replaced or extended by the caller's settings."""
    defaults = (
        Parameter("pad_id", str(rules.pad_id), "The tokenizer's <pad>."),
        Parameter(
            "special_ids",
            json.dumps(rules.special_ids),
            "A row of only these has no text to translate.",
        ),
        *of_search,
        *of_shortlist,
    )
    kept = tuple(
        Parameter(entry.name, settings[entry.name], "Set by --set.")
        if entry.name in settings
        else entry
        for entry in defaults
    )
    names = {entry.name for entry in defaults}
    added = (
        Parameter(name, value, "Set by --set.")
        for name, value in settings.items()
        if name not in names
    )
    return (*kept, *added)


def _check(config: TritonConfig) -> None:
    """Check the configuration with the backend's own code, if it is installed."""
    if (core := _core()) is None:
        return
    try:
        core.parse_model_config(config.to_json())
    except core.Error as error:
        raise SettingError(str(error)) from error


def _core() -> ModuleType | None:
    """Return the compiled core; None if it is not installed."""
    from ct2_triton.engine_library import load_core

    try:
        return load_core()
    except ImportError:
        return None
