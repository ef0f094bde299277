# SPDX-License-Identifier: Apache-2.0
"""The wheel on an empty Debian machine, and in the CPU image, whose steps run in such a machine."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from support.debian_root import ROOT, DebianRoot, make_root
from support.wheels import build_wheel, repaired, run_program

pytestmark = [pytest.mark.server, pytest.mark.timeout(1200)]

SIZE_MB = 700
"""What the CPU image may take beside Debian itself. docs/releasing.md states it."""

ANSWER = [
    "deu_Latn  Der Fahrkartenschalter öffnet um 5:45 Uhr.",
    "fra_Latn  Le guichet ouvre à 5 h 45.",
]
_ASK = """
for attempt in $(seq 120); do
  if echo 'The ticket office opens at 5:45.' | \
      ct2-translate --model demo --from eng_Latn --to deu_Latn,fra_Latn 2>ask.log; then exit 0; fi
  sleep 1
done
cat ask.log serve.log >&2
exit 1
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a release has it."""
    folder = tmp_path_factory.mktemp("wheel")
    return repaired(build_wheel(ROOT, folder, build_dir="build/wheel-test"), folder / "repaired")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[DebianRoot]:
    made = make_root(tmp_path)
    yield made
    made.remove()


def test_a_stranger_gets_a_translation_with_two_commands(root: DebianRoot, wheel: Path) -> None:
    assert "-manylinux_2_" in wheel.name  # what auditwheel can prove here
    root.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv")
    root.run("python3 -m venv /opt/user")
    root.environment["PATH"] = f"/opt/user/bin:{root.environment['PATH']}"
    places = {f"/opt/{wheel.name}": wheel}
    root.run(f"pip install -q '/opt/{wheel.name}[server,client]'", places=places)
    serve = "cd /root && (ct2-serve demo >serve.log 2>&1 &)"
    answer = root.run(f"{serve}; {_ASK}", own_network=True)
    assert answer.splitlines() == ANSWER


class Image:
    """The last stage of a Dockerfile, built in a folder step by step, as a builder does."""

    def __init__(self, dockerfile: Path, root: DebianRoot, built: Path) -> None:
        steps = DockerfileParser(str(dockerfile)).structure
        last = max(i for i, step in enumerate(steps) if step["instruction"] == "FROM")
        self.root = root
        self.user = "0"
        self.entry_point: list[str] = []
        self.health_check: list[str] = []
        # Where a step looks into the stage before, or into the checkout.
        self._sources = {"build": built, "": ROOT}
        for step in steps[last + 1 :]:
            getattr(self, f"_{step['instruction'].lower()}")(step["value"])

    def _run(self, value: str) -> None:
        places = {}
        words = value.split()
        while words[0].startswith("--mount="):
            options = dict(part.split("=", 1) for part in words.pop(0)[8:].split(","))
            source = self._sources[options.get("from", "")]
            places[options["target"]] = source / options["source"].lstrip("/")
            value = value.split(maxsplit=1)[1]
        self.root.run(value, places=places)

    def _env(self, value: str) -> None:
        for word in value.split():
            name, text = word.split("=", 1)
            self.root.environment[name] = text.replace("$PATH", self.root.environment["PATH"])

    def _user(self, value: str) -> None:
        self.user = value

    def _entrypoint(self, value: str) -> None:
        self.entry_point = json.loads(value)

    def _healthcheck(self, value: str) -> None:
        self.health_check = json.loads(value.split("CMD", 1)[1].replace("\\\n", ""))

    def _comment(self, value: str) -> None:
        """Not a step."""

    _workdir = _expose = _comment


def _megabytes(folder: Path) -> int:
    return int(run_program(Path("/usr/bin/du"), "-sm", folder).stdout.split()[0])


def test_the_cpu_image_serves_as_an_ordinary_user_on_a_read_only_root(
    root: DebianRoot, wheel: Path, tmp_path: Path
) -> None:
    """What its build stage does is one `pip wheel`, made here; all of the last stage runs."""
    wheels = tmp_path / "build" / "wheels"
    wheels.mkdir(parents=True)
    shutil.copy(wheel, wheels)
    before = _megabytes(root.folder)
    image = Image(ROOT / "docker" / "Dockerfile", root, built=tmp_path)
    assert _megabytes(root.folder) - before < SIZE_MB
    models = tmp_path / "models"
    run_program(Path(sys.executable).with_name("ct2-prepare"), "demo", "--model-repository", models)
    serve = f"({shlex.join(image.entry_point)} >serve.log 2>&1 &)"
    healthy = f"until {shlex.join(image.health_check)} 2>/dev/null; do sleep 1; done"
    answer = root.run(
        f"cd /tmp && {serve}; {healthy}; {_ASK}",
        user=image.user,
        places={"/models": models},
        read_only=True,
        own_network=True,
    )
    assert answer.splitlines() == ANSWER
