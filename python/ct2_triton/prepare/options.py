# SPDX-License-Identifier: Apache-2.0
"""The options of a preparation, and their arguments for ct2-prepare and ct2-serve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import SettingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path

# The types that CTranslate2 can store weights in.
QUANTIZATIONS = (
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
    "float16",
    "bfloat16",
    "float32",
)
INSTANCE_KINDS = ("auto", "cpu", "gpu")
# What clients send and receive.
IO_CHOICES = ("ids", "text", "both", "stream", "auto")


@dataclass(frozen=True)
class ShortlistOptions:
    """The vocabulary shortlist to make.

    Attributes:
        entries: `language=file` counts the pieces of a text; `language` takes every piece of the
            language's script; for a model with one target language, `file` suffices.
        size: Pieces per language: the most frequent of its text, then, if the text has fewer, the
            first of its script in the vocabulary; None: all of the text, or of the script.
        licence: Licence of the texts, as stated by the caller.
        union: One list for all languages (vmap.txt) instead of one for each (shortlists.json).
    """

    entries: tuple[str, ...]
    size: int | None = None
    licence: str | None = None
    union: bool = False


@dataclass(frozen=True)
class PrepareOptions:
    """One preparation.

    Attributes:
        source: Hub id (`facebook/nllb-200-distilled-600M`), a local directory, a package
            (`.argosmodel`, `.zip`), or `demo`.
        model_repository: Triton's model repository; created if it does not exist.
        name: The model's name in Triton; None derives it from the source.
        revision: Branch, tag or commit on the hub; None is the default branch.
        quantization: Type of the stored weights, of `QUANTIZATIONS`.
        instance_kind: Where Triton runs it, of `INSTANCE_KINDS`; auto: on a GPU if there is one.
        max_batch_size: Rows that Triton may put into one batch; 0 switches batching off.
        settings: Backend parameters by name, in place of the defaults written.
        shortlist: Vocabulary shortlist to make and switch on; None: none.
        language_pair: `en:de` for a converted model that does not say what it translates.
        io: What clients send and receive, of `IO_CHOICES`; both: `<name>` takes IDs and
            `<name>-text` takes text, with the same files; stream: also `<name>-stream`, which sends
            text as it is generated; auto: stream, or ids if the backend cannot tokenize for the
            model.
        placeholders: Whether to find out which placeholders the model copies (docs/terms.md).
        quality_texts: `FILE` or `FROM:TO,TO,...=FILE`: sentences from which the statistics of the
            verdicts are made (docs/quality.md).
        force: Replace a model of this name.
        as_version: Add the result to an existing model as this version; None: a new model.
    """

    source: str
    model_repository: Path
    name: str | None = None
    revision: str | None = None
    quantization: str = "int8"
    instance_kind: str = "auto"
    max_batch_size: int = 256
    settings: Mapping[str, str] = field(default_factory=dict)
    shortlist: ShortlistOptions | None = None
    language_pair: str | None = None
    io: str = "ids"
    placeholders: bool = True
    quality_texts: tuple[str, ...] = ()
    force: bool = False
    as_version: int | None = None


_OF_A_SHORTLIST = ("shortlist_size", "shortlist_licence", "shortlist_union")
_NAMES = (
    *("revision", "quantization", "instance_kind", "io", "max_batch_size", "settings"),
    *("language_pair", "placeholders", "quality_texts", "shortlist_from", *_OF_A_SHORTLIST),
)


def add_preparation_arguments(parser: argparse.ArgumentParser, io: str = PrepareOptions.io) -> None:
    """Declare the options; each is None if it is not given."""
    add = parser.add_argument_group("preparation", "docs/preparing.md").add_argument
    add("--revision", help="branch, tag or commit on the hub (default: main)")
    add(
        "--quantization",
        choices=QUANTIZATIONS,
        metavar="TYPE",
        help=f"type the weights are stored in: {', '.join(QUANTIZATIONS)} (default: "
        f"{PrepareOptions.quantization}, the smallest and on a CPU the fastest; float32 loses "
        "nothing)",
    )
    add(
        "--instance-kind",
        choices=INSTANCE_KINDS,
        help=f"where Triton runs the model (default: {PrepareOptions.instance_kind}, on a GPU if "
        "there is one)",
    )
    add(
        "--io",
        choices=IO_CHOICES,
        help="what clients send and receive: token ids, text, or both: NAME takes ids and "
        "NAME-text text, on the same weights; stream: both, and NAME-stream sends text as it "
        "grows; auto: stream, or ids where the backend cannot tokenize "
        f"(default: {io}; docs/text.md)",
    )
    add(
        "--max-batch-size",
        type=int,
        metavar="ROWS",
        help="most rows that Triton puts into one batch; 0: no batching (default: "
        f"{PrepareOptions.max_batch_size})",
    )
    add(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        dest="settings",
        help="a parameter of the backend, for example beam_size=4 (docs/parameters.md); repeatable",
    )
    add(
        "--language-pair",
        metavar="FROM:TO",
        help="languages of a converted model whose files do not name them, such as en:de",
    )
    add(
        "--no-placeholders",
        dest="placeholders",
        action="store_const",
        const=False,
        help="do not try which placeholders for terms the model copies (docs/terms.md)",
    )
    add(
        "--quality-text",
        action="append",
        metavar="[FROM:TO,...=]FILE",
        dest="quality_texts",
        help="text of good sentences, one per line; their translations give the verdicts the "
        "usual values (docs/quality.md); repeatable",
    )
    _add_shortlist_arguments(parser)
    parser.set_defaults(default_io=io)


def _add_shortlist_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "vocabulary shortlist", "fewer tokens to choose from, for speed: docs/shortlists.md"
    )
    group.add_argument(
        "--shortlist-from",
        action="append",
        metavar="LANGUAGE[=FILE],...",
        help="target languages of the shortlist: it has the tokens of a text of one sentence per "
        "line or, without a file, all tokens of the language's script; FILE alone for a model with "
        "one target language; repeatable",
    )
    group.add_argument(
        "--shortlist-size",
        type=int,
        metavar="TOKENS",
        help="tokens per language besides those that can spell any text: the most frequent of its "
        "text and, if the text has fewer, the first of its script (default: all of the text)",
    )
    group.add_argument(
        "--shortlist-licence",
        metavar="TEXT",
        help="licence of the texts, for the model's record (default: not stated)",
    )
    group.add_argument(
        "--shortlist-union",
        action="store_const",
        const=True,
        help="one list for all languages (vmap.txt), instead of one for each (shortlists.json)",
    )


def given_options(args: argparse.Namespace) -> list[str]:
    """Return the names of the given options of a preparation, without dashes."""
    names = [name for name in _NAMES if getattr(args, name) is not None]
    shown = {"settings": "set", "placeholders": "no-placeholders", "quality_texts": "quality-text"}
    return [shown.get(name, name.replace("_", "-")) for name in names]


def preparation_options(
    args: argparse.Namespace,
    source: str,
    repository: Path,
    **more: Any,  # noqa: ANN401 - attributes of PrepareOptions
) -> PrepareOptions:
    """Make the options of one preparation."""
    given = {
        name: getattr(args, name)
        for name in _NAMES
        if not name.startswith("shortlist_") and getattr(args, name) is not None
    }
    given["quality_texts"] = tuple(args.quality_texts or ())
    given = {"io": args.default_io, **given, "settings": _settings(args.settings or [])}
    return PrepareOptions(source, repository, shortlist=_shortlist(args), **given, **more)


def _shortlist(args: argparse.Namespace) -> ShortlistOptions | None:
    entries = tuple(entry for value in args.shortlist_from or [] for entry in value.split(","))
    if entries:
        union = bool(args.shortlist_union)
        return ShortlistOptions(entries, args.shortlist_size, args.shortlist_licence, union)
    if any(getattr(args, name) is not None for name in _OF_A_SHORTLIST):
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
