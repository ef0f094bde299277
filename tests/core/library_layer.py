# SPDX-License-Identifier: Apache-2.0
"""Linear layers in CTranslate2: each as the pooler of an encoder, whose inputs and outputs show."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import ctranslate2
import numpy as np
from ctranslate2.specs.common_spec import Activation, LinearSpec
from ctranslate2.specs.transformer_spec import (
    TransformerEncoderLayerSpec,
    TransformerEncoderModelSpec,
    TransformerEncoderSpec,
)

from core.test_products import random_rows
from ct2_triton import _core

_ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_tanh": Activation.GELUTanh,
    "swish": Activation.SWISH,
    "gelu_sigmoid": Activation.GELUSigmoid,
    "tanh": Activation.Tanh,
    "sigmoid": Activation.Sigmoid,
}


@cache
def library_layer(
    model: Path, compute_type: str, scope: str, activation: str
) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and outputs of a layer of an int8 model: 37 rows of all magnitudes, one of 0."""
    rows = random_rows(37, _layer(model, scope).weight.shape[1])
    rows *= np.logspace(-3, 3, len(rows), dtype=np.float32)[:, None]
    rows[11] = 0
    if activation != "none":
        return _pooled(_layer(model, scope), rows, activation, compute_type)
    inputs, above = _pooled(_layer(model, scope), rows, "relu", compute_type)
    _, below = _pooled(_layer(model, scope, sign=-1), rows, "relu", compute_type)
    return inputs, above - below


def _layer(model: Path, scope: str, sign: int = 1) -> LinearSpec:
    file = _core.ModelFile(str(model))
    weight = np.frombuffer(file.read(f"{scope}/weight"), np.int8) * np.int8(sign)
    layer = LinearSpec()
    layer.weight = weight.reshape(file.variables[f"{scope}/weight"][1])
    layer.weight_scale = file.floats(f"{scope}/weight_scale")
    if f"{scope}/bias" in file.variables:
        layer.bias = file.floats(f"{scope}/bias") * np.float32(sign)
    return layer


def _pooled(
    layer: LinearSpec, rows: np.ndarray, activation: str, compute_type: str
) -> tuple[np.ndarray, np.ndarray]:
    encoder = TransformerEncoderSpec(1, 1, no_final_norm=True)
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = rows  # which int8 rounds
    encoder.position_encodings.encodings = np.zeros((1, rows.shape[1]), np.float32)
    _let_through(encoder.layer[0], rows.shape[1])
    spec = TransformerEncoderModelSpec(encoder, True, _ACTIVATIONS[activation])
    spec.pooler_dense = layer
    spec.register_vocabulary([str(i) for i in range(len(rows))])
    spec.validate()
    with TemporaryDirectory() as folder:
        spec.save(folder)
        library = ctranslate2.Encoder(folder, device="cpu", compute_type=compute_type)
        found = library.forward_batch([[i] for i in range(len(rows))])
    return np.array(found.last_hidden_state)[:, 0], np.array(found.pooler_output)


def _let_through(layer: TransformerEncoderLayerSpec, depth: int) -> None:
    """With weights of zero, a layer adds nothing to its inputs."""
    attention, ffn = layer.self_attention, layer.ffn
    for norm in (attention.layer_norm, ffn.layer_norm):
        norm.gamma = norm.beta = np.zeros(depth, np.float32)
    for linear, outputs in (
        (attention.linear[0], 3 * depth),
        (attention.linear[1], depth),
        (ffn.linear_0, depth),
        (ffn.linear_1, depth),
    ):
        linear.weight = np.zeros((outputs, depth), np.int8)
        linear.weight_scale = np.ones(outputs, np.float32)
        linear.bias = np.zeros(outputs, np.float32)
