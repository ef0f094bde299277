# SPDX-License-Identifier: Apache-2.0
"""`--quality-text`: statistics of a model's translations, for the verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from ct2_triton.bench.workload import SENTENCES
from ct2_triton.client.pieces import read_pieces
from ct2_triton.engine_library import load_core
from ct2_triton.errors import SettingError, UnknownLanguageError
from ct2_triton.prepare import PrepareOptions, prepare, progress
from ct2_triton.prepare.converted.files import read_vocabularies
from ct2_triton.prepare.local_model import LocalModel, Translated
from ct2_triton.prepare.quality import (
    FILE_NAME,
    QualityText,
    _bounds_of,
    measure,
)
from ct2_triton.prepare.shipped import ALIGNMENT
from ct2_triton.prepared_model import CONFIG_NAME, PreparedModel

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 sentences that the demo model translates well."""
    file = tmp_path_factory.mktemp("text") / "good.txt"
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()[:150]
    file.write_text("\ufeff" + "\r\n".join([*lines, "", lines[0]]), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, text: Path) -> PreparedModel:
    options = PrepareOptions(
        "demo", tmp_path_factory.mktemp("repository"), quality_texts=(f"en:de,fr={text}",)
    )
    return prepare(options)


def statistics_of(model: PreparedModel) -> dict[str, Any]:
    file = model.directory / "1" / "model" / FILE_NAME
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def translations_of(
    prepared: PreparedModel, lines: Sequence[str], into: str
) -> list[tuple[str, float]]:
    """Translate with CTranslate2 itself; each translation has its score."""
    folder, rules = prepared.directory / "1" / "model", prepared.rules
    pieces, vocabulary = read_pieces(prepared.tokenizer_folder, rules), read_vocabularies(folder)
    source, target = rules.source_language("en"), rules.target_language(into)
    rows = [rules.input_ids(pieces.encode(line), source, target) for line in lines]
    prefix = [vocabulary.target[i] for i in rules.target_prefix(target)]
    results = ctranslate2.Translator(str(folder)).translate_batch(
        [[vocabulary.source[i] for i in row] for row in rows],
        target_prefix=[prefix] * len(rows),
        beam_size=1,
        max_batch_size=32,
        return_scores=True,
    )
    found = []
    for result in results:
        ids = [vocabulary.target.index(token) for token in result.hypotheses[0]]
        found.append((pieces.decode(rules.without_prefix(ids, target)), result.scores[0]))
    return found


def test_progress_is_reported(tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    lines: list[str] = []
    prepare(PrepareOptions("demo", tmp_path, quality_texts=(f"en:de={text}",)), lines.append)
    said = [line for line in lines if line.startswith("verdicts, into deu_Latn: ")]
    assert len(said) > 100
    assert said[0].startswith("verdicts, into deu_Latn: 1 of ")


def test_the_statistics_are_those_of_the_models_translations(
    prepared: PreparedModel, text: Path
) -> None:
    core = load_core()
    found = statistics_of(prepared)
    assert sorted(found["languages"]) == ["deu_Latn", "eng_Latn", "fra_Latn"]
    assert list(found["languages"]["eng_Latn"]) == ["words"]
    assert found["languages"]["eng_Latn"]["words"]["the"] > 0.02
    german = found["languages"]["deu_Latn"]
    [bounds] = german["from"].values()
    assert 0.005 < german["words"]["die"] < 0.2
    lines = QualityText.parse(str(text)).lines()
    assert len(lines) == 150
    cut = [
        line.encode()[begin:end].decode()
        for line in lines
        for begin, end in core.segment(line.encode(), "eng_Latn")
    ]
    assert len(cut) > 150  # as the server cuts them
    answers = translations_of(prepared, cut, "de")
    lengths = [
        core.quality_length(line, text) for line, (text, _) in zip(cut, answers, strict=True)
    ]
    low, high = bounds["length"]
    assert low < min(lengths) < max(lengths) < high
    assert bounds["least_score"] < min(score for _, score in answers) <= 0
    [record] = prepared.manifest["quality"]["texts"]
    assert (record["file"], record["targets"]) == ("good.txt", ["de", "fr"])


def _gaps(statistics: dict[str, Any]) -> dict[str, float]:
    [bounds] = statistics["languages"]["deu_Latn"]["from"].values()
    return {name: bounds[name] for name in ("uncovered", "invented")}


def test_gaps_are_those_of_the_heads_that_are_served(prepared: PreparedModel, text: Path) -> None:
    model = prepared.directory / "1" / "model"
    texts = [QualityText.parse(f"en:de={text}")]
    heads = [
        LocalModel(model, prepared.tokenizer_folder, prepared.rules, settings)
        for settings in ([ALIGNMENT], [])
    ]
    chosen, first = (_gaps(measure(served, prepared.rules, texts)) for served in heads)
    assert "alignment_heads" in (prepared.directory / CONFIG_NAME).read_text(encoding="utf-8")
    assert _gaps(statistics_of(prepared)) == chosen != first


def test_one_word_is_no_gap() -> None:
    """Whatever few sentences say: all words of these are aligned."""
    same = [Translated(f"one {i}", f"eins {i}", -0.1, (0.0, 0.0)) for i in range(100)]
    bounds = _bounds_of(same, {}, load_core())
    statistics = {"version": 1, "languages": {"de": {"from": {"en": bounds}}}}
    judge = load_core().Judge(json.dumps(statistics))
    for words in range(1, 5):
        source = " ".join("abcde"[:words])
        spans = [(2 * i, 2 * i + 1, 2 * i, 2 * i + 1) for i in range(words - 1)]
        found = judge.judge(source, source, "de", None, "en", spans)
        assert not {"uncovered", "invented"} & {*found["flags"], *found["not_computed"]}


def test_another_precision_is_served_with_the_heads_of_its_statistics(tmp_path: Path) -> None:
    model = prepare(PrepareOptions("demo", tmp_path, quantization="float32"))
    assert "alignment_heads" in (model.directory / CONFIG_NAME).read_text(encoding="utf-8")
    assert "uncovered" in _gaps(statistics_of(model))


@pytest.mark.parametrize(
    ("compute_type", "measured"), [("float16", "float32"), ("int8_bfloat16", "int8_float32")]
)
def test_a_type_that_only_gpus_compute_in_is_measured_in_that_of_a_cpu(
    tmp_path: Path, text: Path, compute_type: str, measured: str
) -> None:
    texts, lines = (f"en:de={text}",), []
    found = []
    for name in (compute_type, measured):
        options = PrepareOptions(
            "demo", tmp_path / name, quality_texts=texts, settings={"compute_type": name}
        )
        found.append(prepare(options, lines.append))
    assert statistics_of(found[0]) == statistics_of(found[1])
    assert f'"{compute_type}"' in (found[0].directory / CONFIG_NAME).read_text(encoding="utf-8")
    said = [line for line in lines if f"measured in {measured}" in line]
    assert said == [
        f"verdicts: statistics of deu_Latn, eng_Latn, measured in {measured}, since no CPU "
        f"computes in {compute_type}"
    ]


def test_heads_that_the_model_does_not_have_are_refused(tmp_path: Path, text: Path) -> None:
    options = PrepareOptions(
        "demo", tmp_path / "made", quality_texts=(f"en:de={text}",),
        settings={"alignment_heads": "[99]"},
    )  # fmt: skip
    with pytest.raises(SettingError, match="alignment_heads"):
        prepare(options)
    assert not list((tmp_path / "made").glob("*"))


def test_the_backend_reads_what_is_written(prepared: PreparedModel) -> None:
    judge = load_core().Judge(json.dumps(statistics_of(prepared)))
    good = "Der Fahrkartenschalter öffnet um 5:45 Uhr."
    source = "The ticket office opens at 5:45."
    found = judge.judge(source, good, "deu_Latn", -0.05, "eng_Latn")
    assert found["flags"] == []
    assert not {"language", "length", "unsure"} & set(found["not_computed"])
    short = judge.judge(
        "The ticket office opens at 5:45 on all days but Sunday.",
        "5:45",
        "deu_Latn",
        source_language="eng_Latn",
    )
    assert "length" in short["flags"]


@pytest.mark.parametrize(
    ("entry", "error", "message"),
    [
        ("de=absent", SettingError, "--quality-text de=absent is neither FILE nor FROM:TO"),
        ("en:de,=FILE", SettingError, "is neither FILE nor FROM:TO,TO,...=FILE"),
        ("en:de=absent", SettingError, "cannot read absent: No such file"),
        ("en:xx=FILE", UnknownLanguageError, "no target language 'xx'"),
        ("en:de=SHORT", SettingError, "short has 2 different lines of text; give 100 or more"),
        ("en:de=LATIN", SettingError, "cannot read .*latin: 'utf-8' codec can't decode"),
    ],
)
def test_a_text_that_cannot_be_used_leaves_nothing(
    tmp_path: Path, text: Path, entry: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "short").write_text("One.\nTwo.\nTwo.\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n" * 100)
    for name, file in (
        ("FILE", text),
        ("SHORT", tmp_path / "short"),
        ("LATIN", tmp_path / "latin"),
    ):
        entry = entry.replace(name, str(file)) if entry.endswith(f"={name}") else entry
    repository = tmp_path / "repository"
    with pytest.raises(error, match=message):
        prepare(PrepareOptions("demo", repository, quality_texts=(entry,)))
    assert not list(repository.glob("*"))
