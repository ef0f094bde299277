# SPDX-License-Identifier: Apache-2.0
"""The wheel on an empty Debian machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.debian_root import ROOT, DebianRoot, make_root
from support.wheels import build_wheel, repaired

pytestmark = pytest.mark.server

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
    """The toolkit's wheel as a release has it."""
    folder = tmp_path_factory.mktemp("wheel")
    return repaired(build_wheel(ROOT, folder, build_dir="build/wheel-test"), folder / "repaired")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[DebianRoot]:
    made = make_root(tmp_path)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT / "python", tmp_path_factory.mktemp("client"))


def test_a_stranger_gets_a_translation_with_two_commands(
    root: DebianRoot, wheel: Path, client_wheel: Path
) -> None:
    assert "-manylinux_2_" in wheel.name  # what auditwheel can prove here
    root.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv")
    root.run("python3 -m venv /opt/user")
    root.environment["PATH"] = f"/opt/user/bin:{root.environment['PATH']}"
    places = {f"/opt/{path.name}": path for path in (wheel, client_wheel)}
    packages = f"/opt/{client_wheel.name} '/opt/{wheel.name}[server]'"
    root.run(f"pip install -q {packages}", places=places)
    serve = "cd /root && (ct2-serve demo >serve.log 2>&1 &)"
    answer = root.run(f"{serve}; {_ASK}", own_network=True)
    assert answer.splitlines() == ANSWER
