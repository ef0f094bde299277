# SPDX-License-Identifier: Apache-2.0
"""Choose the Triton configuration of a prepared model, with a reason for each setting."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError
from ct2_triton.prepare import text_config
from ct2_triton.prepare.triton_config import Parameter, Tensor, TritonConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.generation import OwnSearch
    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepare.shortlist import Shortlist
    from ct2_triton.prepared_model import TokenRules

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


def build_config(
    options: PrepareOptions,
    name: str,
    checkpoint: Checkpoint,
    rules: TokenRules,
    search: OwnSearch,
    shortlist: Shortlist | None = None,
) -> TritonConfig:
    """Build the configuration, and check it with the backend's own code if it is installed."""
    takes_text = options.io == "text"
    config = TritonConfig(
        name=name,
        max_batch_size=options.max_batch_size,
        inputs=text_config.INPUTS
        if takes_text
        else (
            Tensor("INPUT_IDS", "TYPE_INT32", ragged=True),
            # Required if every request has one, because Triton does not batch requests with
            # different inputs.
            Tensor("TARGET_PREFIX", "TYPE_INT32", ragged=True, optional=not _has_prefix(rules)),
            Tensor("DRAFT_IDS", "TYPE_INT32", ragged=True, optional=True),
        ),
        outputs=text_config.OUTPUTS if takes_text else _OUTPUTS,
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
    return config


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
    from ct2_triton.engine_library import load_core

    try:
        core = load_core()
    except ImportError:
        return
    try:
        core.parse_model_config(config.to_json())
    except core.Error as error:
        raise SettingError(str(error)) from error
