# SPDX-License-Identifier: Apache-2.0
"""What is asked of the CTranslate2 library, and the models that decode loops leave to calls."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from core.loop_helpers import GREEDY, decode_alone, new_loop
from ct2_triton import _core
from model_bin import edited_copy, read_model_bin, write_model_bin
from support.tiny import tiny_engine_model


def test_every_weak_symbol_is_asked_for() -> None:
    """A symbol that is missing in the library would be a call to address 0."""
    with Path(_core.__file__).open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".dynsym").iter_symbols()
        weak = {
            symbol.name
            for symbol in symbols
            if symbol["st_info"]["bind"] == "STB_WEAK"
            and symbol["st_shndx"] == "SHN_UNDEF"
            and "ctranslate2" in symbol.name
        }
    assert weak == {"_ZN11ctranslate215destroy_contextENS_6DeviceE"}


def refusal(directory: Path, **parameters: Any) -> str:
    with pytest.raises(_core.Error) as caught:
        _core.LoopModel(str(directory), {"compute_type": "float32", **parameters})
    assert caught.value.code == "unsupported"
    return str(caught.value)


@pytest.mark.parametrize(
    "flag",
    [
        "decoder/layer_0/self_attention/multi_query",
        "decoder/layer_1/attention/rotary_interleave",
        "decoder/sliding_window",
        "decoder/something_new",
        "encoder/something_new",
    ],
)
def test_an_unknown_attribute_is_named(tmp_path: Path, flag: str) -> None:
    model = edited_copy(tiny_engine_model("nllb"), tmp_path / "model", flags={flag: 0})
    assert f"it has a variable {flag}" in refusal(model)


def test_alibi_is_known_but_not_followed(tmp_path: Path) -> None:
    model = edited_copy(tiny_engine_model("nllb"), tmp_path / "on", flags={"decoder/alibi": 1})
    assert "decoder/alibi is set" in refusal(model)


def test_a_layer_that_lacks_something_is_refused(tmp_path: Path) -> None:
    missing = "decoder/layer_1/self_attention/relative_attention_bias"
    model = edited_copy(tiny_engine_model("t5"), tmp_path / "model", drop=[missing])
    assert "only some of its layers have self_attention/relative_attention_bias" in refusal(model)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_engine_model("nllb"), model)
    content = read_model_bin(model / "model.bin")
    # CTranslate2 takes an old revision's name for the same thing.
    content.specification = "TransformerBase"
    write_model_bin(content, model / "model.bin")
    assert 'it holds a "TransformerBase"' in refusal(model)


def test_a_model_without_start_token_takes_the_prefix_first(tmp_path: Path) -> None:
    """As mBART-25: the first id of the prefix starts the decoder, and is not in the answer."""
    plain = tiny_engine_model("mbart50")
    model = tmp_path / "model"
    shutil.copytree(plain, model)
    config = json.loads((model / "config.json").read_text())
    start = json.loads((model / "shared_vocabulary.json").read_text()).index(
        config["decoder_start_token"]
    )
    (model / "config.json").write_text(json.dumps({**config, "decoder_start_token": None}))

    source, forced = [30, 31, 32], [40, 41]
    answer = decode_alone(new_loop(model), source, [start, *forced], {})

    assert answer["ids"][:2] == forced
    assert answer == decode_alone(new_loop(plain), source, forced, {})


def test_tokens_that_ctranslate2_adds_to_a_source_are_added(tmp_path: Path) -> None:
    plain = tiny_engine_model("nllb")
    model = tmp_path / "model"
    shutil.copytree(plain, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(
        json.dumps({**config, "add_source_bos": True, "add_source_eos": True})
    )
    tokens = json.loads((model / "shared_vocabulary.json").read_text())
    first, last = tokens.index(config["bos_token"]), tokens.index(config["eos_token"])

    answer = decode_alone(new_loop(model), [50, 51, 52], [], {})

    assert answer == decode_alone(new_loop(plain), [first, 50, 51, 52, last], [], {})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"beam_size": 2, "coverage_penalty": 0.1}, "coverage_penalty is not 0"),
    ],
    ids=str,
)
def test_searches_that_are_left_to_calls(
    engine_model: Path, options: dict[str, Any], reason: str
) -> None:
    loop = new_loop(engine_model)
    with pytest.raises(_core.Error, match=reason) as caught:
        loop.admit([([5, 6], [], options)])
    assert caught.value.code == "unsupported"
    assert decode_alone(loop, [5, 6], [], GREEDY)["ids"]


def test_a_map_with_ngrams_is_left_to_calls(engine_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(engine_model, model)
    tokens = json.loads((model / "shared_vocabulary.json").read_text())
    lines = "\t" + " ".join(tokens[20:60]) + f"\n{tokens[50]}\t{tokens[70]}\n"
    (model / "vmap.txt").write_text(lines, encoding="utf-8")
    loop = new_loop(model)
    with pytest.raises(_core.Error, match=r"vmap\.txt has lines for n-grams"):
        loop.admit([([5, 6], [], {**GREEDY, "use_vmap": True})])
    assert decode_alone(loop, [5, 6], [], {})["ids"]
