# SPDX-License-Identifier: Apache-2.0
"""The steps of a preparation."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError, UnsupportedModelError
from ct2_triton.model_versions import FIRST, LAST, followers
from ct2_triton.prepare.new_model import NewModel
from ct2_triton.prepare.options import (
    INSTANCE_KINDS,
    IO_CHOICES,
    QUANTIZATIONS,
    PrepareOptions,
)
from ct2_triton.prepare.quality import QualityText
from ct2_triton.prepare.shortlist_text import check_readable
from ct2_triton.prepared_model import TOKENIZER_NAME, PreparedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.families import ExpectedVocabulary
    from ct2_triton.prepare.verification import Proof
    from ct2_triton.prepare.verification.probes import Subject
    from ct2_triton.prepared_model import TokenRules

_SHOWN = 5
_MOST_ROWS = 2**31 - 1  # of the field in Triton's configuration
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def prepare(
    options: PrepareOptions, report: Callable[[str], None] = lambda line: None
) -> PreparedModel:
    """Prepare a model.

    Args:
        options: What to prepare, and where.
        report: Called with a line of text for each step.

    Returns:
        The prepared model, after its proof.

    Raises:
        PrepareError: The preparation failed; nothing was written.
    """
    from ct2_triton.prepare.model_config import text_models, write_text_models
    from ct2_triton.prepare.writing import check_length

    _check_choices(options)
    output = options.model_repository / model_name(options)
    check_length(output)
    names = text_models(output, options)
    old = followers(output) if options.io == "auto" else []
    with _prepared(options, output, report) as folder:
        written = names if _takes_text(options.io, folder / TOKENIZER_NAME, report) else []
        write_text_models(folder, written)
    if old and not written:
        gone = ", ".join(path.name for path in old)
        report(f"removed, with the model they belonged to: {gone}")
    for name in written:
        report(f"takes text: {name}")
    return PreparedModel.read(output)


def _takes_text(io: str, tokenizer: Path, report: Callable[[str], None]) -> bool:
    """Return whether text models are written: not if the backend cannot read the tokenizer."""
    from ct2_triton.prepare.model_config import check_tokenizer

    if io == "ids":
        return False
    try:
        check_tokenizer(tokenizer)
    except UnsupportedModelError as error:
        if io != "auto":
            raise
        report(f"takes token ids only: {str(error).partition(';')[0]}")
        return False
    return True


@contextmanager
def _prepared(
    options: PrepareOptions, output: Path, report: Callable[[str], None]
) -> Iterator[Path]:
    """Yield a temporary folder with all files of the model, moved in place after the block."""
    from ct2_triton.prepare import shipped
    from ct2_triton.prepare.checkpoint import Kind, layout_in
    from ct2_triton.prepare.converted.pipeline import fill_converted
    from ct2_triton.prepare.environment import (
        check_conversion,
        check_environment,
        check_shortlist,
    )
    from ct2_triton.prepare.source import check_path, find_checkpoint
    from ct2_triton.prepare.versions import check_place, written

    check_place(output, options)
    if shipped.is_ready(options):
        if options.shortlist:
            check_shortlist()
        with written(output, options) as folder:
            shipped.fill(NewModel(folder, options, report))
            yield folder
        return
    check_path(options.source)
    versions = check_environment()
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = find_checkpoint(options.source, options.revision, Path(scratch))
        kind = layout_in(checkpoint.folder).kind
        versions |= check_conversion(kind)
        fill = _fill if kind is Kind.TRANSFORMERS else fill_converted
        with written(output, options) as folder:
            fill(NewModel(folder, options, report), checkpoint, versions)
            yield folder


def model_name(options: PrepareOptions) -> str:
    """Return the model's name in Triton: the chosen one, or the last part of the source.

    Raises SettingError if it cannot be used as a folder name and in a URL.
    """
    from ct2_triton.prepare import shipped

    path = Path(options.source).expanduser()
    is_folder = path.is_dir() and options.source != shipped.NAME
    derived = path.resolve().name if is_folder else options.source.rstrip("/").split("/")[-1]
    if path.is_file():
        derived = path.stem
    name = options.name if options.name is not None else derived
    if not _NAME.fullmatch(name):
        raise SettingError(
            f"{name!r} cannot be the name of a model; choose one of letters, digits, '.', '_' "
            "and '-' with --name"
        )
    return name


def _added_tokens(rules: TokenRules) -> Iterator[str]:
    """Yield notes about added tokens, and about those that translations do not show."""
    left_out = ", which are special and left out of translations"
    for meaning, special in (("", False), (left_out, True)):
        names = [token.content for token in rules.added_tokens if token.special == special]
        if names:
            more = ", ..." if len(names) > _SHOWN else ""
            yield f"added tokens{meaning}: {len(names)} ({', '.join(names[:_SHOWN])}{more})"


def _check_choices(options: PrepareOptions) -> None:
    _check_text(options)
    for name, value, allowed in (
        ("quantization", options.quantization, QUANTIZATIONS),
        ("instance kind", options.instance_kind, INSTANCE_KINDS),
        ("io", options.io, IO_CHOICES),
    ):
        if value not in allowed:
            raise SettingError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    if not 0 <= options.max_batch_size <= _MOST_ROWS:
        raise SettingError(
            f"max batch size is {options.max_batch_size}; it must be from 0 to {_MOST_ROWS}"
        )
    if options.as_version is not None:
        _check_version(options, options.as_version)
    if options.shortlist:
        check_readable(options.shortlist)
    for entry in options.quality_texts:
        QualityText.parse(entry)


def _check_text(options: PrepareOptions) -> None:
    """Refuse what cannot be written to the record: bytes in another encoding than UTF-8."""
    shortlist = options.shortlist
    of_shortlist = (*shortlist.entries, shortlist.licence or "") if shortlist else ()
    for text in (options.source, *options.quality_texts, *of_shortlist, *options.settings.values()):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SettingError(f"{text!r} is not UTF-8 ({error.reason}); rename it") from error


def _check_version(options: PrepareOptions, version: int) -> None:
    if not FIRST <= version <= LAST:
        raise SettingError(f"{version} is not a version: versions are 1, 2, 3 and so on, to {LAST}")
    if options.force:
        raise SettingError("--force replaces a whole model; --as-version replaces nothing")
    if options.io in ("both", "stream", "auto"):
        raise SettingError(
            f"--io {options.io} writes several models; --as-version adds to one: say --io ids"
        )


def _fill(new: NewModel, checkpoint: Checkpoint, versions: dict[str, str]) -> None:
    """Write all files of the model, and last the manifest with the checksums."""
    from ct2_triton.prepare import conversion, shipped
    from ct2_triton.prepare.checkpoint import memory_line
    from ct2_triton.prepare.environment import check_pair
    from ct2_triton.prepare.families import recognise
    from ct2_triton.prepare.generation import own_search
    from ct2_triton.prepare.model_config import write_config
    from ct2_triton.prepare.placeholder_probe import add_placeholders
    from ct2_triton.prepare.quality import add_quality
    from ct2_triton.prepare.rules import build_rules
    from ct2_triton.prepare.shortlist import build_shortlist
    from ct2_triton.prepare.tokenizers import load_tokenizer, missing_normalization
    from ct2_triton.prepare.verification.probes import Conversion, Subject
    from ct2_triton.prepare.verification.shortlist import add_shortlist
    from ct2_triton.prepare.writing import write_manifest

    options, report = new.options, new.report
    if options.language_pair:
        raise SettingError("--language-pair names the languages of a model that does not say them")
    family = recognise(checkpoint)
    check_pair(family.name, family.title, versions)
    licence = checkpoint.source.license or "not stated"
    report(f"{checkpoint.source.id}: {family.title}, licence {licence}")
    report(memory_line(checkpoint.folder))
    tokenizer = load_tokenizer(checkpoint.folder)
    if lost := missing_normalization(checkpoint.folder):
        report(lost)
    vocabulary = family.vocabulary(tokenizer, checkpoint.config)
    rules = build_rules(family, checkpoint, tokenizer, vocabulary)
    for line in _added_tokens(rules):
        report(line)
    _write_tokenizer(new.tokenizer, checkpoint, tokenizer, rules, vocabulary)
    shortlist = build_shortlist(new, rules, family, vocabulary)
    search = own_search(checkpoint, rules)
    is_demo = options.source == shipped.NAME
    served = shipped.with_alignment(search) if is_demo else search
    parameters = write_config(new, checkpoint, rules, served, shortlist)
    report(f"converting, weights stored in {options.quantization}")
    new.weights.parent.mkdir()
    conversion.convert(checkpoint.folder, new.weights, options.quantization, vocabulary)
    repairs = conversion.complete_special_tokens(
        new.weights, tokenizer, prefix_starts=rules.prefix_starts
    )
    stored = Conversion(new.tokenizer, new.weights, options.quantization, options.settings)
    proof = _prove(Subject(checkpoint, family, vocabulary, rules, search, stored), repairs, report)
    results = {
        "family": family.name,
        "repairs": repairs,
        "generation": search.record,
        "verification": proof.to_dict(),
    }
    results |= add_shortlist(new, rules, shortlist)
    results |= add_placeholders(new, rules)
    if is_demo:
        shipped.copy_statistics(new.weights)
    results |= add_quality(new, rules, parameters)
    write_manifest(new, checkpoint.source, versions, results)


def _write_tokenizer(
    output: Path,
    checkpoint: Checkpoint,
    tokenizer: PreTrainedTokenizerBase,
    rules: TokenRules,
    vocabulary: ExpectedVocabulary,
) -> None:
    from ct2_triton.prepare.conversion import copy_tokenizer
    from ct2_triton.prepare.converted.files import Vocabularies

    output.mkdir()
    copy_tokenizer(checkpoint, output, tokenizer, has_added=bool(rules.added_tokens))
    rules.write(output)
    if vocabulary.answers is not None:
        Vocabularies(vocabulary.tokens, vocabulary.answers).write(output)


def _prove(subject: Subject, repairs: Sequence[str], report: Callable[[str], None]) -> Proof:
    from ct2_triton.prepare.verification import prove

    report("proving: vocabulary, ids, texts, and float32 outputs against transformers")
    proof = prove(subject, report)
    ties = map(str, (*proof.near_ties, *proof.loops.near_ties))
    for line in (*proof.vocabulary_differences, *repairs, *ties):
        report(line)
    for line in proof.own_search.lines():
        report(line)
    report(
        f"equal: {proof.vocabulary_tokens} tokens of the vocabulary, {proof.compared_tokens} "
        f"output tokens of {proof.probes} sentences; stored in {subject.stored.quantization}, "
        f"{proof.stored_rows_equal} of {proof.probes} sentences come out the same"
    )
    loops = proof.loops
    report(
        f"decode loops were not compared: {loops.not_compared}"
        if loops.not_compared
        else f"decode loops: the same output tokens; stored in {subject.stored.quantization}, "
        f"{loops.stored_rows_equal} of {proof.probes} sentences come out the same"
    )
    return proof
