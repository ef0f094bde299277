# SPDX-License-Identifier: Apache-2.0
"""The model that a measurement is asked for: that of a shape of ct2-bench, or a given one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "tiny"))

import tiny_models
from ct2_triton.bench.shapes import SHAPES, write_shape


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Lets a command line name a shape or a model."""
    parser.add_argument("--shape", default="transformer-base", choices=SHAPES)
    parser.add_argument("--model", type=Path, help="CTranslate2 directory, instead of a shape's")


def model_of(arguments: argparse.Namespace, folder: Path) -> Path:
    """Return the CTranslate2 directory; a shape's is made in `folder`."""
    return arguments.model or make_shape(arguments.shape, folder)


def make_shape(shape: str, folder: Path) -> Path:
    """Makes an int8 model of a shape; its CTranslate2 directory."""
    checkpoint = write_shape(shape, folder / "checkpoint")
    return tiny_models.convert(checkpoint, folder / "model", "int8")
