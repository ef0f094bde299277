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

import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ct2_triton.default_repository import DEFAULT_TEXT, default_repository
from ct2_triton.errors import SettingError
from ct2_triton.prepare.options import (
    INSTANCE_KINDS,
    IO_CHOICES,
    QUANTIZATIONS,
    PrepareOptions,
    ShortlistOptions,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from types import FrameType

_LOG = logging.getLogger(__name__)
# What asks a process to end; a closed terminal sends SIGHUP, which Windows does not have.
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
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
        help=f"Triton's model repository ({DEFAULT_TEXT})",
    )
    parser.add_argument("--name", help="name in Triton (default: the last part of the source)")
    parser.add_argument("--revision", help="branch, tag or commit on the hub (default: main)")
    parser.add_argument(
        "--quantization",
        choices=QUANTIZATIONS,
        default="int8",
        metavar="TYPE",
        help=f"type the weights are stored in: {', '.join(QUANTIZATIONS)} (default: %(default)s, "
        "the smallest and on a CPU the fastest; float32 loses nothing)",
    )
    _add_serving_arguments(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="a parameter of the backend, for example beam_size=4 (docs/parameters.md); repeatable",
    )
    parser.add_argument(
        "--language-pair",
        metavar="FROM:TO",
        help="what a converted model translates (en:de), where nothing in it says so",
    )
    _add_shortlist_arguments(parser)
    parser.add_argument(
        "--no-placeholders",
        dest="placeholders",
        action="store_false",
        help="do not try which placeholders for terms the model copies (docs/terms.md)",
    )
    parser.add_argument("--force", action="store_true", help="replace a model of this name")
    parser.add_argument(
        "--as-version",
        type=int,
        metavar="N",
        help="add the result to the model of this name, as version N; it is served once ct2-models "
        "promote says so (docs/versions.md)",
    )


def _add_serving_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--instance-kind",
        choices=INSTANCE_KINDS,
        default="auto",
        help="where Triton runs the model (default: %(default)s, on a GPU if there is one)",
    )
    parser.add_argument(
        "--io",
        choices=IO_CHOICES,
        default="ids",
        help="what clients send and get: token ids, text, or both: NAME takes ids and NAME-text "
        "text, on the same weights; stream: both, and NAME-stream sends text as it grows; auto: "
        "stream, or ids where the backend cannot tokenize (default: %(default)s; docs/text.md)",
    )
    parser.add_argument(
        "--max-batch-size",
        type=int,
        default=256,
        metavar="ROWS",
        help="most rows that Triton puts into one batch; 0: no batching (default: %(default)s)",
    )


def _add_shortlist_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "vocabulary shortlist", "fewer tokens to choose from, for speed: docs/shortlists.md"
    )
    group.add_argument(
        "--shortlist-from",
        action="append",
        default=[],
        metavar="LANGUAGE[=FILE],...",
        help="target languages whose tokens answers are made of: those in a text of one sentence a "
        "line, or without a file every token of the language's script; FILE alone where a model "
        "has one target language; repeatable",
    )
    group.add_argument(
        "--shortlist-size",
        type=int,
        metavar="TOKENS",
        help="tokens of each language beside those that spell any text: the most frequent of its "
        "text, and where the text has fewer, the first of its script (default: all of the text)",
    )
    group.add_argument(
        "--shortlist-licence",
        metavar="TEXT",
        help="licence of the texts, for the model's record (default: not stated)",
    )
    group.add_argument(
        "--shortlist-union",
        action="store_true",
        help="one list for all languages (vmap.txt), instead of one for each (shortlists.json)",
    )


def run(args: argparse.Namespace) -> int:
    """Prepare one model and say on stdout where it is.

    Args:
        args: What `add_arguments` declares.

    Returns:
        0.

    Raises:
        PrepareError: It failed; nothing was written.
    """
    from ct2_triton.prepare.pipeline import prepare

    options = PrepareOptions(
        source=args.source,
        model_repository=args.model_repository,
        name=args.name,
        revision=args.revision,
        quantization=args.quantization,
        instance_kind=args.instance_kind,
        max_batch_size=args.max_batch_size,
        settings=_settings(args.settings),
        shortlist=_shortlist(args),
        language_pair=args.language_pair,
        io=args.io,
        placeholders=args.placeholders,
        force=args.force,
        as_version=args.as_version,
    )
    with _ended_in_order():
        model = prepare(options, report=_LOG.info)
    print(model.directory if args.as_version is None else model.directory / str(args.as_version))
    return 0


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Make an exception of the signals that would end the process, so that it cleans up."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in _ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _shortlist(args: argparse.Namespace) -> ShortlistOptions | None:
    entries = tuple(entry for value in args.shortlist_from for entry in value.split(","))
    if entries:
        return ShortlistOptions(
            entries, args.shortlist_size, args.shortlist_licence, args.shortlist_union
        )
    if (args.shortlist_size, args.shortlist_licence, args.shortlist_union) != (None, None, False):
        raise SettingError(
            "--shortlist-size, --shortlist-licence and --shortlist-union say more about "
            "--shortlist-from: name a target language with it"
        )
    return None


def _settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise SettingError(f"--set {pair} is not of the form name=value")
        settings[name.strip()] = value.strip()
    return settings
