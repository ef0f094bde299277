# SPDX-License-Identifier: Apache-2.0
"""`ct2-prepare --as-version`: a further version of a model, beside one that stays as it is."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from ct2_triton.checksums import verify
from ct2_triton.errors import Ct2TritonError, PreparedModelError, SettingError, VersionError
from ct2_triton.model_versions import record_of, serve_versions, served_versions
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.versions import check_place
from support.prepared import prepare_tiny

pytestmark = pytest.mark.usefixtures("short_proofs")


def _add(repository: Path, version: int = 2, **options: object) -> None:
    prepare(PrepareOptions("demo", repository, as_version=version, **options))  # type: ignore[arg-type]


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    return prepare(PrepareOptions("demo", tmp_path / "repository")).directory


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


def test_the_new_version_has_a_record_and_the_old_one_stays(demo: Path) -> None:
    old, config = _files(demo), (demo / "config.pbtxt").read_text()
    _add(demo.parent)
    new = _files(demo)
    assert {name for name in new if name not in old} == {
        "2/ct2_model.json",
        *(f"2/model/{path.name}" for path in (demo / "1" / "model").iterdir()),
    }
    assert [name for name in old if new[name] != old[name]] == ["config.pbtxt"]
    assert (demo / "config.pbtxt").read_text().startswith(config)
    assert served_versions(demo, (1, 2)) == (1,)
    record = record_of(demo, 2)
    assert record["model_version"] == 2
    assert set(record["files"]) == {f"model/{path.name}" for path in (demo / "2/model").iterdir()}
    assert [path.name for path in demo.parent.iterdir()] == ["demo"]
    assert [path.name for path in demo.parent.parent.iterdir()] == ["repository"]


def test_a_version_is_added_to_a_model_in_another_file_system(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def between_file_systems(path: Path, target: Path) -> Path:
        if demo in target.parents and demo not in path.parents:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(path, target)

    (demo / "2.copy").mkdir()  # of a killed process
    monkeypatch.setattr(Path, "rename", between_file_systems)
    _add(demo.parent)
    monkeypatch.undo()
    verify(demo)
    assert sorted(path.name for path in demo.iterdir() if path.is_dir()) == ["1", "2", "tokenizer"]
    assert [path.name for path in demo.parent.parent.iterdir()] == ["repository"]


def test_damage_is_found_in_each_version(demo: Path) -> None:
    _add(demo.parent)
    assert verify(demo) == [f"{demo / 'config.pbtxt'} has changed since the model was prepared"]
    weights = demo / "2" / "model" / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(PreparedModelError, match=r"demo/2 .*model/model\.bin has changed"):
        verify(demo)
    shutil.rmtree(demo / "2")
    verify(demo)
    _add(demo.parent)
    shutil.rmtree(demo / "1")
    verify(demo)
    serve_versions(demo, [2])
    _add(demo.parent, 1)
    assert record_of(demo, 1)["model_version"] == 1
    verify(demo)
    (demo / "tokenizer" / "sentencepiece.bpe.model").unlink()
    with pytest.raises(PreparedModelError, match="tokenizer/sentencepiece.bpe.model is missing"):
        verify(demo)


def test_a_policy_of_the_owner_is_kept(demo: Path) -> None:
    config = demo / "config.pbtxt"
    with config.open("a") as file:
        file.write("version_policy { specific { versions: [1] } }\n")
    before = config.read_bytes()
    _add(demo.parent)
    assert config.read_bytes() == before
    with pytest.raises(VersionError, match="has a version_policy that ct2-models did not write"):
        serve_versions(demo, [2])


@pytest.mark.parametrize(
    "policy", ["all {}", "latest {num_versions: 2}", "specific {versions: [1, 2]}"]
)
def test_a_policy_that_would_serve_the_new_version_at_once_is_refused(
    demo: Path, policy: str
) -> None:
    config = demo / "config.pbtxt"
    prepared = config.read_text()
    config.write_text(f"{prepared}version_policy {{ {policy} }}\n")
    options = PrepareOptions("demo", demo.parent, as_version=2)
    with pytest.raises(VersionError, match="would have version 2 served at once: .* versions: .1."):
        check_place(demo, options)  # before the conversion
    with pytest.raises(VersionError, match="would have version 2 served at once"):
        prepare(options)
    config.write_text(f"{prepared}version_policy {{ specific {{ versions: [1] }} }}\n")
    prepare(options)
    assert served_versions(demo, (1, 2)) == (1,)


def test_a_config_that_cannot_be_read_is_told_before_the_conversion(demo: Path) -> None:
    options = PrepareOptions("demo", demo.parent, as_version=2)
    config = demo / "config.pbtxt"
    prepared = config.read_bytes()
    config.write_bytes(prepared + b"of_a_newer_triton: 1\n")
    check_place(demo, options)
    for damage, text in ((b"# \xff\n", "cannot read"), (b"input [\n", "not a model configuration")):
        config.write_bytes(prepared + damage)
        with pytest.raises(VersionError, match=text):
            check_place(demo, options)


def test_lines_behind_the_written_policy_are_not_lost(demo: Path) -> None:
    serve_versions(demo, [1])
    with (demo / "config.pbtxt").open("a") as file:
        file.write('parameters { key: "beam_size" value { string_value: "2" } }\n')
    before = (demo / "config.pbtxt").read_bytes()
    with pytest.raises(VersionError, match="move them to the top"):
        serve_versions(demo, [1, 2])
    assert (demo / "config.pbtxt").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"version": 1}, VersionError, "has a version 1 already, and no .* the next is 2"),
        ({"name": "nowhere"}, VersionError, "nothing to add version 2 to"),
        ({"version": 0}, SettingError, "0 is not a version"),
        (
            {"version": 2**63},
            SettingError,
            "is not a version: .* to 9223372036854775807",
        ),
        ({"force": True}, SettingError, "--as-version replaces nothing"),
        ({"io": "both"}, SettingError, "say --io ids"),
        ({"io": "stream"}, SettingError, "--io stream writes several models; .* say --io ids"),
        ({"io": "text"}, VersionError, "the input tensors are INPUT_IDS, .*DRAFT_IDS there"),
        ({"settings": {"beam_size": "3"}}, VersionError, "beam_size is '1' in .* and '3' here"),
    ],
)
def test_refusals_change_nothing(
    demo: Path, options: dict[str, object], error: type[Ct2TritonError], text: str
) -> None:
    before = _files(demo)
    with pytest.raises(error, match=text):
        _add(demo.parent, **options)  # type: ignore[arg-type]
    assert _files(demo) == before
    assert [path.name for path in demo.parent.iterdir()] == ["demo"]
    _add(demo.parent)


def test_another_model_is_told_apart(demo: Path) -> None:
    with pytest.raises(VersionError) as raised:
        prepare_tiny("m2m100", demo.parent, "demo", as_version=2)
    text = str(raised.value)
    for part in (
        "family is 'nllb' there and 'm2m100' here",
        "it lacks the languages eng_Latn",
        "tokenizer/sentencepiece.bpe.model differs",
        "shared_vocabulary.json differs",
    ):
        assert part in text
    assert not (demo / "2").exists()


def test_a_language_with_other_ids_is_told(demo: Path) -> None:
    file = demo / "tokenizer" / "languages.json"
    content = json.loads(file.read_text())
    content["languages"][0]["aliases"] = []
    content["languages"].append({**content["languages"][0], "code": "xxx_Latn"})
    file.write_text(json.dumps(content))
    first = content["languages"][0]["code"]
    with pytest.raises(VersionError) as raised:
        _add(demo.parent)
    assert f"it lacks the languages xxx_Latn; these languages have other ids or names: {first}" in (
        str(raised.value)
    )
