# SPDX-License-Identifier: Apache-2.0
"""Tells how many answers a vocabulary shortlist changes, on a text of your own.

    python tools/shortlist_changes.py model_repository/demo english.txt --from eng_Latn
    python tools/shortlist_changes.py DIR english.txt --reference deu_Latn=german.txt --show 5

The model is one that ct2-prepare wrote with --shortlist-from; the text has a sentence a line. Each
line is translated into every language of the shortlist twice, with it and without it, by
CTranslate2 in this process, in the same batches. CTranslate2 has no lists by language, so each is
tried alone, as a vmap.txt. `--reference` compares both with a reference translation, line by line.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces
from ct2_triton.prepare.shortlist import link_with_map, read_lists
from ct2_triton.prepared_model import PreparedModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ct2_triton.prepared_model import Language, TokenRules

_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Changes:
    """How the shortlist changes the translations into one language.

    Attributes:
        language: Its code, or "-".
        texts: Each sentence with its translations without the shortlist and with it.
        right: How many of each equal the reference; None without one.
    """

    language: str
    texts: Sequence[tuple[str, str, str]]
    right: tuple[int, int] | None

    def changed(self) -> list[tuple[str, str, str]]:
        """Those whose answers differ."""
        return [entry for entry in self.texts if entry[1] != entry[2]]


class TwoWays:
    """A prepared model that translates with its shortlist and without it."""

    def __init__(
        self, model: PreparedModel, compute_type: str, beam_size: int, files: Path | None = None
    ) -> None:
        """Load the model on the CPU, or from `files`: the model's, with one list as vmap.txt."""
        import ctranslate2

        self.model = model
        self._beam_size = beam_size
        self._pieces = read_pieces(model.tokenizer_folder, model.rules)
        self._translator = ctranslate2.Translator(
            str(files or model.model_folder), device="cpu", compute_type=compute_type
        )
        self._names = _vocabulary(model)
        self._ids = {token: i for i, token in reversed(list(enumerate(self._names)))}

    def compare(
        self,
        texts: Sequence[str],
        source: Language | None,
        target: Language | None,
        reference: Sequence[str] | None,
    ) -> Changes:
        """Translate all texts into one language, both ways."""
        without, with_list = (self._translate(texts, source, target, on) for on in (False, True))
        right = reference and (_equal(without, reference), _equal(with_list, reference))
        code = target.code if target else "-"
        return Changes(code, list(zip(texts, without, with_list, strict=True)), right or None)

    def _translate(
        self, texts: Sequence[str], source: Language | None, target: Language | None, use_vmap: bool
    ) -> list[str]:
        rules = self.model.rules
        rows = [
            self._tokens(rules.input_ids(self._pieces.encode(t), source, target)) for t in texts
        ]
        prefix = self._tokens(rules.target_prefix(target))
        results: list[Any] = self._translator.translate_batch(
            rows,
            target_prefix=[prefix] * len(rows),
            beam_size=self._beam_size,
            max_batch_size=_ROWS_AT_ONCE,
            use_vmap=use_vmap,
        )
        found = [[self._ids[token] for token in result.hypotheses[0]] for result in results]
        return [self._pieces.decode(rules.without_prefix(row, target)) for row in found]

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        return [self._names[i] for i in ids]


def _vocabulary(model: PreparedModel) -> list[str]:
    import json

    file = model.model_folder / "shared_vocabulary.json"
    tokens: list[str] = json.loads(file.read_text(encoding="utf-8"))
    return tokens


def _equal(answers: Sequence[str], reference: Sequence[str]) -> int:
    return sum(one == other for one, other in zip(answers, reference, strict=True))


def table(found: Sequence[Changes]) -> str:
    """Return a Markdown table, a row for each language."""
    lines = ["| into | answers changed | right without | right with |", "|---|---:|---:|---:|"]
    for changes in found:
        total = len(changes.texts)
        cells = ["-", "-"]
        if changes.right:
            cells = [f"{100 * right / total:.2f} %" for right in changes.right]
        changed = len(changes.changed())
        share = f"{changed} of {total} ({100 * changed / total:.2f} %)"
        lines.append(f"| {changes.language} | {share} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="folder that ct2-prepare wrote")
    parser.add_argument("text", type=Path, help="sentences in the source language, one a line")
    parser.add_argument("--from", dest="source", default="en", help="(default: %(default)s)")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="LANGUAGE=FILE",
        help="right translations, line by line; repeatable",
    )
    parser.add_argument("--beam", type=int, default=1, help="beam size (default: %(default)s)")
    parser.add_argument("--compute-type", default="default", help="(default: %(default)s)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="changed answers to print")
    return parser.parse_args(arguments)


def _references(
    entries: Sequence[str], rules: TokenRules, count: int
) -> dict[Language | None, list[str]]:
    found = {}
    for entry in entries:
        name, _, file = entry.partition("=")
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        if len(lines) != count:
            raise SystemExit(f"{file} has {len(lines)} lines, and the text {count}")
        found[rules.target_language(name)] = lines
    return found


def _ways(
    model: PreparedModel, args: argparse.Namespace, record: dict[str, Any]
) -> Iterator[tuple[TwoWays, Language | None]]:
    """Yield each language of the shortlist with a model that has its list."""
    targets = [model.rules.target_language(entry["code"]) for entry in record["languages"]]
    own = read_lists(model.model_folder)
    both = None if own else TwoWays(model, args.compute_type, args.beam)
    for target in targets:
        if both:
            yield both, target
            continue
        with TemporaryDirectory() as folder:
            names = _vocabulary(model)
            tokens = [names[i] for i in own[target.code if target else ""]]
            files = link_with_map(tokens, model.model_folder, Path(folder))
            yield TwoWays(model, args.compute_type, args.beam, files), target


def main(arguments: list[str] | None = None) -> int:
    """Compare and print.

    Args:
        arguments: Command line, without the program's name.

    Returns:
        0.
    """
    args = _arguments(arguments)
    model = PreparedModel.read(args.model)
    record = model.manifest.get("shortlist")
    if not record:
        print(f"{args.model} has no shortlist: ct2-prepare --shortlist-from", file=sys.stderr)
        return 1
    rules = model.rules
    lines = args.text.read_text(encoding="utf-8").splitlines()
    references = _references(args.reference, rules, len(lines))
    source = rules.source_language(args.source)
    found = []
    for both, target in _ways(model, args, record):
        found.append(both.compare(lines, source, target, references.get(target)))
    print(f"list: {record['tokens']} tokens, {100 * record['share_of_vocabulary']:.1f} %\n")
    print(table(found))
    for changes in found:
        for text, without, with_list in changes.changed()[: args.show]:
            print(f"\n{text}\n  without  {without}\n  with     {with_list}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
