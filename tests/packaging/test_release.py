# SPDX-License-Identifier: Apache-2.0
"""What a release publishes, and the workflows that do it, as far as they run without GitHub."""

from __future__ import annotations

import email
import os
import re
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from rattler_build import Stage0Recipe

import ct2_triton
from support.checkout import git
from support.wheels import build_wheel, run_program

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "deploy/conda/recipe.yaml"
PROGRAMS = Path(sys.executable).parent

SCHEMAS = {
    ".github/ISSUE_TEMPLATE/bug.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    ".github/ISSUE_TEMPLATE/idea.yml": "github-issue-forms",
    ".github/dependabot.yml": "dependabot",
    ".github/workflows/release.yml": "github-workflows",
    ".github/workflows/site.yml": "github-workflows",
    ".github/workflows/test.yml": "github-workflows",
    ".github/workflows/wheels.yml": "github-workflows",
    "CITATION.cff": "citation-file-format",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What tools/build_dist.sh makes: the source distribution, and two wheels."""
    folder = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "PYTHON": sys.executable}
    options = ["--no-isolation", "--skip-dependency-check"]
    run_program(ROOT / "tools/build_dist.sh", folder, *options, environment=environment)
    return folder


@pytest.fixture(scope="module")
def toolkit(dist: Path) -> zipfile.ZipFile:
    (wheel,) = dist.glob("ct2_triton-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    return zipfile.ZipFile(wheel)


@pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())
def test_github_can_read(name: str, schema: str) -> None:
    run_program(PROGRAMS / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", ROOT / name)


def test_every_file_for_github_is_checked() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.yml")}
    assert files <= set(SCHEMAS)


def test_a_package_index_takes_all(dist: Path) -> None:
    output = run_program(PROGRAMS / "twine", "check", "--strict", *sorted(dist.iterdir())).stdout
    assert output.count("PASSED") == 3


def test_links_of_the_readme_work_on_a_package_index(toolkit: zipfile.ZipFile) -> None:
    (name,) = [name for name in toolkit.namelist() if name.endswith("METADATA")]
    text = email.message_from_bytes(toolkit.read(name)).get_payload()
    links = re.findall(r"\]\(([^)]+)\)", str(text))
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_the_toolkit_runs_anywhere(toolkit: zipfile.ZipFile) -> None:
    assert [name for name in toolkit.namelist() if name.endswith((".so", ".pyd"))] == []


def test_the_source_distribution_builds(dist: Path, tmp_path: Path) -> None:
    """It has all that is compiled; what it compiles to is what the checkout compiles to."""
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for folder in ("backend", "cmake", "python", "third_party"):
        missing = [name for name in git("ls-files", folder) if not (source / name).is_file()]
        assert missing == []
    wheel = build_wheel(
        source,
        tmp_path / "wheel",
        build_dir=str(tmp_path / "build"),
        definition="CT2TRITON_BUILD_PLUGIN=OFF",
    )
    assert "ct2_triton/serve/cli.py" in zipfile.ZipFile(wheel).namelist()


def test_the_source_distribution_has_what_the_backend_is_made_of(
    dist: Path, tmp_path: Path
) -> None:
    """CMake stops at a source that is not there."""
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    output = run_program(
        *(PROGRAMS / "cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja"),
        *("-D", "CT2TRITON_BUILD_PLUGIN=ON", "-D", f"Python_EXECUTABLE={sys.executable}"),
        f"-DCMAKE_PREFIX_PATH={sysconfig.get_paths()['purelib']}",
        f"-DCMAKE_MAKE_PROGRAM={PROGRAMS / 'ninja'}",
    ).stdout
    assert "Generating done" in output


def test_wheels_are_built_for_each_python_that_is_promised() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    promised = re.findall(r"Python :: 3\.(\d+)", project)
    output = run_program(
        PROGRAMS / "cibuildwheel", "--platform", "linux", "--print-build-identifiers", ROOT
    ).stdout
    assert output.split() == [f"cp3{minor}-manylinux_x86_64" for minor in promised]


def test_one_name_of_the_repository() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    found = re.search(r'^Repository = "https://github\.com/([^"]+)"$', project, re.M)
    assert found is not None
    files = ["pyproject.toml", "CITATION.cff", "SECURITY.md", "mkdocs.yml", RECIPE, *SCHEMAS]
    for name in files:
        for mention in re.findall(r"github(?:usercontent)?\.com/(ct2-triton/[\w-]+)", _text(name)):
            assert mention == found[1], name


def test_the_conda_recipe_follows_the_package() -> None:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
    (rendered,) = Stage0Recipe.from_file(str(ROOT / RECIPE)).render()
    recipe = rendered.recipe.to_dict()
    project = tomllib.loads(_text("pyproject.toml"))
    client = tomllib.loads(_text("python/pyproject.toml"))["project"]
    assert recipe["package"]["version"] == ct2_triton.__version__
    scripts = sorted((project["project"]["scripts"] | client["scripts"]).items())
    assert recipe["build"]["python"]["entry_points"] == [f"{a} = {b}" for a, b in scripts]
    python, engine, *needed = (text.replace(" ", "") for text in recipe["requirements"]["run"])
    assert python == f"python{project['project']['requires-python']}"
    assert engine in project["project"]["dependencies"]
    assert needed
    assert set(needed) <= set(client["dependencies"])
    host = " ".join(recipe["requirements"]["host"])
    for tool in ("scikit-build-core", "hatch-fancy-pypi-readme"):
        (asked,) = [t for t in project["build-system"]["requires"] if t.startswith(tool)]
        assert asked.replace(">=", " >=") in host


def test_images_follow_the_rules_of_their_trade() -> None:
    run_program(PROGRAMS / "hadolint", *sorted((ROOT / "docker").glob("Dockerfile*")))


def _text(name: str) -> str:
    return (ROOT / name).read_text()
