# SPDX-License-Identifier: Apache-2.0
"""A fresh Debian in a folder: the machine of a stranger, or the base of an image."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.debian_packages import debian_command

ROOT = Path(__file__).resolve().parents[2]
SUITE = "bookworm"
_BASE = ROOT / ".venvs" / f"debian-{SUITE}"
# How this machine reaches the network; a machine of a user's has its own.
_NETWORK = [
    "/etc/hosts", "/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt",
]  # fmt: skip
# A process space of its own: nothing that a command leaves behind outlives it.
_ISOLATED = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
_PASSED_ON = re.compile(r"PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)|.*_proxy", re.I)


def make_root(folder: Path) -> DebianRoot:
    """A fresh root of minimal Debian below this folder. Skips where it cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("a Debian root needs chroot, and chroot needs root")
    allowed = subprocess.run([*_ISOLATED, "true"], capture_output=True, text=True, check=False)
    if allowed.returncode:  # as in a container that was given no further rights
        pytest.skip(f"a Debian root needs mounts of its own: {allowed.stderr.strip()}")
    if not (_BASE / ".complete").is_file():
        _debootstrap(_BASE)
    root = folder / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", _BASE, root], check=True)
    for name in filter(os.path.exists, _NETWORK):
        target = root / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, target)
    return DebianRoot(root)


def _debootstrap(folder: Path) -> None:
    command = debian_command("debootstrap")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = ["--variant=minbase", "--include=ca-certificates", SUITE]
    log = subprocess.run(
        [command, *options, folder, *_mirror()], capture_output=True, text=True, check=False
    )
    assert log.returncode == 0, log.stdout[-2000:] + log.stderr[-2000:]
    (folder / ".complete").touch()


def _mirror() -> list[str]:
    """The archive that this machine uses, where it says one; else debootstrap's own."""
    for name in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"):
        if Path(name).is_file():
            found = re.search(
                r"^(?:URIs:|deb) +(https?://\S+/debian)/?\s", Path(name).read_text(), re.M
            )
            if found:
                return [found[1]]
    return []


@dataclass
class DebianRoot:
    """A folder that holds a system; commands run in it as on a machine of their own."""

    folder: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        }
    )

    def run(
        self,
        command: str,
        *,
        places: Mapping[str, Path] | None = None,
        own_network: bool = False,
    ) -> str:
        """Run a command of the shell, and all it starts, to its end; give what it prints.

        Args:
            command: As in a Dockerfile's RUN.
            places: Folders and files of this machine, by the path that they get inside.
            own_network: Whether it has a network of its own, where every port is free.
        """
        script = ["set -e", *self._mounts(places or {})]
        if own_network:
            script.append(f"{debian_command('ip', 'iproute2')} link set lo up")
        inside = [str(self.folder), "/bin/sh", "-e", "-c", command]
        script.append("exec chroot " + shlex.join(inside))
        isolated = [*_ISOLATED, "--net"] if own_network else _ISOLATED
        passed_on = {k: v for k, v in os.environ.items() if _PASSED_ON.fullmatch(k)}
        result = subprocess.run(
            [*isolated, "/bin/sh", "-c", "\n".join(script)],
            env={**passed_on, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def _mounts(self, places: Mapping[str, Path]) -> list[str]:
        root = shlex.quote(str(self.folder))
        lines = [f"mount --bind {root} {root}"]
        for inside, outside in places.items():
            target = self.folder / inside.lstrip("/")
            if outside.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch()
            lines.append(f"mount --bind {shlex.quote(str(outside))} {shlex.quote(str(target))}")
        lines.append(f"mount -t proc none {root}/proc")
        lines.append(f"mount --rbind /dev {root}/dev")
        return lines

    def remove(self) -> None:
        """Delete it."""
        subprocess.run(["rm", "-rf", "--one-file-system", self.folder], check=True)
