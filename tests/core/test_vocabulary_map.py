# SPDX-License-Identifier: Apache-2.0
"""Models with a vmap.txt: which rows use it, and that its candidates suffice for the search."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, Row, ragged_rows
from ct2_triton import _core

ALWAYS = range(20, 40)
SPECIAL = {0, END, 3}
LIMIT = {"max_decoding_length": 20}


@pytest.fixture(scope="module")
def truth(engine_model: Path) -> EngineTruth:
    return EngineTruth(engine_model)


@pytest.fixture(scope="module")
def make_model(
    tmp_path_factory: pytest.TempPathFactory, engine_model: Path
) -> Callable[[str], Path]:
    def make(vmap: str) -> Path:
        directory = tmp_path_factory.mktemp("mapped") / "model"
        shutil.copytree(engine_model, directory)
        (directory / "vmap.txt").write_text(vmap, encoding="utf-8")
        return directory

    return make


@pytest.fixture(scope="module")
def fixed_model(make_model: Callable[[str], Path], truth: EngineTruth) -> Path:
    """A map that has 20 tokens, and the end token, for every source."""
    return make_model("\t" + " ".join(truth.tokens(list(ALWAYS))) + "\n")


@pytest.fixture(scope="module")
def ngram_model(make_model: Callable[[str], Path], truth: EngineTruth) -> Path:
    """The same, and two more tokens where a source has token 50."""
    always, more = truth.tokens(list(ALWAYS)), truth.tokens([50, 51, 52])
    return make_model(f"\t{' '.join(always)}\n{more[0]}\t{more[1]} {more[2]}\n")


@pytest.fixture(params=["fixed_model", "ngram_model"])
def mapped_model(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def translator(directory: Path, **parameters: Any) -> Any:
    settings = {"compute_type": "float32", "use_vmap": True, **as_parameters(parameters)}
    return _core.Translator(str(directory), settings)


def translate(
    mapped: Any, sources: list[Row], prefixes: list[Row] | None = None, **options: Any
) -> list[list[Row]]:
    """The ids of each hypothesis of each row."""
    answers = mapped.translate(sources, prefixes, as_parameters(options))
    return [[hypothesis["ids"] for hypothesis in answer] for answer in answers]


def as_parameters(options: dict[str, Any]) -> dict[str, Any]:
    return {k: json.dumps(v) if isinstance(v, list) else v for k, v in options.items()}


def new_truth(directory: Path, source: Row, prefix: Row, **options: Any) -> list[Row]:
    """By a translator that has seen nothing else: see the test of its numbering below."""
    return EngineTruth(directory).hypotheses(source, prefix, use_vmap=True, **options)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_row_gives_what_ctranslate2_gives(mapped_model: Path, beam_size: int) -> None:
    sources, prefixes = ragged_rows(EngineTruth(mapped_model), 4)
    allowed = [[20 + i] if prefix else [] for i, prefix in enumerate(prefixes)]
    sources[0].insert(1, 50)
    mapped = translator(mapped_model, beam_size=beam_size, **LIMIT)
    for source, prefix in zip(sources, allowed, strict=True):
        [answer] = translate(mapped, [source], [prefix])
        assert answer == new_truth(mapped_model, source, prefix, beam_size=beam_size, **LIMIT)
        assert set(answer[0]) <= {*ALWAYS, *SPECIAL, 51, 52}


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_prefix_of_other_tokens_leaves_a_fixed_map(
    fixed_model: Path, truth: EngineTruth, beam_size: int
) -> None:
    """CTranslate2 would make them candidates of every row of the call."""
    mapped = translator(fixed_model, beam_size=beam_size, **LIMIT)
    sources, prefixes = ragged_rows(truth, 12, seed=3)
    expected = [
        truth.hypotheses(source, prefix, beam_size=beam_size, **LIMIT)
        if prefix
        else new_truth(fixed_model, source, prefix, beam_size=beam_size, **LIMIT)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert {bool(prefix) for prefix in prefixes} == {True, False}
    assert translate(mapped, sources, prefixes) == expected
    alone = [
        translate(mapped, [source], [prefix])[0]
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert alone == expected


def test_sets_of_candidates_do_not_mix(ngram_model: Path) -> None:
    """One replica of CTranslate2 4.8.5 keeps the numbering of its first set of candidates."""
    mapped = translator(ngram_model, beam_size=1, inter_threads=1, **LIMIT)
    for source, prefix in (([60, 61, END], [10]), ([50, 61, END], [25]), ([60, 61, END], [30, 7])):
        [[answer]] = translate(mapped, [source], [prefix])
        assert answer == new_truth(ngram_model, source, prefix, beam_size=1, **LIMIT)[0]


LANGUAGE_A, LANGUAGE_B = 30, 31


@pytest.mark.parametrize(
    ("parameter", "source", "prefix", "used"),
    [
        ("vmap_prefix_ids", [60, 61, END], [LANGUAGE_A], True),
        ("vmap_prefix_ids", [60, 61, END], [25, LANGUAGE_A], True),
        ("vmap_prefix_ids", [60, 61, END], [LANGUAGE_B], False),
        ("vmap_prefix_ids", [LANGUAGE_A, 61, END], [], False),
        ("vmap_source_ids", [LANGUAGE_A, 61, END], [], True),
        ("vmap_source_ids", [LANGUAGE_A, 61, END], [25], True),
        ("vmap_source_ids", [LANGUAGE_B, 61, END], [], False),
        ("vmap_source_ids", [60, 61, END], [LANGUAGE_A], False),
    ],
)
def test_only_rows_that_name_a_language_of_the_map_use_it(
    fixed_model: Path, truth: EngineTruth, parameter: str, source: Row, prefix: Row, used: bool
) -> None:
    mapped = translator(fixed_model, beam_size=1, **{parameter: [LANGUAGE_A]}, **LIMIT)
    with_map = new_truth(fixed_model, source, prefix, beam_size=1, **LIMIT)
    without = truth.hypotheses(source, prefix, beam_size=1, **LIMIT)
    assert with_map != without
    [answer] = translate(mapped, [source], [prefix])
    assert answer == (with_map if used else without)
    [answer] = translate(mapped, [source], [prefix], use_vmap=False)
    assert answer == without
    plain = translator(fixed_model, beam_size=1, use_vmap=False, **LIMIT, **{parameter: [30]})
    [answer] = translate(plain, [source], [prefix], use_vmap=True)
    assert answer == (with_map if used else without)


def test_an_end_token_outside_the_map_leaves_it(fixed_model: Path, truth: EngineTruth) -> None:
    mapped = translator(fixed_model, beam_size=1, **LIMIT)
    source = [60, 61, END]
    [[plain]] = translate(mapped, [source], use_vmap=False)
    end = plain[3]
    assert end not in ALWAYS
    [[answer]] = translate(mapped, [source], end_token=[end])
    assert answer == truth.hypotheses(source, [], beam_size=1, end_token=[end], **LIMIT)[0]
    assert len(answer) <= 3


def test_sequences_of_several_tokens_are_suppressed(fixed_model: Path) -> None:
    mapped = translator(fixed_model, beam_size=1, **LIMIT)
    source = [60, 61, END]
    [[answer]] = translate(mapped, [source])
    pair = answer[:2]
    assert set(pair) <= set(ALWAYS)
    # The second one cannot occur: cut down to its candidate, it would forbid that one.
    [[other]] = translate(mapped, [source], suppress_sequences=[pair, [100, answer[0]]])
    assert other[0] == answer[0]
    assert other[1] != answer[1]
    assert tuple(pair) not in itertools.pairwise(other)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 10, "num_hypotheses": 10},
        {"min_decoding_length": 15, "beam_size": 1},
        {"disable_unk": True, "beam_size": 2},
        {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3, "beam_size": 2},
        {"prefix_bias_beta": 0.3, "beam_size": 2},
        {"return_alternatives": True, "num_hypotheses": 4, "beam_size": 1},
        {"suppress_sequences": [[25], [100]], "beam_size": 1},
        {"return_end_token": True, "beam_size": 1},
    ],
    ids=str,
)
def test_other_options_work_with_the_map(fixed_model: Path, options: dict[str, Any]) -> None:
    [answer] = translate(translator(fixed_model, **LIMIT), [[60, 61, END]], [[25]], **options)
    assert len(answer) == options.get("num_hypotheses", 1)
    assert all(set(row) <= {*ALWAYS, *SPECIAL} for row in answer)
    if "suppress_sequences" not in options:  # the Python module wants tokens there
        assert answer == new_truth(fixed_model, [60, 61, END], [25], **LIMIT, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beam_size": 11}, "parameter beam_size: value 11 needs more candidates than the 21"),
        ({"num_hypotheses": 11, "return_alternatives": True}, "parameter num_hypotheses: value 11"),
        ({"beam_size": 1, "sampling_topk": 22}, "parameter sampling_topk: value 22"),
    ],
    ids=str,
)
def test_what_the_candidates_do_not_suffice_for(
    mapped_model: Path, options: dict[str, Any], text: str
) -> None:
    mapped = translator(mapped_model)
    with pytest.raises(_core.Error, match=text):
        translate(mapped, [[60, 61, END]], **options)
    translate(mapped, [[60, 61, END]], **options, use_vmap=False)
    translate(mapped, [[60, 61, END]], beam_size=10, max_decoding_length=5)


def test_sequences_cannot_be_suppressed_where_candidates_change(ngram_model: Path) -> None:
    mapped = translator(ngram_model)
    options = {"suppress_sequences": [[20, 21]]}
    with pytest.raises(_core.Error, match="cannot be combined with use_vmap"):
        translate(mapped, [[60, 61, END]], **options)
    translate(mapped, [[60, 61, END]], **options, use_vmap=False)


@pytest.mark.parametrize(
    ("vmap", "text"),
    [
        ("\ta b\n\n", "vmap.txt, line 2: there is no tab"),
        ("\ta b\nx\ty\tz\n", "vmap.txt, line 2: there are several tabs"),
        ("\ta b\n\tc\n", "vmap.txt, line 2: it is the second line of the empty n-gram"),
        ("", "vmap.txt is empty or not a file"),
        (None, "vmap.txt is empty or not a file"),
    ],
)
def test_a_map_that_ctranslate2_would_misread_is_refused(
    make_model: Callable[[str], Path], vmap: str | None, text: str
) -> None:
    """Without a line it would end the process; None: a directory of that name."""
    model = make_model(vmap or "")
    if vmap is None:
        (model / "vmap.txt").unlink()
        (model / "vmap.txt").mkdir()
    with pytest.raises(_core.Error, match=text):
        translator(model)


def test_the_log_line_tells_the_size(fixed_model: Path, ngram_model: Path) -> None:
    line = translator(fixed_model).description
    assert line.endswith("vocabulary map of 21 of 1406 tokens")
    line = translator(ngram_model, use_vmap=False).description
    assert line.endswith("21 of 1406 tokens and more by source, used on request (use_vmap)")


def test_rows_are_told_by_the_tokens_of_the_vocabulary(
    make_model: Callable[[str], Path], truth: EngineTruth
) -> None:
    """CTranslate2's step callback numbers candidates by their place, its answers name tokens.

    Rows of different limits in one call: what was told step by step is the answer.
    """
    always = [*range(1000, 1040), *range(30, 50)]
    model = make_model("\t" + " ".join(truth.tokens(always)) + "\n")
    mapped = translator(model, beam_size=1, inter_threads=1, max_decoding_length_multiple=2)
    sources = [[60 + i] * (3 + i) + [END] for i in range(8)]
    prefixes = [[30 + i] for i in range(8)]
    told = translate(mapped, sources, prefixes)
    # Answers with scores are read from the results of the call.
    read = translate(mapped, sources, prefixes, return_scores=True)
    assert told == read
    assert len({len(row) for [row] in told}) > 2
    assert all(set(row) <= {*always, *SPECIAL} for [row] in told)
    assert told == [
        new_truth(model, source, prefix, beam_size=1, max_decoding_length=2 * len(source))
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
