# SPDX-License-Identifier: Apache-2.0
"""A vocabulary list for each target language: rows have that of the language they name."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, Row
from core.test_vocabulary_map import as_parameters, translate
from core.vocabulary_lists import ListedModel, entry, listed_model, write_lists
from ct2_triton import _core

A, B, OTHER = 1101, 1102, 1103
"""Ids that name languages in prefixes; the last has no list."""
LISTS = {A: [*range(20, 60), *range(900, 950)], B: list(range(40, 130))}
LIMIT = {"max_decoding_length": 20}


@pytest.fixture(scope="module")
def listed(engine_model: Path, tmp_path_factory: pytest.TempPathFactory) -> ListedModel:
    return listed_model(engine_model, tmp_path_factory.mktemp("lists"), LISTS)


def translator(model: ListedModel | Path, **parameters: Any) -> Any:
    directory = model.directory if isinstance(model, ListedModel) else model
    settings = {"compute_type": "float32", "use_vmap": True, **as_parameters(parameters)}
    return _core.Translator(str(directory), settings)


def rows_of(count: int, seed: int = 0) -> tuple[list[Row], list[Row]]:
    """Sources, and prefixes in turn in A, B and a language without a list."""
    rng = random.Random(seed)
    sources = [[*rng.sample(range(4, 1100), rng.randint(1, 20)), END] for _ in range(count)]
    prefixes = [[(A, B, OTHER)[i % 3]] for i in range(count)]
    for prefix in prefixes[: count // 2]:
        prefix.append(rng.choice(range(40, 60)))  # on both lists
    return sources, prefixes


@pytest.mark.parametrize("decoding", ["loop", "calls"])
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "num_hypotheses": 4},
        {"beam_size": 1, "return_alternatives": True, "num_hypotheses": 3},
        {"beam_size": 3, "coverage_penalty": 0.5},
        {"beam_size": 2, "replace_unknowns": True},
        {"beam_size": 2, "prefix_bias_beta": 0.4},
        {"beam_size": 1, "min_decoding_length": 9, "repetition_penalty": 1.4, "disable_unk": True},
        {"beam_size": 1, "no_repeat_ngram_size": 2, "suppress_sequences": [[45], [50, 51]]},
    ],
    ids=str,
)
def test_answers_are_those_of_ctranslate2_with_the_list_of_the_language(
    listed: ListedModel, decoding: str, options: dict[str, Any]
) -> None:
    """Alone and together, in loops and in calls, whichever an option is left to."""
    model = translator(listed, decoding=decoding, **options, **LIMIT)
    sources, prefixes = rows_of(12)
    of_library = dict(options)
    if sequences := options.get("suppress_sequences"):
        of_library["suppress_sequences"] = [listed.whole.tokens(ids) for ids in sequences]
    expected = [
        listed.truth(source, prefix, **of_library, **LIMIT)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert translate(model, sources, prefixes) == expected
    for source, prefix, answer in zip(sources, prefixes, expected, strict=True):
        assert translate(model, [source], [prefix]) == [answer]
    for answer, prefix in zip(expected, prefixes, strict=True):
        if prefix[0] in LISTS:
            assert {i for row in answer for i in row} <= listed.allowed(prefix)
    whole = translate(model, sources, prefixes, use_vmap=False)
    changed = [a != b for a, b in zip(expected, whole, strict=True)]
    assert not any(changed[2::3])  # the language without a list
    assert any(changed[::3])
    assert any(changed[1::3])


@pytest.mark.parametrize(
    ("source", "prefix", "used"),
    [
        ([60, 61, END], [A], A),
        ([60, 61, END], [45, A], A),
        ([60, 61, END], [A, B], None),  # B's name is not on the list of A
        ([60, 61, END], [B, 45], B),
        ([60, 61, END], [B, 500], None),
        ([60, 61, END], [OTHER], None),
        ([60, 61, END], [], None),
        ([A, 61, END], [], None),  # it is the prefix that names the language
    ],
)
def test_which_list_a_row_has(
    listed: ListedModel, source: Row, prefix: Row, used: int | None
) -> None:
    options: dict[str, Any] = {"beam_size": 1, **LIMIT}
    truth = listed.truths[used] if used else listed.whole
    expected = truth.hypotheses(source, prefix, use_vmap=used is not None, **options)
    assert translate(translator(listed, **options), [source], [prefix]) == [expected]


def test_a_source_names_the_language_of_other_models(
    engine_model: Path, tmp_path: Path, truth: EngineTruth
) -> None:
    directory = tmp_path / "model"
    shutil.copytree(engine_model, directory)
    lists = [entry("de", LISTS[A], source_id=A), entry("fr", LISTS[B], source_id=B)]
    write_lists(directory, lists)
    model = translator(directory, beam_size=1, **LIMIT)
    sources = [[A, 60, 61, END], [B, 60, 61, END], [60, 61, END], [61, A, END]]
    answers = [set(answer[0]) for answer in translate(model, sources)]
    for answer, ids in zip(answers, (LISTS[A], LISTS[B], None, LISTS[A]), strict=True):
        assert ids is None or answer <= {*ids, 0, END, 3}
    assert translate(model, [sources[2]]) == [
        truth.hypotheses(sources[2], [], beam_size=1, **LIMIT)
    ]


def test_a_row_whose_loop_fails_keeps_its_list_in_a_call(
    engine_model: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "model"
    shutil.copytree(engine_model, directory)
    lists = [entry("de", LISTS[A], source_id=A), entry("fr", LISTS[B], source_id=B)]
    write_lists(directory, lists)
    options: dict[str, Any] = {"beam_size": 1, "use_vmap": True, **LIMIT}
    sources, _ = rows_of(12, seed=8)
    named = [[(A, B)[i % 2], *source] for i, source in enumerate(sources)]
    expected = [answer[0] for answer in translate(translator(directory, **options), named)]
    [result] = _core.run_failing_loops(str(directory), [named], options, failing_steps={2, 5})
    assert result["ids"] == expected
    whole = translate(translator(directory, **options), named, use_vmap=False)
    assert sum(row[0] != answer for row, answer in zip(whole, expected, strict=True)) > 6


def test_an_end_token_outside_the_list_leaves_it(listed: ListedModel) -> None:
    model = translator(listed, beam_size=1, **LIMIT)
    sources = [[id_, id_ + 1, END] for id_ in range(60, 90)]
    answers = translate(model, sources, [[A]] * len(sources), use_vmap=False)
    source, end = next(
        (source, id_)
        for source, [answer] in zip(sources, answers, strict=True)
        for id_ in answer[1:]
        if id_ not in LISTS[A]
    )
    options: dict[str, Any] = {"beam_size": 1, "end_token": [end], **LIMIT}
    expected = listed.whole.hypotheses(source, [A], **options)
    assert translate(model, [source], [[A]], end_token=[end]) == [expected]


def test_draws_are_of_the_list_and_do_not_depend_on_the_company(listed: ListedModel) -> None:
    options = {"sampling_topk": 0, "sampling_seed": 7, "num_hypotheses": 3, "beam_size": 1}
    model = translator(listed, **options, **LIMIT)
    sources, prefixes = rows_of(9, seed=2)
    together = translate(model, sources, prefixes)
    for source, prefix, answer in zip(sources, prefixes, together, strict=True):
        assert translate(model, [source], [prefix]) == [answer]
        if prefix[0] in LISTS:
            assert {i for row in answer for i in row} <= listed.allowed(prefix)


def test_int8_answers_do_not_depend_on_the_company(listed: ListedModel) -> None:
    model = translator(listed, beam_size=1, compute_type="int8", **LIMIT)
    sources, prefixes = rows_of(24, seed=5)
    together = translate(model, sources, prefixes)
    for source, prefix, answer in zip(sources, prefixes, together, strict=True):
        assert translate(model, [source], [prefix]) == [answer]


def test_what_a_list_does_not_suffice_for(listed: ListedModel) -> None:
    """The list has 92 candidates beside those that CTranslate2 adds."""
    model = translator(listed, max_beam_size=100)
    with pytest.raises(
        _core.Error,
        match=r"beam_size: value 47 needs more candidates than the 92 that shortlists\.json has "
        r"for language 1101 \(use_vmap is on\); at most 46",
    ):
        translate(model, [[60, 61, END]], [[A]], beam_size=47)
    translate(model, [[60, 61, END]], [[OTHER]], beam_size=47)
    translate(model, [[60, 61, END]], [[A]], beam_size=46)
    with pytest.raises(_core.Error, match=r"shortlists\.json has for language 1101"):
        translator(listed, max_beam_size=100, beam_size=47)


def test_the_log_line_tells_the_size_of_each_list(listed: ListedModel) -> None:
    line = translator(listed, decoding="loop").description
    for language in (A, B):
        assert f"vocabulary list for language {language} of 92 of 1406 tokens (0 MiB)" in line
    line = translator(listed, use_vmap=False, decoding="calls").description
    assert line.endswith("of 92 of 1406 tokens, used on request (use_vmap)")


GOOD = entry("de", [5, 6], prefix_id=A)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], "it has no list; write it again, or remove it to have none"),
        ([entry("de", [], prefix_id=A)], "the list of 'de' is empty"),
        ([entry("de", 5, prefix_id=A)], "the list of 'de' has tokens that are no array"),
        ([entry("de", [5])], "the list of 'de' needs either prefix_id or source_id"),
        ([entry("de", [5], prefix_id=A, source_id=A)], "needs either prefix_id or source_id"),
        ([GOOD, entry("de", [5], prefix_id=B)], "the list of 'de' appears twice"),
        ([GOOD, entry("fr", [5], prefix_id=A)], "'fr' has the prefix_id 1101 of another list"),
        ([entry("de", [5, 1406], prefix_id=A)], "'de' has 1406 in tokens, which is not in the ta"),
        ([entry("de", [5], prefix_id=9999)], "'de' has 9999 in prefix_id, which is not in the tar"),
        ([entry("de", [5], source_id=9999)], "'de' has 9999 in source_id, which is not in the so"),
        ([entry("de", [-1], prefix_id=A)], "has '-1' in tokens; an id is a whole number from 0"),
        ([entry("de", [1.5], prefix_id=A)], "has '1.5' in tokens; an id is a whole number"),
        ([entry("de", [5], prefix_id="deu")], "in prefix_id; an id is a whole number"),
        ([{"language": "de", "prefix_id": A}], "shortlists.json cannot be read: .*tokens"),
        (None, "shortlists.json cannot be read: "),
    ],
    ids=str,
)
def test_a_file_that_is_not_right_is_refused(
    engine_model: Path, tmp_path: Path, entries: list[dict[str, Any]] | None, text: str
) -> None:
    """None: no JSON. The model loads again once the file is right."""
    directory = tmp_path / "model"
    shutil.copytree(engine_model, directory)
    write_lists(directory, entries or [])
    if entries is None:
        (directory / "shortlists.json").write_text("{", encoding="utf-8")
    with pytest.raises(_core.Error, match=text.replace("'", "[\"']")) as caught:
        translator(directory)
    assert caught.value.code == "invalid_argument"
    write_lists(directory, [GOOD])
    assert translate(translator(directory), [[60, 61, END]], [[A]])


def test_a_file_that_cannot_be_read_is_refused(engine_model: Path, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(engine_model, directory)
    (directory / "shortlists.json").mkdir()
    with pytest.raises(_core.Error, match=r"shortlists\.json cannot be read, or is empty"):
        translator(directory)
    (directory / "shortlists.json").rmdir()
    (directory / "shortlists.json").touch()
    with pytest.raises(_core.Error, match=r"shortlists\.json cannot be read, or is empty"):
        translator(directory)


def test_a_model_has_one_kind_of_lists(listed: ListedModel, tmp_path: Path) -> None:
    both = tmp_path / "model"
    shutil.copytree(listed.directory, both)
    (both / "vmap.txt").write_text("\ta b\n", encoding="utf-8")
    with pytest.raises(_core.Error, match=r"has both vmap\.txt and shortlists\.json; keep one"):
        translator(both)


def test_a_changed_file_is_another_model(listed: ListedModel, tmp_path: Path) -> None:
    """A reload takes it, while the model of before is still in use."""
    directory = tmp_path / "model"
    shutil.copytree(listed.directory, directory)
    before = translator(directory, beam_size=1, **LIMIT)
    [[old]] = translate(before, [[60, 61, END]], [[A]])
    text = json.loads((directory / "shortlists.json").read_text(encoding="utf-8"))
    write_lists(directory, [text["lists"][1]])
    [[new]] = translate(translator(directory, beam_size=1, **LIMIT), [[60, 61, END]], [[A]])
    assert new == listed.whole.hypotheses([60, 61, END], [A], beam_size=1, **LIMIT)[0]
    assert translate(before, [[60, 61, END]], [[A]]) == [[old]]
