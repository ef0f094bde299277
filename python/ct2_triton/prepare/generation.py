# SPDX-License-Identifier: Apache-2.0
"""Convert a checkpoint's generation config to parameters of the backend."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepare.triton_config import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepared_model import TokenRules

# CTranslate2's default limit of an output, and the backend's largest, in tokens.
_MAX_DECODING_TOKENS = 256
_DECODING_LENGTH_LIMIT = 4096

# Options of `generate` that change answers, with the neutral value.
_OF_SAMPLING: dict[str, Any] = {
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "min_p": None,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
_OF_BEAMS: dict[str, Any] = {
    "length_penalty": 1.0,
    "early_stopping": False,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
}
_DEFAULTS: dict[str, Any] = {
    **_OF_SAMPLING,
    **_OF_BEAMS,
    "num_beams": 1,
    "do_sample": False,
    "num_return_sequences": 1,
    "max_length": None,
    "max_new_tokens": None,
    "min_length": 0,
    "min_new_tokens": None,
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "bad_words_ids": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "guidance_scale": None,
    "renormalize_logits": False,
    "penalty_alpha": None,
    "dola_layers": None,
    "constraints": None,
    "force_words_ids": None,
    "max_time": None,
    "stop_strings": None,
    "watermarking_config": None,
    "token_healing": False,
}
# Options that do not change answers: caches, outputs, IDs that the token rules have.
_NEUTRAL = {
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_lookbehind",
    "bos_token_id",
    "cache_config",
    "cache_implementation",
    "decoder_start_token_id",
    "disable_compile",
    "eos_token_id",
    "is_assistant",
    "low_memory",
    "max_matching_ngram_size",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "pad_token_id",
    "prefill_chunk_size",
    "prompt_lookup_num_tokens",
    "remove_invalid_values",
    "return_dict_in_generate",
    "return_legacy_cache",
    "target_lookbehind",
    "transformers_version",
    "use_cache",
}

# What CTranslate2 always does: it stops when beam_size hypotheses are complete, and it applies
# penalties before the softmax.
_ALWAYS_HERE = ("early_stopping", "renormalize_logits")

# Options that differ at most in the name: `generate` to backend, with the backend's range.
_NUMBERS = (
    ("length_penalty", "length_penalty", -5, 5),
    ("repetition_penalty", "repetition_penalty", 0.01, 100),
    ("no_repeat_ngram_size", "no_repeat_ngram_size", 0, 65536),
    ("num_return_sequences", "num_hypotheses", 1, 1024),
)

# The options that are converted: how an error names their type, the type, the depth of lists.
_KINDS: tuple[tuple[str, tuple[type, ...], int, tuple[str, ...]], ...] = (
    (
        "an integer",
        (int,),
        0,
        (
            *("num_beams", "num_return_sequences", "no_repeat_ngram_size", "top_k"),
            *("max_length", "max_new_tokens", "min_length", "min_new_tokens"),
        ),
    ),
    (
        "a number",
        (int, float),
        0,
        ("length_penalty", "repetition_penalty", "temperature", "top_p"),
    ),
    ("a list of token ids", (int,), 1, ("suppress_tokens",)),
    ("a list of lists of token ids", (int,), 2, ("bad_words_ids",)),
)

_REASONS = {
    "forced_bos_token_id": "requests send the first token of an answer as TARGET_PREFIX",
    "forced_eos_token_id": "an answer that is cut at its limit has no end token",
    "do_sample": "sampling and beams do not go together here",
}
_SAYS = "The checkpoint's generation config"


@dataclass(frozen=True)
class LeftOut:
    """An entry of a generation config that the backend does not support.

    Attributes:
        name: Its name.
        value: Its value.
        reason: Why it is not used.
    """

    name: str
    value: Any
    reason: str

    def __str__(self) -> str:
        """Return a sentence for a report."""
        shown = json.dumps(self.value)
        return f"generation config, left out: {self.name} {shown[:60]}: {self.reason}"


@dataclass(frozen=True)
class OwnSearch:
    """The search that a checkpoint asks for.

    Attributes:
        parameters: The supported settings, as parameters for config.pbtxt.
        always_here: Settings without a parameter, because CTranslate2 always works so.
        left_out: Settings that are not supported.
    """

    parameters: tuple[Parameter, ...]
    always_here: tuple[str, ...]
    left_out: tuple[LeftOut, ...]

    def value(self, name: str, default: float) -> float:
        """Return the value of a numeric parameter."""
        values = {entry.name: entry.value for entry in self.parameters}
        return float(values.get(name, default))

    @property
    def record(self) -> dict[str, Any]:
        """The entry in ct2_model.json."""
        return {
            "carried_over": {entry.name: entry.value for entry in self.parameters},
            "always_here": list(self.always_here),
            "left_out": {
                entry.name: {"value": entry.value, "reason": entry.reason}
                for entry in self.left_out
            },
        }


def own_search(checkpoint: Checkpoint, rules: TokenRules) -> OwnSearch:
    """Convert a checkpoint's generation config."""
    config = checkpoint.generation_config
    _check_types(config, checkpoint.source.id)
    rest = _meaningful(config)
    always_here = tuple(name for name in _ALWAYS_HERE if rest.get(name) is True)
    for name in always_here:
        del rest[name]
    parameters = [_beam_size(rest), _longest(rest, rules), *_numbers(rest), *_shortest(rest)]
    parameters += _suppressed(rest, rules)
    parameters += _ends(config, rules)
    parameters += _sampling(rest, int(config.get("num_beams") or 1))
    left_out = (
        LeftOut(name, value, _REASONS.get(name, "the backend has no such option"))
        for name, value in rest.items()
    )
    return OwnSearch(tuple(parameters), always_here, tuple(left_out))


def _check_types(config: Mapping[str, Any], source: str) -> None:
    for kind, types, depth, names in _KINDS:
        for name in names:
            value = config.get(name)
            if value is not None and not _is_of(value, types, depth):
                raise UnsupportedModelError(
                    f"the generation config of {source} has {name} {json.dumps(value)[:60]}, which "
                    f"is not {kind}: correct it"
                )


def _is_of(value: object, types: tuple[type, ...], depth: int) -> bool:
    """Return whether a value is of these types, or a list of such values, `depth` times."""
    if depth == 0:
        return isinstance(value, types) and not isinstance(value, bool)
    return isinstance(value, list) and all(_is_of(one, types, depth - 1) for one in value)


def _meaningful(config: Mapping[str, Any]) -> dict[str, Any]:
    """Remove options that do not change answers, and those of config.json about other things."""
    is_model_config = "model_type" in config
    silent = set(_NEUTRAL)
    if not config.get("do_sample"):
        silent |= set(_OF_SAMPLING)
    if (config.get("num_beams") or 1) == 1:
        silent |= set(_OF_BEAMS)
    return {
        name: value
        for name, value in config.items()
        if name not in silent
        and not name.startswith("_")
        and value is not None
        and value != _DEFAULTS.get(name)
        and (name in _DEFAULTS or not is_model_config)
    }


def _beam_size(rest: dict[str, Any]) -> Parameter:
    beams = int(rest.pop("num_beams", 1))
    return Parameter(
        "beam_size", str(beams), f"{_SAYS} (greedy where it says nothing). 1 is the fastest."
    )


def _longest(rest: dict[str, Any], rules: TokenRules) -> Parameter:
    """Return the limit; `max_length` counts the start token, `max_new_tokens` does not."""
    of_length = rest.pop("max_length", _MAX_DECODING_TOKENS + 1) - 1
    wanted = rest.pop("max_new_tokens", of_length)
    limit = rules.max_target_tokens or _DECODING_LENGTH_LIMIT
    return Parameter(
        "max_decoding_length",
        str(max(1, min(wanted, limit, _DECODING_LENGTH_LIMIT))),
        "Tokens of an output, its prefix counted: the checkpoint's generation config, else "
        "CTranslate2's default, or the model's positions where those are fewer.",
    )


def _shortest(rest: dict[str, Any]) -> list[Parameter]:
    tokens = max(rest.pop("min_length", 1) - 1, rest.pop("min_new_tokens", 0))
    return [Parameter("min_decoding_length", str(tokens), f"{_SAYS}.")] if tokens > 1 else []


def _numbers(rest: dict[str, Any]) -> list[Parameter]:
    return [
        Parameter(parameter, json.dumps(rest.pop(name)), f"{_SAYS}.")
        for name, parameter, low, high in _NUMBERS
        if name in rest and low <= rest[name] <= high
    ]


def _suppressed(rest: dict[str, Any], rules: TokenRules) -> list[Parameter]:
    """Drop IDs that the converted model lacks and never generates, such as Marian's `<pad>`."""
    sequences = [list(ids) for ids in rest.pop("bad_words_ids", ())]
    sequences += [[token] for token in rest.pop("suppress_tokens", ())]
    possible = [
        ids
        for ids in sequences
        if ids and all(0 <= i < rules.vocabulary_size for i in ids) and ids != [*rules.end_ids]
    ]
    if not possible:
        return []
    return [Parameter("suppress_sequences", json.dumps(possible), f"{_SAYS}.")]


def _ends(config: Mapping[str, Any], rules: TokenRules) -> list[Parameter]:
    ends = config.get("eos_token_id")
    several = [i for i in ends if i < rules.vocabulary_size] if isinstance(ends, list) else []
    if set(several) <= set(rules.end_ids):
        return []
    return [Parameter("end_token", json.dumps(several), f"{_SAYS}.")]


def _sampling(rest: dict[str, Any], beams: int) -> list[Parameter]:
    if "do_sample" not in rest or beams > 1:
        return []
    del rest["do_sample"]
    candidates = int(rest.pop("top_k", _OF_SAMPLING["top_k"]))
    found = [Parameter("sampling_topk", str(candidates), f"{_SAYS}: answers are random.")]
    for name, parameter in (("top_p", "sampling_topp"), ("temperature", "sampling_temperature")):
        if name in rest:
            found.append(Parameter(parameter, json.dumps(rest.pop(name)), f"{_SAYS}."))
    return found
