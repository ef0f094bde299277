# SPDX-License-Identifier: Apache-2.0
"""The GPU's engine on an emulated GPU, held against CTranslate2 on each row alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.gpu_truth import (
    WIDE,
    GpuTruth,
    begin,
    chosen_until_the_end,
    forget,
    run,
    sampling_key,
    step_logits,
    translate,
)
from core.loop_helpers import new_loop, run_to_end
from ct2_triton import _core
from support import emulated_gpu
from support.tiny import tiny_engine_model

FAMILIES = ("marian", "m2m100", "mbart25", "t5", "madlad")


EMULATED = pytest.mark.skipif(emulated_gpu.REAL_DRIVER is not None, reason="of the emulation")


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return emulated_gpu.gpu_and_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def library(gpu: tuple[Path, Path]) -> Path:
    return gpu[0]


@pytest.fixture(scope="module")
def images(gpu: tuple[Path, Path]) -> Path:
    return gpu[1]


@pytest.fixture(scope="module")
def truth() -> GpuTruth:
    return GpuTruth(tiny_engine_model("marian"))


@pytest.fixture(scope="module")
def decoder(truth: GpuTruth, library: Path, images: Path) -> Any:
    return truth.decoder(library, images)


@pytest.fixture(autouse=True)
def nothing_is_lost(request: pytest.FixtureRequest) -> Any:
    """Each test gives all pages of keys and values back."""
    yield
    if "decoder" in request.fixturenames:
        assert request.getfixturevalue("decoder").taken_pages == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_tokens_scores_and_logits_are_ctranslate2s(
    family: str, library: Path, images: Path
) -> None:
    truth = GpuTruth(tiny_engine_model(family))
    decoder = truth.decoder(library, images)
    sources = truth.sources(5, 17, 1, 30)

    states = translate(decoder, truth, sources, 10)

    for source, (tokens, score) in zip(sources, states, strict=True):
        result = truth.result(source, max_decoding_length=10, return_logits_vocab=True)
        assert truth.unique(tokens) == truth.tokens(result)
        assert score / len(tokens) == pytest.approx(result.scores[0], abs=1e-5)
    [logits] = step_logits(decoder, truth, sources[:1], [truth.start])
    first = truth.result(sources[0], max_decoding_length=10, return_logits_vocab=True).logits[0][0]
    apart = logits[0] - logits[0].max() - (np.array(first) - np.array(first).max())
    assert np.abs(apart).max() < 1e-5 * np.abs(logits).max()


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_a_row_has_the_same_bits_alone_and_in_company(
    kind: str, truth: GpuTruth, library: Path, images: Path
) -> None:
    """In tiles of 16 and of 32 or 64 rows, too."""
    decoder = truth.decoder(library, images, kind, sequences=64, step_tokens=64)
    sources = truth.sources(5, 9, 3) + truth.sources(*([1] * 61), seed=2)
    target = [truth.start, 20, 30]

    alone = step_logits(decoder, truth, sources[:1], target)
    few = step_logits(decoder, truth, sources[:3], target)
    encodings = decoder.encode(sources)
    names = [begin(decoder, truth, e) for e in encodings]
    run(decoder, [(name, 0, target, 1) for name in names[:16]])
    in_one_step = decoder.logits()[0]
    for position, token in enumerate(target):
        run(decoder, [(name, position, [token], 1) for name in names])
    many = decoder.logits()[0]

    assert (alone[0] == few[0]).all()
    assert (alone[0][-1] == np.array(many)).all()
    assert (alone[0][-1] == np.array(in_one_step)).all()


@pytest.mark.parametrize(("kind", "worst"), [("float16", 4e-3), ("bfloat16", 3e-2)])
def test_narrow_types_are_near_float32(
    kind: str, worst: float, truth: GpuTruth, decoder: Any, library: Path, images: Path
) -> None:
    sources = truth.sources(5, 17)
    target = [truth.start, 20]

    wide = step_logits(decoder, truth, sources, target)
    narrow = step_logits(truth.decoder(library, images, kind), truth, sources, target)

    assert 0 < np.abs(narrow - wide).max() < worst * np.abs(wide).max()


def test_int8_weights_are_ctranslate2s(library: Path, images: Path) -> None:
    """Dequantized on the way in, with float16 activations: near the same weights in float32."""
    model = tiny_engine_model("marian", quantization="int8")
    truth = GpuTruth(model, "float32")
    decoder = truth.decoder(library, images, "int8_float16")
    [source] = truth.sources(9)

    [logits] = step_logits(decoder, truth, [source], [truth.start])

    [of_floats] = step_logits(
        GpuTruth(tiny_engine_model("marian")).decoder(library, images, "int8_float16"),
        truth,
        [source],
        [truth.start],
    )
    assert np.array_equal(of_floats, logits)  # a file of floats is quantized as it is read
    result = truth.result(source, max_decoding_length=2, return_logits_vocab=True)
    want = np.array(result.logits[0][0])
    apart = (logits[0] - logits[0].max()) - (want - want.max())
    assert np.abs(apart).max() < 6e-3 * np.abs(logits).max()
    [exact] = step_logits(truth.decoder(library, images), truth, [source], [truth.start])
    apart = (exact[0] - exact[0].max()) - (want - want.max())
    assert np.abs(apart).max() < 1e-5 * np.abs(exact).max()
    with pytest.raises(_core.Error, match="int8 weights need compute_type int8_float16"):
        truth.decoder(library, images, "int8_float32")


@EMULATED
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_order_of_threads_changes_anything(
    seed: int, truth: GpuTruth, decoder: Any, library: Path
) -> None:
    sources = truth.sources(5, 17)
    plain = translate(decoder, truth, sources, 3, candidates=3, penalty=1.2)

    emulated_gpu.run_in_order(library, seed)
    try:
        shuffled = translate(decoder, truth, sources, 3, candidates=3, penalty=1.2)
    finally:
        emulated_gpu.run_in_order(library, 0)

    assert shuffled == plain


def test_steps_ahead_give_what_single_steps_give(truth: GpuTruth, decoder: Any) -> None:
    """Rows end by themselves; later ones join between steps, before the steps before are read."""
    sources = truth.sources(5, 17, 1)
    ahead = translate(decoder, truth, sources, 9)
    assert decoder.kernels_of_last_step == 8 * 2 + 1 + 3  # layers; embedding; projection, choice

    encodings = decoder.encode(sources)
    names = [begin(decoder, truth, encoding, limit=9) for encoding in encodings]
    chosen: list[list[Any]] = [[], [], []]
    waiting: list[tuple[Any, list[int]]] = []
    for step in range(13):
        joined = [i for i in range(3) if 2 * i <= step < 2 * i + 9]
        rows = [(names[i], step - 2 * i, [] if step > 2 * i else [truth.start], 1) for i in joined]
        waiting.append((decoder.launch(rows), joined))
        if step % 3 != 2:
            continue
        for launched, members in waiting:
            for i, one in zip(members, decoder.read(launched), strict=True):
                chosen[i].append(one)
        waiting = []
    for launched, members in waiting:
        for i, one in zip(members, decoder.read(launched), strict=True):
            chosen[i].append(one)

    for row, (tokens, score) in zip(chosen, ahead, strict=True):
        row = chosen_until_the_end(row)
        assert [one.token for one in row] == tokens
        assert sum(one.log_probability for one in row) == pytest.approx(score)
    forget(decoder, names, encodings)


@EMULATED
def test_steps_wait_in_the_stream_until_one_is_read(
    truth: GpuTruth, decoder: Any, library: Path
) -> None:
    """Nothing between two launches waits for the device."""
    emulated_gpu.graphs_at_once(library)

    translate(decoder, truth, truth.sources(5), 9)

    assert emulated_gpu.graphs_at_once(library) == 1 + 9  # an encoder's, too


def test_forced_tokens_come_first(truth: GpuTruth, decoder: Any) -> None:
    [source] = truth.sources(9)
    prefix = [40, 41, 42]

    [(tokens, score)] = translate(decoder, truth, [source], 8, prefix)

    result = truth.result(source, prefix, max_decoding_length=8)
    assert truth.unique(tokens) == truth.tokens(result)
    assert score / len(tokens) == pytest.approx(result.scores[0], abs=1e-5)


def test_several_tokens_of_a_row_in_a_step(truth: GpuTruth, decoder: Any) -> None:
    """A draft: what follows each of its tokens, and then the row goes on by itself."""
    [source] = truth.sources(9)
    [(answer, _)] = translate(decoder, truth, [source], 9)
    [encoding] = decoder.encode([source])
    name = begin(decoder, truth, encoding, limit=9)
    draft = [*answer[:3], (answer[3] + 1) % 1000]

    chosen = [c.token for c in run(decoder, [(name, 0, [truth.start, *draft], 5)])]
    [after] = run(decoder, [(name, 4, chosen[3:4], 1)])
    [on] = run(decoder, [(name, 5, [], 1)])

    assert chosen[:4] == answer[:4]
    assert [after.token, on.token] == answer[4:6]
    forget(decoder, [name], [encoding])


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        ({"penalty": 1.5}, {"repetition_penalty": 1.5}),
        ({"min_length": 6}, {"min_decoding_length": 6}),
        ({"forbidden": "answer"}, {"suppress_sequences": "answer"}),
        ({"penalty": 0.5, "min_length": 4}, {"repetition_penalty": 0.5, "min_decoding_length": 4}),
    ],
    ids=["penalty", "shortest", "forbidden", "two-rules"],
)
def test_rules_are_ctranslate2s(
    rules: dict[str, Any], options: dict[str, Any], truth: GpuTruth, decoder: Any
) -> None:
    [source] = truth.sources(12)
    if "forbidden" in rules:
        [(answer, _)] = translate(decoder, truth, [source], 8)
        rules = {"forbidden": sorted(set(answer))}
        options = {"suppress_sequences": [[truth.vocabulary[i]] for i in rules["forbidden"]]}
    if "min_length" in rules:  # so that the end token would come
        rules = {**rules, "ends": [truth.end, *translate(decoder, truth, [source], 3)[0][0]]}
        options = {**options, "end_token": truth.unique(rules["ends"])}

    [(tokens, score)] = translate(decoder, truth, [source], 8, **rules)

    result = truth.result(source, max_decoding_length=8, **options)
    assert truth.unique(tokens) == truth.tokens(result)
    assert score / len(tokens) == pytest.approx(result.scores[0], abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"sampling_topk": 12},
        {"sampling_topk": 30, "sampling_topp": 0.7, "sampling_temperature": 1.8},
        {"sampling_topk": 0, "sampling_temperature": 0.7},
    ],
)
def test_draws_are_those_of_the_cpus_loop(
    options: dict[str, Any], truth: GpuTruth, decoder: Any
) -> None:
    [source] = truth.sources(9)
    loop = new_loop(truth.directory)
    parameters = {**options, "sampling_seed": 7, "max_decoding_length": 10, "beam_size": 1}
    [name] = loop.admit([(source, [], parameters)])
    answer = run_to_end(loop)[name]
    rules = {
        "draws": True,
        "min_length": 1,
        "key": sampling_key(7, source, []),
        "top_k": options["sampling_topk"],
        "top_p": options.get("sampling_topp", 1.0),
        "temperature": options.get("sampling_temperature", 1.0),
    }

    [(tokens, _)] = translate(decoder, truth, [source], 10, **rules)

    assert [token for token in tokens if token != truth.end] == answer["ids"]


def test_candidates_and_places_make_beams(truth: GpuTruth, decoder: Any) -> None:
    """Beams share the keys and values of what they have in common, in one cache."""
    [source] = truth.sources(9)
    [encoding] = decoder.encode([source])
    first, second = decoder.join(encoding, 2, truth.rules(candidates=5))
    [chosen] = run(decoder, [(first, 0, [truth.start], 1)])
    best = chosen.candidates

    both = [(first, 1, [best[0][0]], 1), (second, 1, [best[1][0]], 1)]
    after = run(decoder, both, [[0, 1], [0, 2]])
    [again] = run(decoder, [(first, 1, [best[1][0]], 1)], [[0, 2]])

    result = truth.result(source, max_decoding_length=2, return_logits_vocab=True)
    logits = np.array(result.logits[0][0])
    assert [token for token, _ in best] == list(np.argsort(-logits, kind="stable")[:5])
    total = np.log(np.exp(logits - logits.max()).sum()) + logits.max()
    assert [s for _, s in best] == pytest.approx(np.sort(logits)[::-1][:5] - total, abs=1e-5)
    [alone] = step_logits(decoder, truth, [source], [truth.start, best[1][0]])
    assert after[1].token == alone[-1].argmax() == again.token
    assert after[1].candidates == again.candidates
    assert after[0].candidates != after[1].candidates
    forget(decoder, [first, second], [encoding])


def test_a_bias_towards_a_draft(truth: GpuTruth, decoder: Any) -> None:
    """A bias b makes (1 - b) p + b of the probability of the draft's token, else (1 - b) p."""
    [source] = truth.sources(9)
    [(answer, _)] = translate(decoder, truth, [source], 2)
    drafts = [answer[0], (answer[0] + 1) % 900 + 10]
    [logits] = step_logits(decoder, truth, [source], [truth.start])
    probabilities = np.exp(logits[0] - np.log(np.exp(logits[0]).sum()))

    for draft, bias in [(drafts[0], 0.3), (drafts[1], 0.9), (drafts[1], 1e-4)]:
        [(tokens, score)] = translate(decoder, truth, [source], 1, favored=draft, bias=bias)
        biased = probabilities * (1 - bias)
        biased[draft] += bias
        assert tokens == [biased.argmax()]
        assert score == pytest.approx(np.log(biased.max()), abs=1e-4)


def test_alignments_are_ctranslate2s(truth: GpuTruth, decoder: Any) -> None:
    [source] = truth.sources(9)
    [encoding] = decoder.encode([source])
    name = begin(decoder, truth, encoding, limit=4, sources=len(source))
    steps = [decoder.launch([(name, 0, [truth.start], 1)])]
    steps += [decoder.launch([(name, position, [], 1)]) for position in range(1, 4)]
    found = [one for step in steps for one in decoder.read(step)]
    seen = [(one.aligned_source, one.alignment_weight) for one in found]

    result = truth.result(source, max_decoding_length=4, return_attention=True)
    want = [np.array(step) for step in result.attention[0]]
    assert [place for place, _ in seen] == [int(step.argmax()) for step in want]
    assert [w for _, w in seen] == pytest.approx([step.max() for step in want], abs=1e-5)
    forget(decoder, [name], [encoding])


def test_what_does_not_fit_is_refused_and_the_next_is_served(truth: GpuTruth, decoder: Any) -> None:
    [source] = truth.sources(9)
    [want] = translate(decoder, truth, [source], 3)

    with pytest.raises(_core.Error, match="a source has 41 tokens; allowed are 1 to 40"):
        decoder.encode(truth.sources(40))
    with pytest.raises(_core.Error, match="allowed are 1 to 40"):
        decoder.encode([[]])
    with pytest.raises(_core.Error, match="not in the vocabulary"):
        decoder.encode([[99999]])
    [encoding] = decoder.encode([source])
    names = [begin(decoder, truth, encoding, limit=3) for _ in range(8)]
    for rules, message in [
        ({"draws": True, "top_k": 33}, "best 1 to 32"),
        ({"candidates": 33}, "1 to 32 candidates"),
    ]:
        with pytest.raises(_core.Error, match=message):
            decoder.set_rules(names[0], truth.rules(**rules))
    with pytest.raises(_core.Error, match="cannot run tokens 24 to 25"):
        decoder.launch([(names[0], 24, [20], 1)])
    with pytest.raises(_core.Error, match="cannot run tokens 3 to 4"):
        decoder.launch([(names[0], 3, [], 1)])
    with pytest.raises(_core.Error, match="all 8 sequences") as full:
        begin(decoder, truth, encoding)
    assert full.value.code == "unavailable"
    forget(decoder, names, [encoding])
    assert translate(decoder, truth, [source], 3) == [want]


@EMULATED
def test_memory_that_runs_out_leaves_the_others_unharmed(
    truth: GpuTruth, decoder: Any, library: Path, images: Path
) -> None:
    [source] = truth.sources(9)
    [want] = translate(decoder, truth, [source], 3)

    emulated_gpu.limit_memory(library, 1 << 20)
    try:
        with pytest.raises(_core.Error, match="out of memory") as error:
            truth.decoder(library, images)
    finally:
        emulated_gpu.limit_memory(library, 1 << 33)
    assert error.value.code == "unavailable"
    one_slab = 1024 * 2 * 2 * 64 * 4
    small = truth.decoder(library, images, cache_bytes=one_slab)
    encodings = [small.encode([source])[0] for _ in range(64)]
    with pytest.raises(_core.Error, match="no room for more keys and values"):
        small.encode([source])
    small.forget_encoding(encodings[0])
    small.forget_encoding(encodings[1])
    assert translate(small, truth, [source], 3) == [want]
    assert small.cache_bytes == one_slab
    assert translate(decoder, truth, [source], 3) == [want]


@EMULATED
def test_no_driver_and_no_images_have_a_sentence(
    truth: GpuTruth, library: Path, images: Path, tmp_path: Path
) -> None:
    with pytest.raises(_core.Error, match="no driver of a GPU can be loaded"):
        truth.decoder(tmp_path / "libcuda.so.1", images)
    with pytest.raises(_core.Error, match="cannot be read"):
        truth.decoder(library, tmp_path / "none.bin")
    damaged = tmp_path / "damaged.bin"
    for content in (b"", b"ct2t-gpu", images.read_bytes()[:-1]):
        damaged.write_bytes(content)
        with pytest.raises(_core.Error, match="damaged"):
            truth.decoder(library, damaged)
    with pytest.raises(_core.Error, match=r"no kernels for a GPU of compute capability 7\.0"):
        _core.gpu_image(str(images), 70)
    assert _core.gpu_image(str(images), 86) == b"emulated"


def test_a_wide_model_with_heads_that_are_no_power_of_two(gpu: tuple[Path, Path]) -> None:
    """A warp sums several tiles of weights, more than it loads ahead, and lanes of a head idle."""
    truth = GpuTruth(tiny_engine_model("marian", WIDE))
    sources = truth.sources(5, 2)
    decoder = truth.decoder(*gpu)
    result = truth.result(sources[0], max_decoding_length=2, return_logits_vocab=True)

    [(tokens, score)] = translate(decoder, truth, sources[:1], 2)
    [alone] = step_logits(decoder, truth, sources[:1], [truth.start])
    wide = step_logits(decoder, truth, sources, [truth.start])
    narrow = step_logits(truth.decoder(*gpu, "float16"), truth, sources, [truth.start])

    assert truth.unique(tokens) == truth.tokens(result)
    assert score / 2 == pytest.approx(result.scores[0], abs=1e-5)
    assert (wide[0] == alone).all()
    assert 0 < np.abs(narrow - wide).max() < 4e-3 * np.abs(wide).max()
