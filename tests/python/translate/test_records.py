# SPDX-License-Identifier: Apache-2.0
"""What an output of ct2-translate depends on, and what it does not."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.errors import ClientError
from ct2_triton.translate.cli import add_translation_arguments, made_of
from ct2_triton.translate.records import (
    check_unchanged,
    deliver,
    describe,
    finished,
    model_checksum,
)

CONFIG = 'name: "m"\nparameters { key: "beam_size" value { string_value: "#1" } }\n'


def test_comments_and_spaces_of_a_config_decide_nothing(tmp_path: Path) -> None:
    config = tmp_path / "m" / "config.pbtxt"
    config.parent.mkdir()
    found = []
    for text in (CONFIG, f"# tuned\n{CONFIG}\n  # by hand", CONFIG.replace("#1", "#2")):
        config.write_text(text)
        found.append(model_checksum("m", tmp_path))
    assert found[0] == found[1] != found[2]


def settings(*arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_translation_arguments(parser)
    return made_of(parser.parse_args(["--model", "m", *arguments]), ["1"], ["de"])


def test_an_output_depends_on_the_tokenizer_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    first = settings("--tokenizer", str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{ }")
    assert settings("--tokenizer", str(tmp_path)) != first


def test_a_run_from_another_folder_finds_the_output_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, `./model_repository` is not at hand; a model that has changed is told in any case."""
    config = tmp_path / "model_repository" / "m" / "config.pbtxt"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    whole, output = tmp_path / "whole", tmp_path / "output"
    whole.write_text("Hallo.\n")
    deliver(whole, output, settings(), [])
    assert finished(output, settings())
    monkeypatch.chdir(config.parent)
    assert finished(output, settings())
    monkeypatch.chdir(tmp_path)
    config.write_text(CONFIG.replace("#1", "#2"))
    assert finished(output, settings()) is None


def test_an_input_that_was_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("One.\nTwo.\n")
    before = describe(source, settings())
    source.write_text("One.\nTwo.\n")
    check_unchanged(source, output, before)
    source.write_text("One.\nTen.\n")
    with pytest.raises(ClientError, match=r"in.txt was changed .* so .*out.txt is not written"):
        check_unchanged(source, output, before)
    source.unlink()  # all of it was read from the open file
    check_unchanged(source, output, before)


def test_an_output_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, a name never stands for a file without its content."""
    events: list[tuple[str, int]] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        events.append(("sync", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        events.append(("name", path.stat().st_ino))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    whole = tmp_path / "whole"
    whole.write_text("Hallo.\n")
    deliver(whole, tmp_path / "output", {}, [])
    named = [file for what, file in events if what == "name"]
    assert len(named) == 3  # the record, the output, and the record once more
    assert all(events.index(("sync", file)) < events.index(("name", file)) for file in named)
