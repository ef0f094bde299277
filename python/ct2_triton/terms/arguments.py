# SPDX-License-Identifier: Apache-2.0
"""The options `--keep`, `--glossary` and `--keep-patterns`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.client.calls import code_of
from ct2_triton.connection_arguments import names
from ct2_triton.errors import ClientError
from ct2_triton.terms.finding import Terms

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

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
        help="file whose lines are a phrase, a tab and its translation; a phrase alone is kept "
        "unchanged; for one target language or all; repeatable",
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

    Empty lines are skipped.
    """
    found: dict[str, str] = {}
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")  # phrases may have other ends
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ClientError(f"cannot read the glossary {path}: {why}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                _add(line, found, f"{path}, line {number}")
    return found


def _add(line: str, found: dict[str, str], where: str) -> None:
    phrase, *becomes = (part.strip() for part in line.split("\t"))
    text = becomes[0] if becomes else phrase
    if len(becomes) > 1 or not phrase or not text:
        raise ClientError(
            f"{where}: {line[:80]!r} is neither a phrase nor a phrase, a tab and its translation"
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
