# SPDX-License-Identifier: Apache-2.0
"""A model is written whole or not at all, and never seen half written by a running server."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton.errors import ConversionError, OutputError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.writing import written_at_once
from ct2_triton.prepared_model import PreparedModel
from support.tiny import tiny_checkpoint

pytestmark = pytest.mark.usefixtures("short_proofs")


def write_file(output: Path, text: str, *, force: bool = False) -> None:
    with written_at_once(output, force=force) as folder:
        (folder / "file").write_text(text, encoding="utf-8")


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_the_folder_appears_at_the_end_and_nothing_else_stays(tmp_path: Path) -> None:
    output = tmp_path / "repository" / "m"
    with written_at_once(output, force=False) as folder:
        (folder / "file").write_text("new", encoding="utf-8")
        assert not output.exists()
        assert everything(tmp_path / "repository") == set()  # Triton loads every folder in it
    assert everything(tmp_path) == {"repository", "repository/m", "repository/m/file"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        with written_at_once(tmp_path / "repository" / "m", force=False) as folder:
            (folder / "file").write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(error):
        fail()
    assert everything(tmp_path) == set()


def test_a_failure_keeps_the_model_that_was_there(tmp_path: Path) -> None:
    output = tmp_path / "repository" / "m"
    write_file(output, "old")

    def fail() -> None:
        with written_at_once(output, force=True) as folder:
            (folder / "file").write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (output / "file").read_text(encoding="utf-8") == "old"
    assert everything(tmp_path) == {"repository", "repository/m", "repository/m/file"}


def test_an_interrupt_between_the_renames_puts_the_old_model_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "repository" / "m"
    write_file(output, "old")
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if target == output and path.parent.suffix == ".tmp" and path.name == "m":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(output, "new", force=True)
    assert (output / "file").read_text(encoding="utf-8") == "old"
    assert everything(tmp_path) == {"repository", "repository/m", "repository/m/file"}


def test_an_existing_model_is_replaced_only_with_force(tmp_path: Path) -> None:
    output = tmp_path / "m"
    write_file(output, "old")
    with pytest.raises(OutputError, match="--force"):
        write_file(output, "new")
    assert (output / "file").read_text(encoding="utf-8") == "old"
    write_file(output, "new", force=True)
    assert (output / "file").read_text(encoding="utf-8") == "new"


def test_a_repository_that_another_run_removed_is_made_again(tmp_path: Path) -> None:
    """A run that fails removes the repository that it made, if nothing is in it."""
    repository = tmp_path / "repository"
    with written_at_once(repository / "m", force=False) as folder:
        (folder / "file").touch()
        repository.rmdir()
    assert everything(tmp_path) == {"repository", "repository/m", "repository/m/file"}


_REPLACE = """
import sys
from pathlib import Path
from ct2_triton.prepare.writing import written_at_once
with written_at_once(Path(sys.argv[1]), force=True) as folder:
    (folder / "file").write_text("new", encoding="utf-8")
"""


def mounting(options: str, folder: Path) -> list[str]:
    """Returns the start of a command that mounts something, then runs what follows it."""
    script = f'mount {options} && exec "$@"'
    mount = ["unshare", "--mount", "sh", "-c", script, "sh"]
    able = subprocess.run([*mount, "true"], cwd=folder, capture_output=True, check=False)
    if able.returncode != 0:
        pytest.skip(f"mount {options} is not possible here: {able.stderr.decode().strip()}")
    return mount


def test_a_mounted_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    output = tmp_path / "repository" / "m"
    output.mkdir(parents=True)
    command = [*mounting("-t tmpfs none repository/m", tmp_path), sys.executable, "-c", _REPLACE]
    done = subprocess.run(
        [*command, str(output)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "OutputError" in done.stderr
    assert f"{output} is a mount point, which cannot be replaced" in done.stderr


def test_a_model_in_a_layer_of_an_image_is_replaced(tmp_path: Path) -> None:
    """Overlay file systems, which containers run on, rename no folder of a lower layer."""
    write_file(tmp_path / "image" / "repository" / "m", "old")
    for name in ("changes", "work", "root"):
        (tmp_path / name).mkdir()
    overlay = "-t overlay -o lowerdir=image,upperdir=changes,workdir=work none root"
    output = tmp_path / "root" / "repository" / "m"
    replace = [sys.executable, "-c", _REPLACE, str(output)]
    subprocess.run([*mounting(overlay, tmp_path), *replace], cwd=tmp_path, check=True)
    changed = tmp_path / "changes" / "repository"
    assert [path.name for path in changed.iterdir()] == ["m"]
    assert (changed / "m" / "file").read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize("force", [False, True])
def test_a_file_or_a_link_is_never_replaced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(OutputError, match="is not a folder"):
            write_file(tmp_path / name, "new", force=force)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot write to"):
        write_file(tmp_path / "file" / "repository" / "m", "new")


def test_a_repository_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent can be, where the model is written first. Root may write everywhere."""
    repository = tmp_path / "repository"
    repository.mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != repository and access(path, mode))
    with pytest.raises(OutputError, match=f"cannot write to {repository}: Permission denied"):
        prepare(PrepareOptions("demo", repository, name="m"))
    assert everything(tmp_path) == {"repository"}
    monkeypatch.undo()
    write_file(repository / "m", "new")


def test_an_existing_model_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "nothing-here").mkdir()
    (tmp_path / "repository" / "m").mkdir(parents=True)
    with pytest.raises(OutputError, match="exists already"):
        prepare(PrepareOptions(str(tmp_path / "nothing-here"), tmp_path / "repository", name="m"))


def started_command(repository: Path) -> subprocess.Popen[str]:
    """Starts the command and returns while it is converting the model."""
    command = "import sys; from ct2_triton.cli import prepare; sys.exit(prepare())"
    source = tiny_checkpoint("nllb")
    process = subprocess.Popen(
        [sys.executable, "-c", command, source, "--model-repository", repository, "--name", "m"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("ct2-prepare: converting"):
            return process
    raise AssertionError("the command ended before it converted the model")


def rest_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Waits for the end; gives the exit code and what else was printed."""
    assert process.stderr is not None
    with process.stderr as lines:
        rest = lines.read()
    return process.wait(timeout=600), rest


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_to_the_command_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """It comes while the model is being converted."""
    process = started_command(tmp_path / "repository")
    process.send_signal(number)
    found, rest = rest_of(process)
    # 1: the signal met the import of an extension module and came out as its failure, told so.
    assert found in (code, 1)
    assert "import" in rest if found == 1 else "Traceback" not in rest
    assert everything(tmp_path) == set()


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    output = tmp_path / "repository" / "m"
    process = started_command(output.parent)
    process.kill()
    rest_of(process)
    assert len(list(tmp_path.glob(".repository.m.????????.tmp"))) == 1
    others = tmp_path / ".repository.m.x.abcdefgh.tmp"  # of a model named m.x
    others.mkdir()
    write_file(output, "new")
    assert everything(tmp_path) == {"repository", "repository/m", "repository/m/file", others.name}


def test_a_second_run_names_the_first_and_leaves_it_alone(tmp_path: Path) -> None:
    output = tmp_path / "repository" / "m"
    process = started_command(output.parent)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(
        OutputError, match=rf"another ct2-prepare or ct2-models \(process {process.pid}\)"
    ):
        write_file(output, "second")
    write_file(output.with_name("other"), "a model of another name is free")
    process.send_signal(signal.SIGCONT)
    found, rest = rest_of(process)
    assert found == 0, rest
    assert PreparedModel.read(output).name == "m"
    assert {path.name for path in tmp_path.iterdir()} == {"repository"}
    write_file(output, "after it", force=True)
    assert (output / "file").read_text(encoding="utf-8") == "after it"


def test_force_replaces_a_prepared_model(tmp_path: Path) -> None:
    options = PrepareOptions(str(tiny_checkpoint("nllb")), tmp_path, name="m")
    prepare(options)
    (tmp_path / "m" / "stale").write_text("", encoding="utf-8")
    prepare(PrepareOptions(options.source, tmp_path, name="m", force=True, quantization="int16"))
    assert not (tmp_path / "m" / "stale").exists()
    assert PreparedModel.read(tmp_path / "m").manifest["conversion"]["quantization"] == "int16"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    def write_half() -> None:
        with written_at_once(tmp_path / "m", force=False) as folder:
            (folder / "file").write_text("half", encoding="utf-8")
            raise OSError(number, os.strerror(number))

    with pytest.raises(OutputError, match="no room for .*make some"):
        write_half()
    assert everything(tmp_path) == set()


def test_a_full_disk_within_the_conversion_is_told_as_one(tmp_path: Path) -> None:
    def convert() -> None:
        with written_at_once(tmp_path / "m", force=False):
            raise ConversionError("failed") from OSError(errno.ENOSPC, "full")

    with pytest.raises(OutputError, match="no room for .*: full; make some"):
        convert()
