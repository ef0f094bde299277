# SPDX-License-Identifier: Apache-2.0
"""The options `--keep`, `--glossary` and `--keep-patterns`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.client.calls import code_of
from ct2_triton.connection_arguments import names
from ct2_triton.errors import ClientError
from ct2_triton.terms.finding import Terms

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from ct2_triton.client.client import TranslationClient


def add_term_arguments(parser: argparse.ArgumentParser, *, loss: str) -> None:
    """Declare the options for terms.

    `loss` describes what happens to a text that loses a term.
    """
    group = parser.add_argument_group(
        "terms",
        f"text to keep; each of these options also keeps the text in <dnt>...</dnt>; {loss} "
        "(docs/terms.md)",
    )
    group.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="PHRASE",
        help="keep this phrase unchanged wherever it occurs as whole words; repeatable",
    )
    group.add_argument(
        "--glossary",
        type=named_file,
        action="append",
        default=[],
        metavar="[LANGUAGE=]FILE",
        help="file whose lines are a phrase, a tab (in a .csv file a comma) and its translation; a "
        "phrase alone is kept unchanged; for one target language or all; repeatable",
    )
    add_patterns_argument(group)


def add_patterns_argument(parser: argparse._ActionsContainer) -> None:
    """Declare the patterns that are kept unchanged."""
    parser.add_argument(
        "--keep-patterns",
        type=names,
        default=[],
        metavar="NAMES",
        help="kinds of text to keep unchanged, comma-separated: urls, emails, numbers, emoji",
    )


def read_terms(
    args: argparse.Namespace, client: TranslationClient, targets: Sequence[str] | None
) -> dict[str | None, Terms]:
    """Return the terms of each target language by its code; empty without terms.

    Languages with the same glossaries share one object.
    """
    codes = [code_of(language) for language in client.languages.targets(targets)]
    files: dict[str | None, list[Path]] = {code: [] for code in codes}
    for language, path in args.glossary:
        code = None
        if language is not None:
            [code] = map(code_of, client.languages.targets([language]))
            if code not in files:
                raise ClientError(f"--glossary {language}={path}: {language} is not in --to")
        for one in codes if language is None else [code]:
            files[one].append(path)
    made: dict[tuple[Path, ...], Terms] = {}
    for paths in map(tuple, files.values()):
        if paths not in made:
            made[paths] = Terms(tuple(args.keep), read_glossary(paths), tuple(args.keep_patterns))
    if not any(made.values()):
        return {}
    return {code: made[tuple(paths)] for code, paths in files.items()}


def read_glossary(paths: Iterable[Path]) -> dict[str, str]:
    """Read glossaries: lines of a phrase, a tab and its translation, or of a phrase to keep.

    In a file called `*.csv` a comma stands for the tab, and values may have quotation marks. Empty
    lines are skipped.
    """
    found: dict[str, str] = {}
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8-sig")
            for number, values in _values(path, text):
                if any(value.strip() for value in values):
                    _add(path, number, values, found)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            why = getattr(error, "strerror", None) or error
            raise ClientError(f"cannot read the glossary {path}: {why}") from error
    return found


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _values(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the values of each line."""
    if not _is_csv(path):  # phrases may have other line ends
        yield from enumerate((line.split("\t") for line in text.split("\n")), 1)
        return
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    for values in reader:
        yield reader.line_num, values


def _add(path: Path, number: int, values: list[str], found: dict[str, str]) -> None:
    where = f"{path}, line {number}"
    phrase, *becomes = (value.strip() for value in values)
    text = becomes[0] if becomes else phrase
    if len(becomes) > 1 or not phrase or not text:
        separator, name = (",", "a comma") if _is_csv(path) else ("\t", "a tab")
        raise ClientError(
            f"{where}: {separator.join(values)[:80]!r} is neither a phrase nor a phrase, {name} "
            "and its translation"
        )
    if found.setdefault(phrase, text) != text:
        raise ClientError(
            f"{where}: {phrase!r} has the translation {text!r}, and {found[phrase]!r} in an "
            "earlier line"
        )


def named_file(text: str) -> tuple[str | None, Path]:
    """Read FILE or NAME=FILE, a command's argument."""
    name, equals, file = text.partition("=")
    return (name, Path(file)) if equals and "/" not in name else (None, Path(text))
