# SPDX-License-Identifier: Apache-2.0
"""What ct2-serve says of processors on which CTranslate2's int8 is inexact."""

from __future__ import annotations

from pathlib import Path

import pytest

from ct2_triton.serve.machine import int8_calls_are_inexact
from ct2_triton.serve.model_configs import read_model_configs

ZEN_3 = "vendor_id : AuthenticAMD\nflags : sse2 avx avx2 fma\n"
ZEN_4 = "vendor_id : AuthenticAMD\nflags : sse2 avx avx2 avx512f avx512_vnni\n"
HASWELL = "vendor_id : GenuineIntel\nflags : sse2 avx avx2 fma\n"
ARM = "CPU implementer : 0x41\nFeatures : asimd\n"


@pytest.mark.parametrize(
    ("text", "variables", "inexact"),
    [
        (ZEN_3, {}, True),
        (ZEN_3, {"CT2_USE_MKL": "1"}, False),
        (ZEN_3, {"CT2_USE_MKL": "0"}, True),
        (ZEN_4, {}, False),
        (HASWELL, {}, False),
        (HASWELL, {"CT2_USE_MKL": "0"}, True),
        (ARM, {}, False),
    ],
)
def test_which_processors_are_meant(
    tmp_path: Path, text: str, variables: dict[str, str], inexact: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert int8_calls_are_inexact(variables, tmp_path / "cpuinfo") is inexact
    assert not int8_calls_are_inexact(variables, tmp_path / "none")


@pytest.mark.parametrize(
    ("parameters", "meant"),
    [
        ({"decoding": "calls"}, True),
        ({"decoding": "calls", "compute_type": "int8_float32"}, True),
        ({"decoding": "calls", "compute_type": "float32"}, False),
        ({"compute_type": "int8"}, False),
    ],
)
def test_which_models_are_meant(tmp_path: Path, parameters: dict[str, str], meant: bool) -> None:
    lines = [
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in parameters.items()
    ]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.pbtxt").write_text("\n".join(['backend: "ctranslate2"', *lines]))
    [config] = read_model_configs([tmp_path])
    assert config.may_call_at_int8 is meant
