# SPDX-License-Identifier: Apache-2.0
"""The wheel as a user gets it: built, installed in an environment of its own, run.

The environments lie under .venvs/ and borrow their dependencies from the one that runs the tests;
ct2-triton and ct2-triton-client themselves come from wheels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from ct2_triton.serve.http_probe import HttpProbe
from ct2_triton.serve.installation import find_server
from ct2_triton.serve.process import LoggedProcess
from server import configs
from support.ports import free_ports
from support.repository import write_model
from support.wheels import build_wheel, run_program

# Compiles the whole backend; more on a busy machine.
pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "ct2_triton/backends/ctranslate2/libtriton_ctranslate2.so"
# Starts a server from the installed package and says what its model's state is.
_SERVE = """
import sys
from pathlib import Path
import ct2_triton
from ct2_triton import _core
from ct2_triton.serve import ServerOptions, TritonServer
print(ct2_triton.__path__[0], _core.library_version())
with TritonServer(ServerOptions([Path(sys.argv[1])])) as server:
    print(*(state.state for state in server.model_states()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole wheel, with kernels of GPUs. Compiled incrementally in build/wheel-test."""
    images = tmp_path_factory.mktemp("images") / "kernels.bin"
    images.write_text("kernels")
    return build_wheel(
        ROOT,
        tmp_path_factory.mktemp("wheel"),
        build_dir="build/wheel-test",
        definition=f"CT2TRITON_GPU_IMAGES={images}",
    )


@pytest.fixture(scope="module")
def toolkit_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python toolkit alone."""
    return build_wheel(
        ROOT,
        tmp_path_factory.mktemp("wheel"),
        build_dir="build/toolkit-test",
        definition="CT2TRITON_BUILD_PLUGIN=OFF",
    )


def test_the_wheel_has_the_plugin_and_no_sources(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert PLUGIN in names
    assert PLUGIN.replace("libtriton_ctranslate2.so", "gpu_kernels.bin") in names
    assert any(name.startswith("ct2_triton/_core.") for name in names)
    assert [name for name in names if name.startswith("ct2_triton-") and "LICENSE" in name]
    assert not [name for name in names if name.endswith((".cc", ".h", ".a", ".ldscript"))]
    assert not [name for name in names if "libctranslate2" in name]


def test_the_wheel_serves_a_model(wheel: Path, tmp_path: Path, nllb_engine_model: Path) -> None:
    python = _environment("wheel", wheel)
    write_model(tmp_path / "repository", "nllb", nllb_engine_model)
    output = run_program(python, "-c", _SERVE, tmp_path / "repository").stdout
    package, version, state = output.split()
    assert Path(package).is_relative_to(python.parents[1])
    assert version.startswith("4.")
    assert state == "READY"


def test_an_installed_backend_runs_in_a_plain_server(
    wheel: Path, tmp_path: Path, nllb_engine_model: Path
) -> None:
    """The copy needs neither this package nor the ctranslate2 wheel."""
    python = _environment("wheel", wheel)
    target = tmp_path / "backends" / "ctranslate2"
    run_program(python.with_name("ct2-serve"), "--install-backend", target.parent)
    assert not any(path.is_symlink() for path in target.iterdir())
    calls = configs.full(decoding="calls")  # else CTranslate2 is opened for the first call only
    write_model(tmp_path / "repository", "nllb", nllb_engine_model, calls)
    ports = free_ports()
    command = [str(find_server().executable), f"--backend-directory={target.parent}"]
    command += [f"--model-repository={tmp_path / 'repository'}"]
    command += [f"--{name}-port={port}" for name, port in ports._asdict().items()]
    process = LoggedProcess(command, os.environ, None)
    try:
        probe = HttpProbe("127.0.0.1", ports.http)
        while not probe.is_ready():
            assert process.exit_code is None, "".join(process.log_lines())
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
    finally:
        process.stop(timeout_s=60)
    assert str(target / "libctranslate2.so.4") in mapped
    assert "ctranslate2.libs" not in mapped


def test_the_toolkit_installs_without_a_compiler(toolkit_wheel: Path) -> None:
    names = zipfile.ZipFile(toolkit_wheel).namelist()
    assert "ct2_triton/serve/cli.py" in names
    assert "ct2_triton/demo_model/model/model.bin" in names
    assert "ct2_triton/bench/sentences.txt" in names
    assert not [name for name in names if name.endswith(".so")]


def test_the_toolkit_says_that_the_plugin_is_missing(toolkit_wheel: Path, tmp_path: Path) -> None:
    python = _environment("toolkit", toolkit_wheel)
    result = run_program(
        python.with_name("ct2-serve"), "--model-repository", tmp_path, "--free-ports", expect=1
    )
    assert result.stderr.startswith("ct2-serve: this installation of ct2-triton has no Triton back")
    assert result.stderr.count("\n") == 1
    run_program(python, "-c", "import ct2_triton.client, ct2_triton.prepare, ct2_triton.serve")
    for command in ("ct2-bench", "ct2-prepare", "ct2-translate"):
        assert "0.1.0" in run_program(python.with_name(command), "--version").stdout


def test_the_toolkit_holds_the_demo_model(toolkit_wheel: Path, tmp_path: Path) -> None:
    python = _environment("toolkit", toolkit_wheel)
    repository = tmp_path / "repository"
    run_program(python.with_name("ct2-prepare"), "demo", "--model-repository", repository)
    assert (repository / "demo" / "config.pbtxt").is_file()


def test_a_failed_compile_fails_the_install(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("backend", "cmake", "python", "third_party"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # In a header that all know, so that nothing is compiled before it fails.
    with (source / "backend" / "src" / "error.h").open("a") as stream:
        stream.write("\n#error a mistake\n")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build_wheel(source, tmp_path, build_dir=str(tmp_path / "build"))
    assert "#error a mistake" in caught.value.stdout


def _environment(name: str, wheel: Path) -> Path:
    """Makes an environment with a wheel and the client's in it. Returns its interpreter."""
    folder = ROOT / ".venvs" / name
    venv.create(folder, clear=True, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    client = build_wheel(ROOT / "python", folder / "client")
    run_program(
        Path(sys.executable), "-m", "pip", "--python", python, "--disable-pip-version-check",
        "install", "--quiet", "--no-deps", "--no-index", client, wheel,
    )  # fmt: skip
    # As a plain path: the editable install's own hook in there is not run.
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python
