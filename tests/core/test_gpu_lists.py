# SPDX-License-Identifier: Apache-2.0
"""Lists of candidates on an emulated GPU, and the graphs and buffers of a step of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.gpu_truth import GpuTruth, begin, chosen_until_the_end, forget, run, translate
from ct2_triton import _core
from support import emulated_gpu
from support.tiny import tiny_engine_model


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return emulated_gpu.gpu_and_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def truth() -> GpuTruth:
    return GpuTruth(tiny_engine_model("marian"))


def test_a_list_is_what_forbids_all_others(truth: GpuTruth, gpu: tuple[Path, Path]) -> None:
    """Rows of a list, of another and of none share the steps."""
    decoder = truth.decoder(*gpu)
    sources = truth.sources(9, 4, 12)
    allowed = [truth.end, *range(10, 700, 3)]
    others = [i for i in range(len(truth.vocabulary)) if i not in allowed]
    [want] = translate(decoder, truth, sources[:1], 6, forbidden=others)
    [free] = translate(decoder, truth, sources[2:], 6)
    listed = decoder.add_list(allowed)
    other = decoder.add_list(list(range(len(truth.vocabulary))))
    encodings = decoder.encode(sources)
    names = [
        begin(decoder, truth, encoding, limit=6, list=name, penalty=penalty)
        for encoding, name, penalty in zip(
            encodings, [listed, other, None], [1.0, 2.0, 1.0], strict=True
        )
    ]

    steps = [run(decoder, [(name, 0, [truth.start], 1) for name in names])]
    steps += [run(decoder, [(name, i, [], 1) for name in names]) for i in range(1, 6)]

    rows = [chosen_until_the_end([step[i] for step in steps]) for i in range(3)]
    assert [one.token for one in rows[0]] == want[0]
    assert sum(one.log_probability for one in rows[0]) == pytest.approx(want[1], abs=1e-5)
    assert [one.token for one in rows[2]] == free[0]
    forget(decoder, names, encodings)
    with pytest.raises(_core.Error, match="ascending"):
        decoder.add_list([3, 2])


def test_a_step_has_room_for_the_rows_of_many_lists(
    truth: GpuTruth, gpu: tuple[Path, Path]
) -> None:
    """Those of a list are padded to a multiple of 16, above 64 rows to one of 64."""
    decoder = truth.decoder(*gpu, sequences=128, step_tokens=128)
    lists = [decoder.add_list([truth.end, *range(20, 40 + i)]) for i in range(8)]
    rows = [*[lists[0]] * 65, *[lists[1]] * 57, *lists[2:]]
    [encoding] = decoder.encode(truth.sources(4))
    names = [begin(decoder, truth, encoding, list=name) for name in rows]

    chosen = run(decoder, [(name, 0, [truth.start], 1) for name in names])

    forget(decoder, names, [])
    for listed in lists:
        name = begin(decoder, truth, encoding, list=listed)
        [alone] = run(decoder, [(name, 0, [truth.start], 1)])
        found = {one.token for one, of in zip(chosen, rows, strict=True) if of == listed}
        assert found == {alone.token}
        forget(decoder, [name], [])
    forget(decoder, [], [encoding])


def test_graphs_are_made_at_the_load_whatever_lists_the_rows_have(
    truth: GpuTruth, gpu: tuple[Path, Path]
) -> None:
    """Making one takes longer than a step. Only alignments of another layer need one more."""
    decoder = truth.decoder(*gpu)
    at_load = decoder.graphs
    lists = [None, *(decoder.add_list([truth.end, *range(20, 60 + i)]) for i in range(3))]
    [source] = truth.sources(9)
    [encoding] = decoder.encode([source])

    for first in lists:
        for second in lists:
            names = [begin(decoder, truth, encoding, list=name) for name in (first, second)]
            run(decoder, [(name, 0, [truth.start], 1) for name in names])
            forget(decoder, names, [])

    assert decoder.graphs == at_load == 4 + 2  # sizes of an encoder's pass, and of a step
    name = begin(decoder, truth, encoding, sources=len(source))
    run(decoder, [(name, 0, [truth.start], 1)])
    assert decoder.graphs == at_load + 1
    forget(decoder, [name], [encoding])
