# SPDX-License-Identifier: Apache-2.0
"""Convert the weights of a Marian checkpoint of transformers to Marian's own `.npz`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

END = "</s>"
UNKNOWN = "<unk>"
MODEL_NAME = "model.npz"
VOCABULARY_NAME = "vocab.yml"

# Options that Marian requires in a model, besides its sizes.
_OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "version": "v1.12.0",
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": False,
    "output-omit-bias": False,
    "transformer-decoder-dim-ffn": 0,
    "transformer-ffn-depth": 2,
    "transformer-decoder-ffn-depth": 0,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-pool": False,
    "transformer-tied-layers": [],
    "transformer-guided-alignment-layer": "last",
    "transformer-depth-scaling": False,
    "transformer-train-position-embeddings": False,
    "transformer-rnn-projection": False,
    "transformer-dim-aan": 2048,
    "transformer-aan-depth": 2,
    "transformer-aan-activation": "swish",
    "transformer-aan-nogate": False,
    "input-types": [],
    "layer-normalization": False,
    "right-left": False,
    "skip": False,
    "ulr": False,
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False,
    "embedding-fix-src": False,
    "embedding-fix-trg": False,
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "lemma-dependency": "",
    "lemma-dim-emb": 0,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "enc-type": "bidirectional",
    "dec-cell": "gru",
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "bert-train-type-embeddings": True,
    "bert-type-vocab-size": 2,
}


def write_marian_file(checkpoint: Path, folder: Path) -> None:
    """Write `model.npz`, and `vocab.yml` with a word for each ID: see `word`.

    The checkpoint has one vocabulary, whose last token is `<pad>`.
    """
    from safetensors.numpy import load_file

    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    tokens = config["vocab_size"] - 1  # transformers adds <pad> as the last
    state = load_file(checkpoint / "model.safetensors")
    weights = dict(marian_weights(state, tokens))
    # Three tables: Marian converts only matrices called W to int8, so a tied one would stay
    # float32.
    table = weights.pop("Wemb")
    weights["encoder_Wemb"] = weights["decoder_Wemb"] = table
    weights["decoder_ff_logit_out_W"] = np.ascontiguousarray(table.T)
    save_weights(folder / MODEL_NAME, weights, marian_options(config, tokens))
    lines = (f'"{word(i, config)}": {i}\n' for i in range(tokens))
    (folder / VOCABULARY_NAME).write_text("".join(lines), encoding="utf-8")


def word(token_id: int, config: Mapping[str, Any]) -> str:
    """Return the word that represents an ID in a text for Marian."""
    return {config["eos_token_id"]: END, 1: UNKNOWN}.get(token_id, f"w{token_id}")


def save_weights(
    file: Path, weights: Mapping[str, np.ndarray[Any, Any]], options: Mapping[str, Any]
) -> None:
    """Write a Marian model file."""
    text = (json.dumps(options) + "\0").encode()
    np.savez(file, **weights, **{"special:model.yml": np.frombuffer(text, dtype=np.int8)})


def marian_options(config: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Return the options of a Marian model; `<pad>` is not among its tokens."""
    return {
        **_OPTIONS,
        "dim-vocabs": [tokens, tokens],
        "dim-emb": config["d_model"],
        "enc-depth": config["encoder_layers"],
        "dec-depth": config["decoder_layers"],
        "transformer-heads": config["encoder_attention_heads"],
        "transformer-dim-ffn": config["encoder_ffn_dim"],
        "transformer-ffn-activation": config["activation_function"],
    }


def marian_weights(
    state: Mapping[str, np.ndarray[Any, Any]], tokens: int
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the weights with Marian's names, transposed as Marian stores them.

    `<pad>` is not among its tokens.
    """
    yield "Wemb", state["model.shared.weight"][:tokens]
    yield "decoder_ff_logit_out_b", state["final_logits_bias"][:, :tokens]
    projections = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}
    blocks = {"self_attn": "self", "encoder_attn": "context"}
    for name, value in state.items():
        parts = name.split(".")
        if "layers" not in parts:
            continue
        layer = f"{parts[1]}_l{int(parts[3]) + 1}"
        kind = parts[-1]
        if len(parts) == 7:
            suffix = projections[parts[5]]
            place = f"{layer}_{blocks[parts[4]]}_{'W' if kind == 'weight' else 'b'}{suffix}"
        elif parts[4] in ("fc1", "fc2"):
            place = f"{layer}_ffn_{'W' if kind == 'weight' else 'b'}{parts[4][-1]}"
        else:
            block = parts[4].removesuffix("_layer_norm")
            scope = "ffn_ffn" if block == "final" else f"{blocks[block]}_Wo"
            place = f"{layer}_{scope}_ln_{'scale' if kind == 'weight' else 'bias'}"
        yield place, np.ascontiguousarray(value.T) if value.ndim == 2 else value[None]
