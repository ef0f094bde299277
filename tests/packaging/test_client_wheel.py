# SPDX-License-Identifier: Apache-2.0
"""The wheel of the client, in an environment with the packages that its metadata names."""

from __future__ import annotations

import re
import shutil
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import ct2_triton
from ct2_triton.prepare import PrepareOptions, prepare
from installed_sizes import CLIENT, needed
from support.checkout import ROOT, git, needs_git
from support.servers import ServerStack
from support.wheels import build_wheel, run_program

ENGLISH = "The ticket office opens at 5:45."
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."
# Ends with an error at a module that cannot be imported.
_IMPORT = """
import importlib, pkgutil, sys
import ct2_triton
for module in pkgutil.walk_packages(ct2_triton.__path__, "ct2_triton."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(ct2_triton.__file__, "ctranslate2" in sys.modules)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT / "python", tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(
        ROOT,
        tmp_path_factory.mktemp("toolkit"),
        build_dir="build/toolkit-test",
        definition="CT2TRITON_BUILD_PLUGIN=OFF",
    )


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with links to the packages that it needs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in needed(CLIENT, frozenset({"live", "gateway", "bulk"})):
        for file in metadata.files(package) or ():
            link = site / file.parts[0]
            if file.parts[0] != ".." and not link.exists():
                link.symlink_to(metadata.distribution(package).locate_file(file.parts[0]))
    shutil.unpack_archive(wheel, site, "zip")
    return folder / "bin"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("models")
    prepare(PrepareOptions("demo", repository, settings={"compute_type": "float32"}, io="both"))
    return repository


@pytest.fixture(scope="module")
def url(models: Path) -> Iterator[str]:
    with ServerStack() as stack:
        yield stack.start(models).grpc_url


def _files(wheel: Path) -> set[str]:
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def test_any_system_can_install_it(wheel: Path) -> None:
    assert wheel.name == f"ct2_triton_client-{ct2_triton.__version__}-py3-none-any.whl"


@needs_git
def test_each_file_of_the_package_is_in_one_of_the_wheels(wheel: Path, toolkit: Path) -> None:
    ours, theirs = _files(wheel), _files(toolkit)
    assert ours & theirs == set()
    tracked = {name.removeprefix("python/") for name in git("ls-files", "python/ct2_triton")}
    assert ours | theirs == {*tracked, "ct2_triton/LICENSE"}


def test_the_toolkit_needs_the_client_of_its_version(toolkit: Path) -> None:
    archive = zipfile.ZipFile(toolkit)
    (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    found = re.findall(rf"^Requires-Dist: {CLIENT}==(.+)$", archive.read(name).decode(), re.M)
    assert found == [ct2_triton.__version__]


def test_every_module_imports_without_the_engine(programs: Path) -> None:
    place, engine = run_program(programs / "python", "-c", _IMPORT).stdout.split()
    assert Path(place).is_relative_to(programs.parent)
    assert engine == "False"


@pytest.mark.server
@pytest.mark.parametrize("model", ["demo", "demo-text"])
def test_it_translates(model: str, programs: Path, url: str, models: Path, tmp_path: Path) -> None:
    """With ids that it makes of the text itself, and with text."""
    text = tmp_path / "text"
    text.write_text(f"{ENGLISH}\n")
    command = ["-m", "ct2_triton", "translate", "--url", url, "--model", model, str(text)]
    if model == "demo":
        command += ["--tokenizer", str(models / "demo" / "tokenizer")]
    done = run_program(programs / "python", *command, "--from", "en", "--to", "de", "-q")
    assert done.stdout == f"{GERMAN}\n"


@pytest.mark.parametrize("command", ["serve", "prepare", "models", "bench"])
def test_a_command_of_the_toolkit_names_its_package(command: str, programs: Path) -> None:
    done = run_program(programs / "python", "-m", "ct2_triton", command, "--version", expect=1)
    assert done.stderr == f"ct2-{command} is of another package: pip install ct2-triton\n"
    assert ct2_triton.__version__ in run_program(
        programs / "python", "-m", "ct2_triton", "translate", "--version"
    ).stdout  # fmt: skip
