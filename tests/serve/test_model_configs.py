# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from ct2_triton.serve.errors import ModelRepositoryError
from ct2_triton.serve.model_configs import gpu_complaints, read_model_configs, warnings

_OURS = 'backend: "ctranslate2"\n'


def _repository(root: Path, **configs: str) -> Path:
    for name, text in configs.items():
        (root / name).mkdir()
        (root / name / "config.pbtxt").write_text(text)
    return root


def test_a_gpu_kind_is_complained_of_with_the_file_to_change(tmp_path: Path) -> None:
    repository = _repository(
        tmp_path,
        gpu="instance_group [{ count: 1\n kind: KIND_GPU }]",
        cpu="instance_group { kind: KIND_CPU }  # kind: KIND_GPU was here",
        quoted='parameters { key: "a" value { string_value: "# kind: KIND" } }',
    )
    (complaint,) = gpu_complaints(read_model_configs([repository]))
    assert complaint.startswith("model 'gpu' asks for a GPU")
    assert str(tmp_path / "gpu" / "config.pbtxt") in complaint
    assert "KIND_CPU" in complaint


def test_a_comment_sign_inside_a_string_does_not_hide_what_follows(tmp_path: Path) -> None:
    text = 'name: "#" instance_group { kind: KIND_GPU }'
    assert gpu_complaints(read_model_configs([_repository(tmp_path, a=text)]))


@pytest.mark.parametrize(
    "setting",
    [
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 }",
        "dynamic_batching { default_queue_policy { max_queue_size: 10 } }",
        "dynamic_batching { default_queue_policy: { default_timeout_microseconds: 5 } }",
        "dynamic_batching { default_queue_policy { allow_timeout_override: true } }",
    ],
)
def test_a_queue_policy_is_warned_of(tmp_path: Path, setting: str) -> None:
    (warning,) = warnings(read_model_configs([_repository(tmp_path, slow=_OURS + setting)]))
    assert "'slow'" in warning
    assert "500 ms" in warning
    assert "instead" in warning


def test_what_only_looks_like_a_setting_is_none(tmp_path: Path) -> None:
    """Text is read as Triton reads it: braces, strings and other messages do not confuse it."""
    repository = _repository(
        tmp_path,
        strings=_OURS + 'parameters { key: "k" value { string_value: "max_queue_size: 5" } }',
        other=_OURS + "sequence_batching { oldest { max_candidate_sequences: 4 } }",
        newer=_OURS + "a_setting_of_next_year { max_queue_size: 5 }",
    )
    configs = read_model_configs([repository])
    assert warnings(configs) == []
    assert [config.is_ours for config in configs] == [True, True, True]


def test_a_config_that_triton_cannot_read_is_left_to_it(tmp_path: Path) -> None:
    assert warnings(read_model_configs([_repository(tmp_path, torn=_OURS + "dynamic_b")])) == []


@pytest.mark.parametrize("value", ["{ enable: true }", "{enable:true}", ": { enable: 1 }"])
def test_a_response_cache_is_warned_of(tmp_path: Path, value: str) -> None:
    text = f"{_OURS}response_cache {value}"
    (warning,) = warnings(read_model_configs([_repository(tmp_path, cached=text)]))
    assert "response cache" in warning


@pytest.mark.parametrize(
    "text",
    [
        _OURS + "dynamic_batching { }",
        _OURS + "response_cache { enable: false }",
        'backend: "python"\nresponse_cache { enable: true }',
    ],
)
def test_other_configs_pass(tmp_path: Path, text: str) -> None:
    assert warnings(read_model_configs([_repository(tmp_path, fine=text)])) == []


def test_a_repository_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelRepositoryError, match="nowhere is not a folder"):
        read_model_configs([tmp_path / "nowhere"])


def test_a_config_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.pbtxt").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelRepositoryError, match="cannot read .*odd/config.pbtxt"):
        read_model_configs([tmp_path])
