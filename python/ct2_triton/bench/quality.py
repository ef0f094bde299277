# SPDX-License-Identifier: Apache-2.0
"""Translate a text, count the flags of the verdicts, and score against a reference."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.report import Table
from ct2_triton.bench.setup import MODEL, find_prepared

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from ct2_triton.client.results import Translation
    from ct2_triton.prepared_model import Language, PreparedModel

_LOAD_TIMEOUT_S = 600.0
# Languages for which sacrebleu has its own tokenizer, with its code.
_OWN_WORDS = {"zh": {"zh", "zho", "cmn", "yue"}, "ja": {"ja", "jpn"}, "ko": {"ko", "kor"}}


def add_quality_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ct2-bench quality`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="folder of a prepared model, or as for ct2-prepare")
    add("--text", type=Path, required=True, metavar="FILE", help="file with one sentence per line")
    add(
        "--reference",
        type=Path,
        metavar="FILE",
        help="reference translations, one per line, to compute chrF and BLEU",
    )
    add("--from", dest="source", metavar="LANGUAGE", help="language of the text")
    add("--to", dest="target", metavar="LANGUAGE", help="language to translate into")
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the translations to this file, one per line, for programs such as comet-score",
    )


def judge(args: argparse.Namespace) -> Iterator[Table]:
    """Translate the text with a temporary server; yield tables of verdicts and scores."""
    lines, references = read_pair(args.text, args.reference)
    with tempfile.TemporaryDirectory(prefix="ct2-bench-") as folder:
        prepared = _prepared(args.model, Path(folder))
        found = _translations(prepared, Path(folder), lines, args.source, args.target)
    texts = [one.text.replace("\n", " ") for one in found]
    if args.output is not None:
        args.output.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    yield verdict_table(found)
    if references is not None:
        language = scored_language(prepared.rules.target_language(args.target))
        found_scores = scores(texts, references, language)
        rows = [[name, f"{score:.1f}", how] for name, score, how in found_scores]
        yield Table("scores", ["", "score", "sacrebleu"], rows)


def verdict_table(translations: Sequence[Translation]) -> Table:
    """Make a table of the flags in the verdicts."""
    verdicts = [one.verdict for one in translations if one.verdict is not None]
    raised = Counter(flag for verdict in verdicts for flag in verdict.flags)
    missing = Counter(flag for verdict in verdicts for flag in verdict.not_computed)
    rows = [["any flag", *_share(sum(bool(one.flags) for one in verdicts), len(verdicts)), ""]]
    rows += [
        [flag, *_share(raised[flag], len(verdicts)), str(missing[flag] or "")]
        for flag in sorted(raised | missing)
    ]
    header = ["", "rows", "share", "not computed"]
    return Table(f"verdicts on {len(verdicts)} translations", header, rows)


def scores(
    translations: Sequence[str], references: Sequence[str], language: str = ""
) -> Iterator[tuple[str, float, str]]:
    """Yield sacrebleu's scores: name, value, and the signature of its settings."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    try:
        bleu = BLEU(trg_lang=language)
    except RuntimeError:  # Japanese and Korean need MeCab, which may not be installed
        bleu = BLEU(tokenize="char")
    for metric in (CHRF(), bleu):
        found = metric.corpus_score(list(translations), [list(references)])
        yield found.name, found.score, str(metric.get_signature())


def scored_language(language: Language | None) -> str:
    """Return sacrebleu's code of a language for which it has its own tokenizer, else ""."""
    names = () if language is None else (language.code, *language.aliases)
    codes = {re.split("[_-]", name)[0] for name in names}
    return next((code for code, known in _OWN_WORDS.items() if codes & known), "")


def read_pair(text: Path, reference: Path | None) -> tuple[list[str], list[str] | None]:
    """Read the lines of a text, and of its reference translation if there is one."""
    lines = _read(text)
    if reference is None:
        return lines, None
    translated = _read(reference)
    if len(translated) != len(lines):
        raise BenchError(
            f"{text} has {len(lines)} lines and {reference} has {len(translated)}; "
            "a reference has one line for each line of the text"
        )
    return lines, translated


def _read(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BenchError(f"cannot read {file}: {why}") from error


def _prepared(model: str, folder: Path) -> PreparedModel:
    """Read a prepared model, or prepare it as `ct2-prepare` does."""
    from ct2_triton.prepare import PrepareOptions, prepare

    given = find_prepared(model)
    return given or prepare(PrepareOptions(model, folder / "prepared", name=MODEL))


def _translations(
    prepared: PreparedModel, folder: Path, lines: Sequence[str], source: str, target: str
) -> list[Translation]:
    from ct2_triton.client import SyncTranslationClient
    from ct2_triton.serve import ServerOptions, TritonServer

    repository = folder / "repository"
    repository.mkdir()
    name = prepared.directory.resolve().name
    (repository / name).symlink_to(prepared.directory.resolve())
    server = TritonServer(ServerOptions([repository]))
    try:
        server.start(_LOAD_TIMEOUT_S)
        with SyncTranslationClient(server.grpc_url, name, repository=repository) as client:
            return client.translate(lines, source=source, targets=target, quality=True)
    finally:
        server.stop()


def _share(count: int, total: int) -> tuple[str, str]:
    return str(count), f"{100 * count / max(total, 1):.2f} %"
