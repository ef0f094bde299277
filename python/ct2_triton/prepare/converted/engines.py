# SPDX-License-Identifier: Apache-2.0
"""Converts OPUS-MT archives and OpenNMT-py checkpoints with CTranslate2's own converters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ConversionError, UnsupportedModelError
from ct2_triton.prepare.layout import DECODER_FILE

if TYPE_CHECKING:
    from pathlib import Path


def convert_opus_mt(folder: Path, output: Path, quantization: str) -> None:
    """Convert the weights of an OPUS-MT archive (Marian, `.npz`)."""
    from ctranslate2.converters import OpusMTConverter

    _check_decoder(folder)
    try:
        OpusMTConverter(str(folder)).convert(str(output), quantization=quantization)
    except Exception as error:  # whatever numpy, yaml and the converter raise
        raise ConversionError(f"CTranslate2 cannot convert the archive: {error}") from error


def _check_decoder(folder: Path) -> None:
    import yaml

    try:
        content: Any = yaml.safe_load((folder / DECODER_FILE).read_text(encoding="utf-8"))
        models, vocabularies = list(content["models"]), list(content["vocabs"])
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        raise UnsupportedModelError(
            f"{DECODER_FILE} does not name models and vocabs: {error!r}"
        ) from error
    if len(models) != 1:
        raise UnsupportedModelError(
            f"{DECODER_FILE} names {len(models)} models, which vote; one is converted"
        )
    for name in (*models, *vocabularies):
        if not isinstance(name, str) or "/" in name or not (folder / name).is_file():
            raise UnsupportedModelError(f"{DECODER_FILE} names {name!r}, which is not beside it")


def convert_opennmt_py(file: Path, output: Path, quantization: str) -> None:
    """Convert a `.pt` checkpoint of OpenNMT-py, which needs PyTorch.

    Only tensors, plain values and `argparse.Namespace` are read of the file: it is a pickle, which
    could hold code otherwise.
    """
    import torch
    from ctranslate2.converters import OpenNMTPyConverter

    # OpenNMT-py keeps its options in a Namespace.
    with torch.serialization.safe_globals([argparse.Namespace]):
        try:
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:  # whatever pickle, zipfile and torch raise
            first = str(error).strip().split("\n")[0][:200]
            raise UnsupportedModelError(
                f"{file.name} is not loaded: it is no checkpoint of OpenNMT-py 3, or its pickle "
                f"holds more than tensors and options, which could be code ({first})"
            ) from error
        _check_checkpoint(file.name, content)
        del content
        try:
            OpenNMTPyConverter(str(file)).convert(str(output), quantization=quantization)
        except Exception as error:  # whatever the converter raises
            raise ConversionError(f"CTranslate2 cannot convert {file.name}: {error}") from error


def _check_checkpoint(name: str, content: object) -> None:
    wanted = ("vocab", "opt", "model", "generator")
    if not isinstance(content, dict) or any(key not in content for key in wanted):
        raise UnsupportedModelError(
            f"{name} is no checkpoint of OpenNMT-py: it lacks {', '.join(wanted)}"
        )
    kind = getattr(content["opt"], "decoder_type", None)
    if kind != "transformer":
        raise UnsupportedModelError(
            f"{name} has a decoder of type {kind!r}, which is not a translation model here "
            "('transformer')"
        )
