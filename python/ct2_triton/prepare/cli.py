# SPDX-License-Identifier: Apache-2.0
"""Make a Triton model of a Hugging Face translation checkpoint, and prove that it is right.

    ct2-prepare facebook/nllb-200-distilled-600M
    ct2-prepare ./my-finetuned-model --name news-de-fr --quantization float16
    ct2-prepare translate-en_de-1_0.argosmodel
    ct2-prepare demo --io both
    ct2-prepare ./model --shortlist-from deu_Latn=german.txt,fra_Latn=french.txt

Families: NLLB-200, M2M100, mBART-50, mBART-25, Marian (OPUS-MT), T5 (mT5, UMT5, MADLAD-400).
CTranslate2 folders, Argos packages and OPUS-MT archives need no PyTorch. `demo` is a small model in
the package itself, which needs no network (a folder of that name is `./demo`).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.interrupts import WHOLE_MODELS, interrupts_say
from ct2_triton.prepare.options import add_preparation_arguments, preparation_options
from ct2_triton.prepared_model import DEFAULT_TEXT, default_repository

if TYPE_CHECKING:
    import argparse

_LOG = logging.getLogger(__name__)
USUAL = (
    *("--model-repository", "--name", "--revision", "--quantization", "--instance-kind", "--io"),
    *("--set", "--shortlist-from", "--force"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "source",
        help="hub id (owner/name), local directory of the model, package (.argosmodel, .zip), or "
        "demo",
    )
    parser.add_argument(
        "--model-repository",
        type=Path,
        default=default_repository(),
        metavar="FOLDER",
        help=f"Triton's model repository ({DEFAULT_TEXT})",
    )
    parser.add_argument("--name", help="name in Triton (default: the last part of the source)")
    add_preparation_arguments(parser)
    parser.add_argument("--force", action="store_true", help="replace a model of this name")
    parser.add_argument(
        "--as-version",
        type=int,
        metavar="N",
        help="add the result to the model of this name, as version N; it is served once ct2-models "
        "promote says so (docs/versions.md)",
    )


def run(args: argparse.Namespace) -> int:
    """Prepare one model and print its folder on stdout."""
    from ct2_triton.prepare.pipeline import prepare

    options = preparation_options(
        args,
        args.source,
        args.model_repository,
        name=args.name,
        force=args.force,
        as_version=args.as_version,
    )
    with interrupts_say(WHOLE_MODELS):
        model = prepare(options, report=_LOG.info)
    print(model.directory if args.as_version is None else model.directory / str(args.as_version))
    return 0
