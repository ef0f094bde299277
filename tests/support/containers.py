# SPDX-License-Identifier: Apache-2.0
"""Images and containers without a Docker engine: Debian's buildah, podman and runc.

Nothing is pulled: the base is a Debian of this machine's archive, under the name that
docker/Dockerfile gives. Images stay in build/containers, so that an unchanged step is not built
again. Containers have a network namespace of their own, in which every port is free.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.debian_packages import debian_packages
from support.debian_root import ROOT, make_root
from support.namespaces import Namespace, own_network

IMAGE = "localhost/ct2-triton:latest"
BASE = "docker.io/library/debian:bookworm-slim"
_KEPT = ROOT / "build" / "containers"
# A database in _KEPT holds this path: each checkout has its own, and always the same.
_STATE = Path("/run") / f"ct2-containers-{hashlib.sha256(bytes(ROOT)).hexdigest()[:8]}"
_CERTIFICATES = Path("/usr/local/share/ca-certificates")
_PACKAGES = (
    *("buildah", "podman", "runc", "catatonit", "iptables", "podman-compose"),
    "golang-github-containernetworking-plugin-dnsname",  # names of containers
)
# As the base of docker.io has it: what apt fetches and computes does not stay in an image.
_APT = """DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
_SETTINGS = """[containers]
default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{state}/tmp"
[network]
network_config_dir = "{state}/networks"
"""
_STORAGE = """[storage]
driver = "{driver}"
graphroot = "{kept}/storage"
runroot = "{state}/run"
"""


@dataclass(frozen=True)
class Engine:
    """Commands for images, containers, and programs on the network where the latter are."""

    network: Namespace

    def run(self, *command: object, check: bool = True, **variables: str) -> str:
        """Run a program on the containers' network; give what it prints."""
        with self.network.entered():
            return _run(*command, check=check, **variables)

    def podman(self, *arguments: object) -> str:
        """A command of podman."""
        return self.run("podman", *arguments).strip()

    def succeeds(self, *arguments: object) -> bool:
        """Whether a command of podman, such as a health check, ends with status 0."""
        quiet = ["sh", "-c", 'podman "$@" >/dev/null 2>&1 && echo yes', "sh"]
        return self.run(*quiet, *arguments, check=False) == "yes\n"

    def inspect(self, name: str, field: str) -> str:
        """What a container has in a field."""
        return self.podman("inspect", name, "--format", f"{{{{{field}}}}}")

    def address(self, name: str) -> str:
        """Where a container is on the network."""
        return self.inspect(name, "range .NetworkSettings.Networks}}{{.IPAddress}}{{end")

    def megabytes(self, image: str) -> int:
        """What an image takes, with its base."""
        return int(self.podman("image", "inspect", image, "--format", "{{.Size}}")) // 1_000_000

    def clear(self) -> None:
        """End and forget all but the images."""
        for command in (["pod", "rm"], ["rm"], ["volume", "rm"]):
            self.podman(*command, "--all", "--force")


@contextlib.contextmanager
def running_engine() -> Iterator[Engine]:
    """One with the base. Skips where it cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("containers are run as root here, on a network of their own")
    debian_packages(*_PACKAGES)
    _configure()
    with own_network("containers") as network:
        engine = Engine(network)
        if not engine.succeeds("image", "exists", BASE):
            _make_base()
        trial = ["sh", "-c", 'podman "$@" 2>&1 || true', "sh", "run", "--rm", BASE, "echo", "runs"]
        said = engine.run(*trial).strip().splitlines()
        if said[-1:] != ["runs"]:  # as in a container that was given no further rights
            pytest.skip(f"podman runs no container here: {' '.join(said[-2:])}")
        try:
            yield engine
        finally:
            engine.clear()


def build_image() -> None:
    """The image of docker/Dockerfile, from this checkout."""
    options = ["--isolation", "chroot", "--layers", "--pull-never", "--network", "host"]
    _run("buildah", "bud", *options, "--format", "docker", "--file", "docker/Dockerfile",
         "--tag", IMAGE, ".")  # fmt: skip


def add_image(name: str, program: Path, place: str) -> None:
    """An image of a single program beside the base."""
    container = _run("buildah", "from", "--pull-never", BASE).strip()
    _run("buildah", "add", "--quiet", container, program, place)
    _run("buildah", "config", "--entrypoint", f'["{place}"]', "--cmd", "", container)
    _run("buildah", "commit", "--quiet", "--rm", container, name)


def _make_base() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = make_root(Path(name))
        inside = root.folder / _CERTIFICATES.relative_to("/")
        if _CERTIFICATES.is_dir():
            shutil.copytree(_CERTIFICATES, inside, dirs_exist_ok=True)
        root.run("rm -rf /var/cache/apt/* /var/lib/apt/lists/*")
        (root.folder / "etc/apt/apt.conf.d/docker-clean").write_text(_APT)
        archive = Path(name) / "base.tar"
        _run("tar", "-C", root.folder, "-cf", archive, ".")
        container = _run("buildah", "from", "scratch").strip()
        _run("buildah", "add", "--quiet", container, archive, "/")
        _run("buildah", "commit", "--quiet", "--rm", container, BASE)


def _configure() -> None:
    _KEPT.mkdir(parents=True, exist_ok=True)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    nested = _run("stat", "-f", "-c", "%T", _KEPT).strip() == "overlayfs"
    (_KEPT / "containers.conf").write_text(_SETTINGS.format(files=files, state=_STATE))
    (_KEPT / "storage.conf").write_text(
        _STORAGE.format(driver="vfs" if nested else "overlay", kept=_KEPT, state=_STATE)
    )


def _run(*command: object, check: bool = True, **variables: str) -> str:
    line = list(map(str, command))
    settings = {
        "CONTAINERS_CONF": str(_KEPT / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(_KEPT / "storage.conf"),
    }
    done = subprocess.run(
        line, env={**os.environ, **settings, **variables}, cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not check or not done.returncode, f"{line}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout
