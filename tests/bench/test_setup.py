# SPDX-License-Identifier: Apache-2.0
"""The model that all contenders of a run share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.bench.setup import MODEL, Setup, find_prepared
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import parse_config

if TYPE_CHECKING:
    from pathlib import Path


def test_a_prepared_model_is_used_with_the_settings_of_the_run(tmp_path: Path) -> None:
    options = PrepareOptions("demo", tmp_path / "repository", name="own", instance_kind="gpu")
    given = find_prepared(str(prepare(options).directory))
    setup = Setup(str(tmp_path / "nowhere"), tmp_path / "run", beam_size=3, given=given)
    used = setup.prepared("int8")  # its source does not exist, so nothing is prepared again
    assert given is not None
    assert used.model_folder.resolve() == given.model_folder.resolve()
    config = parse_config(used.config_file.read_text("utf-8"), used.config_file)
    assert config.name == MODEL
    assert config.parameters["beam_size"].string_value == "3"
    assert config.instance_group[0].kind == config.instance_group[0].KIND_CPU


def test_a_name_or_an_empty_folder_is_not_a_prepared_model(tmp_path: Path) -> None:
    assert find_prepared("demo") is None
    assert find_prepared(str(tmp_path)) is None
