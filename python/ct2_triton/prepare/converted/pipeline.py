# SPDX-License-Identifier: Apache-2.0
"""The steps of the preparation of a model without a checkpoint, and its checks."""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces, text_pieces
from ct2_triton.errors import (
    ConversionError,
    SettingError,
    UnsupportedModelError,
    VerificationError,
)
from ct2_triton.prepare.checkpoint import (
    CONFIG_FILE,
    DECODER_FILE,
    Checkpoint,
    Kind,
    layout_in,
)
from ct2_triton.prepare.converted import files
from ct2_triton.prepare.converted.files import Vocabularies, read_header, read_vocabularies
from ct2_triton.prepare.converted.rules import build_rules, ends_source, find_languages
from ct2_triton.prepare.verification.comparison import ConvertedModel
from ct2_triton.prepare.verification.probes import choose_probes
from ct2_triton.prepared_model import WEIGHTS_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ct2_triton.prepare.converted.files import ModelHeader
    from ct2_triton.prepare.converted.rules import Languages
    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepared_model import TokenRules

_LEAST_KNOWN_PERCENT = 50
_MAX_OUTPUT_TOKENS = 48
_EMBEDDINGS = (
    ("source", "encoder/embeddings_0/weight"),
    ("source", "encoder/embeddings/weight"),
    ("target", "decoder/embeddings/weight"),
)


@dataclass(frozen=True)
class Checks:
    """The results of the checks.

    Attributes:
        source_tokens: Tokens of the source vocabulary; the embedding table has as many rows.
        target_tokens: Tokens of the target vocabulary.
        files_compared: Tokenizer files whose IDs equal those of the vocabulary.
        known_percent: Share of the tokenizer's pieces that the source vocabulary has, in percent.
        round_trips: Sentences that IDs reproduce unchanged.
        with_unknown: Sentences skipped there, because the vocabulary lacks some characters.
        translated: Probes for which the stored model returned text.
        probes: Number of probes.
        example: Text and translation of one probe, for a reader to judge.
        not_proved: What these checks cannot show, one sentence each.
    """

    source_tokens: int
    target_tokens: int
    files_compared: tuple[str, ...]
    known_percent: float
    round_trips: int
    with_unknown: int
    translated: int
    probes: int
    example: tuple[str, str]
    not_proved: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the checks for the manifest."""
        return {"proved": False, **asdict(self)}

    def lines(self) -> list[str]:
        """Return the lines for a report."""
        text, answer = self.example
        return [
            f"checked: {self.source_tokens} and {self.target_tokens} tokens of both vocabularies, "
            f"{self.known_percent:.1f} % of the tokenizer's pieces known, {self.round_trips} "
            f"sentences to ids and back, {self.translated} of {self.probes} translated",
            f"for example: {text!r} is {answer!r}",
            *(f"not proved: {line}" for line in self.not_proved),
        ]


def check_rows(header: ModelHeader, vocabularies: Vocabularies) -> None:
    """Compare the sizes of the vocabularies with the rows of the embedding tables."""
    sizes = {"source": len(vocabularies.source), "target": len(vocabularies.target)}
    for side, name in _EMBEDDINGS:
        rows = header.rows(name)
        if rows not in (None, sizes[side]):
            raise VerificationError(
                f"the {side} vocabulary has {sizes[side]} tokens, and the model {rows} rows"
            )


def known_percent(file: Path, vocabularies: Vocabularies) -> float:
    """Return the percentage of a tokenizer's pieces that the model's vocabulary has.

    Raises VerificationError if it is so low that the tokenizer belongs to another model.
    """
    try:
        pieces = text_pieces(file)
    except Exception as error:  # both libraries raise various exceptions
        raise UnsupportedModelError(f"cannot read {file.name}: {error}") from error
    tokens = {*vocabularies.source, *vocabularies.target}
    known = 100 * sum(piece in tokens for piece in pieces) / max(1, len(pieces))
    if known < _LEAST_KNOWN_PERCENT:
        raise VerificationError(
            f"the model has {known:.1f} % of the pieces of {file.name}, which must be another "
            "model's"
        )
    return known


def check_round_trips(
    folder: Path, rules: TokenRules, vocabularies: Vocabularies
) -> tuple[int, int]:
    """Tokenize and decode sentences like a client; half of them must be unchanged.

    Returns the number of unchanged sentences, and of those skipped because the vocabulary lacks
    some of their characters.
    """
    pieces = read_pieces(folder, rules, of_targets=True)
    token = vocabularies.source[rules.unk_id]
    unknown = vocabularies.target.index(token) if token in vocabularies.target else -1
    rows = [pieces.encode(" ".join(probe.text.split())) for probe in choose_probes(rules)]
    able = [ids for ids in rows if unknown not in ids]
    equal = sum(pieces.encode(pieces.decode(ids)) == ids for ids in able)
    if 2 * equal < len(able):
        raise VerificationError(
            f"{len(able) - equal} of {len(able)} sentences do not come back from their ids: the "
            "tokenizer does not join what it splits"
        )
    return equal, len(rows) - len(able)


def translate_probes(model: Path, folder: Path, rules: TokenRules) -> list[tuple[str, str]]:
    """Translate the probes with CTranslate2, greedy, as stored; return text and answer of each."""
    try:
        converted = ConvertedModel(model)
    except (RuntimeError, ValueError) as error:
        raise UnsupportedModelError(f"CTranslate2 cannot load the model: {error}") from error
    pieces = read_pieces(folder, rules)
    answers = []
    for probe in choose_probes(rules):
        row = rules.input_ids(pieces.encode(probe.text), probe.source, probe.target)
        if rules.max_source_tokens is not None and len(row) > rules.max_source_tokens:
            continue
        try:
            prefix = rules.target_prefix(probe.target)
            [ids] = converted.translate(
                [row], [prefix], beam_size=1, max_decoding_length=_MAX_OUTPUT_TOKENS
            )
        except (RuntimeError, ValueError) as error:
            raise VerificationError(f"the model does not translate {probe}: {error}") from error
        answers.append((probe.text, pieces.decode(rules.without_prefix(ids, probe.target))))
    if not any(answer for _, answer in answers):
        raise VerificationError(
            f"the model answers none of {len(answers)} sentences with text: the tokenizer or "
            "the vocabulary is another model's"
        )
    return answers


_CONVERTED_ALREADY = (Kind.CTRANSLATE2, Kind.ARGOS)


class _WithoutConfig(Checkpoint):
    """A model whose config.json is CTranslate2's, without generation settings."""

    @cached_property
    def generation_config(self) -> Mapping[str, Any]:
        return self._json("generation_config.json", required=False)


def fill_converted(new: NewModel, checkpoint: Checkpoint, versions: dict[str, str]) -> None:
    """Write all files of the model, and last the manifest with the checksums."""
    try:
        _fill(new, checkpoint, versions)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"{checkpoint.source.id} cannot be prepared: {error}"
        ) from error


def _fill(new: NewModel, checkpoint: Checkpoint, versions: dict[str, str]) -> None:
    from ct2_triton.prepare.generation import own_search
    from ct2_triton.prepare.model_config import write_config
    from ct2_triton.prepare.placeholder_probe import add_placeholders
    from ct2_triton.prepare.quality import add_quality
    from ct2_triton.prepare.writing import write_manifest

    options = new.options
    if options.shortlist:
        raise SettingError("--shortlist-from is for checkpoints; this model is not made from one")
    kind = layout_in(checkpoint.folder).kind
    licence = checkpoint.source.license or "not stated"
    new.report(f"{checkpoint.source.id}: {kind.value}, licence {licence}")
    tokenizers = files.find_tokenizer_files(checkpoint.folder)
    new.weights.parent.mkdir()
    vocabularies = _write_model(new, checkpoint)
    header = read_header(new.weights / WEIGHTS_NAME)
    check_rows(header, vocabularies)
    config = files.read_config(new.weights)
    known = find_languages(checkpoint.folder, vocabularies, options.language_pair)
    rules = build_rules(tokenizers[0].name, vocabularies, config, header, known)
    new.tokenizer.mkdir()
    files.write_tokenizer(tokenizers, vocabularies, new.tokenizer)
    rules.write(new.tokenizer)
    search = own_search(_WithoutConfig(checkpoint.folder, checkpoint.source), rules)
    parameters = write_config(new, checkpoint, rules, search)
    not_proved = _not_proved(kind, config, known)
    found = _check(new, checkpoint.folder, rules, vocabularies, not_proved)
    results = {
        "family": kind.value,
        "stored": header.quantization,
        "generation": search.record,
        "verification": found.to_dict(),
    }
    results |= add_placeholders(new, rules)
    results |= add_quality(new, rules, parameters)
    for line in found.lines():
        new.report(line)
    write_manifest(new, checkpoint.source, versions, results)


def _write_model(new: NewModel, checkpoint: Checkpoint) -> Vocabularies:
    """Write the CTranslate2 model: copy or convert it."""
    output, quantization = new.weights, new.options.quantization
    layout = layout_in(checkpoint.folder)
    if layout.kind in _CONVERTED_ALREADY:
        root = checkpoint.folder / layout.root
        vocabularies = read_vocabularies(root)
        stored = read_header(root / WEIGHTS_NAME).quantization
        new.report(f"the weights stay as they are stored, in {stored}")
        output.mkdir()
        shutil.copyfile(root / WEIGHTS_NAME, output / WEIGHTS_NAME)
        config = json.dumps(files.read_config(root), indent=2)
        (output / CONFIG_FILE).write_text(config + "\n", encoding="utf-8")
        vocabularies.write(output)
        return vocabularies
    new.report(f"converting, weights stored in {quantization}")
    if layout.kind is Kind.OPUS_MT:
        convert_opus_mt(checkpoint.folder, output, quantization)
    else:
        weights = checkpoint.folder / layout.weights
        convert_opennmt_py(weights, output, quantization)
    return read_vocabularies(output)


def _check(
    new: NewModel,
    source: Path,
    rules: TokenRules,
    vocabularies: Vocabularies,
    not_proved: tuple[str, ...],
) -> Checks:
    splitting, _ = files.find_tokenizer_files(source)
    round_trips, with_unknown = check_round_trips(new.tokenizer, rules, vocabularies)
    percent = known_percent(splitting, vocabularies)
    compared = files.check_ids(source, vocabularies)
    answers = translate_probes(new.weights, new.tokenizer, rules)
    return Checks(
        source_tokens=len(vocabularies.source),
        target_tokens=len(vocabularies.target),
        files_compared=tuple(compared),
        known_percent=round(percent, 1),
        round_trips=round_trips,
        with_unknown=with_unknown,
        translated=sum(bool(answer) for _, answer in answers),
        probes=len(answers),
        example=next(pair for pair in answers if pair[1]),
        not_proved=not_proved,
    )


def _not_proved(kind: Kind, config: Mapping[str, object], known: Languages) -> tuple[str, ...]:
    """Return what only the program that trained the model could prove."""
    end = "end" if ends_source(config, known) or config.get("add_source_eos") else "do not end"
    lines = [
        "that the weights translate as the original model does: there is nothing to compare with",
        f"that sources {end} with the end token, as config.json and the vocabulary suggest",
    ]
    if known.entries:
        lines.append(f"that the languages are right, which come from {known.origin}")
    else:
        lines.append("which languages it translates: nothing names them; --language-pair can")
    if kind is not Kind.ARGOS:
        lines.append("that texts were split for training by these tokenizer files alone")
    return tuple(lines)


def convert_opus_mt(folder: Path, output: Path, quantization: str) -> None:
    """Convert the weights of an OPUS-MT archive (Marian, `.npz`)."""
    from ctranslate2.converters import OpusMTConverter

    _check_decoder(folder)
    try:
        OpusMTConverter(str(folder)).convert(str(output), quantization=quantization)
    except Exception as error:  # numpy, yaml and the converter raise various exceptions
        raise ConversionError(f"CTranslate2 cannot convert the archive: {error}") from error


def _check_decoder(folder: Path) -> None:
    import yaml

    try:
        content: Any = yaml.safe_load((folder / DECODER_FILE).read_text(encoding="utf-8"))
        models, vocabularies = list(content["models"]), list(content["vocabs"])
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        raise UnsupportedModelError(
            f"{DECODER_FILE} does not name models and vocabs: {error!r}"
        ) from error
    if len(models) != 1:
        raise UnsupportedModelError(
            f"{DECODER_FILE} names {len(models)} models, which vote; one is converted"
        )
    for name in (*models, *vocabularies):
        if not isinstance(name, str) or "/" in name or not (folder / name).is_file():
            raise UnsupportedModelError(f"{DECODER_FILE} names {name!r}, which is not beside it")


def convert_opennmt_py(file: Path, output: Path, quantization: str) -> None:
    """Convert a `.pt` checkpoint of OpenNMT-py, which needs PyTorch.

    Only tensors, plain values and `argparse.Namespace` are read from the file, because a pickle can
    contain code.
    """
    import torch
    from ctranslate2.converters import OpenNMTPyConverter

    # OpenNMT-py stores its options in a Namespace.
    with torch.serialization.safe_globals([argparse.Namespace]):
        try:
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:  # pickle, zipfile and torch raise various exceptions
            first = str(error).strip().split("\n")[0][:200]
            raise UnsupportedModelError(
                f"{file.name} is not loaded: it is not an OpenNMT-py 3 checkpoint, or its pickle "
                f"holds more than tensors and options, which could be code ({first})"
            ) from error
        _check_checkpoint(file.name, content)
        del content
        try:
            OpenNMTPyConverter(str(file)).convert(str(output), quantization=quantization)
        except Exception as error:  # the converter raises various exceptions
            raise ConversionError(f"CTranslate2 cannot convert {file.name}: {error}") from error


def _check_checkpoint(name: str, content: object) -> None:
    wanted = ("vocab", "opt", "model", "generator")
    if not isinstance(content, dict) or any(key not in content for key in wanted):
        raise UnsupportedModelError(
            f"{name} is not an OpenNMT-py checkpoint: it lacks {', '.join(wanted)}"
        )
    kind = getattr(content["opt"], "decoder_type", None)
    if kind != "transformer":
        raise UnsupportedModelError(
            f"{name} has a decoder of type {kind!r}, which is not a translation model here "
            "('transformer')"
        )
