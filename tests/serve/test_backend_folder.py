# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ct2_triton import _core
from ct2_triton.engine_library import EngineLibrary, EngineLibraryError, find_engine_library
from ct2_triton.serve.backend_files import (
    BackendFiles,
    assemble,
    check_calls,
    find_backend_files,
    install_backend,
)
from ct2_triton.serve.errors import BackendFolderError, PluginMissingError
from ct2_triton.serve.installation import ServerInstallation, find_server
from support.builds import of_another_build
from support.commands import run


@pytest.fixture
def files(tmp_path: Path) -> BackendFiles:
    for name in (
        "plugin.so",
        "libct2triton_calls.so",
        "libctranslate2-1.so.4.8.5",
        "libgomp-2.so.1",
    ):
        (tmp_path / name).write_text(name)
    engine = EngineLibrary(tmp_path / "libctranslate2-1.so.4.8.5", (tmp_path / "libgomp-2.so.1",))
    return BackendFiles(tmp_path / "plugin.so", engine)


@pytest.fixture
def installation(tmp_path: Path) -> ServerInstallation:
    root = tmp_path / "server"
    (root / "backends" / "onnxruntime").mkdir(parents=True)
    (root / "backends" / "ctranslate2").mkdir()
    (root / "backends" / "ctranslate2" / "predecessor").touch()
    return ServerInstallation(
        root / "bin" / "tritonserver", root / "backends", root / "stubs", root / "caches"
    )


def test_our_backend_stands_beside_those_of_the_server(
    tmp_path: Path, files: BackendFiles, installation: ServerInstallation
) -> None:
    folder = assemble(installation, files, tmp_path / "cache").backends
    assert sorted(os.listdir(folder)) == ["ctranslate2", "onnxruntime"]
    ours = folder / "ctranslate2"
    assert sorted(os.listdir(ours)) == [
        "libct2triton_calls.so",
        "libctranslate2.so.4",
        "libgomp-2.so.1",
        "libtriton_ctranslate2.so",
    ]
    assert (ours / "libctranslate2.so.4").resolve() == files.engine.library
    assert (ours / "libtriton_ctranslate2.so").resolve() == files.plugin


def test_the_folder_is_kept_until_a_file_changes(
    tmp_path: Path, files: BackendFiles, installation: ServerInstallation
) -> None:
    first = assemble(installation, files, tmp_path / "cache")
    assert assemble(installation, files, tmp_path / "cache") == first
    files.plugin.write_text("another build")
    assert assemble(installation, files, tmp_path / "cache") != first


def test_two_at_once_get_the_same_folder_and_leave_no_rest(
    tmp_path: Path, files: BackendFiles, installation: ServerInstallation
) -> None:
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: assemble(installation, files, cache), range(32)))
    assert len(set(folders)) == 1
    assert os.listdir(cache / "backends") == [folders[0].backends.parent.name]


def test_the_python_backend_of_the_wheel_gets_the_stub_of_this_interpreter(
    tmp_path: Path, files: BackendFiles
) -> None:
    installation = find_server()
    if not installation.python_stubs.is_dir():
        pytest.skip("this server keeps its Python stub in the backend's folder")
    folder = assemble(installation, files, tmp_path / "cache").backends / "python"
    stub = (folder / "triton_python_backend_stub").resolve()
    version = ".".join(sys.version.split(".")[:2])
    assert stub == installation.python_stubs / version / "triton_python_backend_stub"
    assert (folder / "libtriton_python.so").is_file()


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, files: BackendFiles, installation: ServerInstallation
) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(BackendFolderError, match="XDG_CACHE_HOME"):
        assemble(installation, files, tmp_path / "cache")


def test_an_installed_backend_has_no_links(tmp_path: Path, files: BackendFiles) -> None:
    target = install_backend(tmp_path / "backends", files, replace=False)
    assert sorted(os.listdir(target)) == sorted(files.by_name())
    assert not any(path.is_symlink() for path in target.iterdir())
    assert os.listdir(tmp_path / "backends") == ["ctranslate2"]


def test_kernels_of_gpus_go_with_the_plugin_where_there_are_some(
    tmp_path: Path, files: BackendFiles
) -> None:
    assert "gpu_kernels.bin" not in files.by_name()
    files.plugin.with_name("gpu_kernels.bin").write_text("kernels")
    target = install_backend(tmp_path / "backends", files, replace=False)
    assert (target / "gpu_kernels.bin").read_text() == "kernels"


def test_the_core_has_the_kernels_of_gpus_beside_itself(tmp_path: Path) -> None:
    core = tmp_path / "site" / Path(_core.__file__).name
    kernels = core.parent / "backends" / "ctranslate2" / "gpu_kernels.bin"
    kernels.parent.mkdir(parents=True)
    kernels.write_text("kernels")
    shutil.copyfile(_core.__file__, core)
    asked = "from ct2_triton import _core; print(_core.__file__)"
    variables = {"CT2_TRITON_CORE": str(core), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = run(sys.executable, "-c", asked, **variables).stdout.strip()
    assert Path(found).with_name("gpu_kernels.bin").resolve() == kernels


def test_an_installed_backend_is_replaced_only_when_asked(
    tmp_path: Path, files: BackendFiles
) -> None:
    target = install_backend(tmp_path / "backends", files, replace=False)
    with pytest.raises(BackendFolderError, match="--force"):
        install_backend(tmp_path / "backends", files, replace=False)
    files.plugin.write_text("newer")
    install_backend(tmp_path / "backends", files, replace=True)
    assert (target / "libtriton_ctranslate2.so").read_text() == "newer"


def test_a_plugin_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CT2_TRITON_PLUGIN", "/nowhere/plugin.so")
    with pytest.raises(PluginMissingError, match="/nowhere/plugin.so"):
        find_backend_files()


def test_a_plugin_without_the_library_of_calls_is_named(tmp_path: Path) -> None:
    (tmp_path / "plugin.so").touch()
    with pytest.raises(PluginMissingError, match=r"libct2triton_calls.so is missing"):
        find_backend_files(tmp_path / "plugin.so")


def test_the_library_of_calls_opens_in_the_folder(tmp_path: Path) -> None:
    target = install_backend(tmp_path, find_backend_files(), replace=False)
    check_calls(target)
    (target / "libct2triton_calls.so").write_bytes(of_another_build(find_backend_files().calls))
    with pytest.raises(EngineLibraryError, match=r"is of ct2-triton .*, build 0{12}; install both"):
        check_calls(target)
    install_backend(tmp_path, find_backend_files(), replace=True)
    (target / "libctranslate2.so.4").unlink()
    with pytest.raises(EngineLibraryError, match=r"libctranslate2.so.4: cannot open"):
        check_calls(target)


def test_a_folder_without_the_engine_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(EngineLibraryError, match="pip install ctranslate2"):
        find_engine_library(tmp_path)


def test_two_engines_in_a_folder_are_one_too_many(tmp_path: Path) -> None:
    for name in ("libctranslate2-1.so.4.8.4", "libctranslate2-2.so.4.8.5"):
        (tmp_path / name).touch()
    with pytest.raises(EngineLibraryError, match="2 CTranslate2 libraries"):
        find_engine_library(tmp_path)
