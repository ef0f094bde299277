# SPDX-License-Identifier: Apache-2.0
"""What each package and its extras take on disk, as they are installed in this environment.

A size is that of the packages that are needed, and of all that those need, without our own.
PyTorch counts as the build that is installed here: the CPU build after `make install`.

    python tools/installed_sizes.py
"""

from __future__ import annotations

import argparse
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = "ct2-triton"
CLIENT = "ct2-triton-client"
SERVER = "nvidia-pytriton"
# What is installed, and what for.
ROWS = (
    (CLIENT, "", "translate"),
    (CLIENT, "live", "translate, live captions"),
    (CLIENT, "gateway", "translate, LibreTranslate's API"),
    (CLIENT, "bulk", "translate large files"),
    (PACKAGE, "", "the engine and the client"),
    (PACKAGE, "server", "serve and translate"),
    (PACKAGE, "prepare", "prepare converted models"),
    (PACKAGE, "convert", "convert checkpoints"),
    (PACKAGE, "server,convert", "all of these"),
)


def needed(package: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """List the packages that one needs, of those that are installed.

    Args:
        package: Its name.
        extras: Extras of it that are wanted.

    Returns:
        Names in their canonical form, without this project's.
    """
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [(package, extras)]
    while waiting:
        name, wanted = waiting.pop()
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            chosen = any(
                requirement.marker is None or requirement.marker.evaluate({"extra": extra})
                for extra in (wanted or {""})
            )
            key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if chosen and key not in found and _is_installed(key[0]):
                found.add(key)
                waiting.append(key)
    return {name for name, _ in found} - {PACKAGE, CLIENT}


@cache
def size_of(package: str) -> int:
    """Sum up the files of an installed package, in bytes."""
    files = metadata.files(package) or ()
    paths = (file.locate() for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def table() -> str:
    """Write the table in Markdown."""
    lines = ["| package | for | MB | largest |", "|---|---|---:|---|"]
    for package, extras, meaning in ROWS:
        packages = needed(package, frozenset(filter(None, extras.split(","))))
        largest = sorted(packages, key=size_of, reverse=True)[:3]
        shown = ", ".join(f"{name} {size_of(name) / 1e6:.0f}" for name in largest)
        total = sum(map(size_of, packages)) / 1e6
        name = f"{package}[{extras}]" if extras else package
        lines.append(f"| `{name}` | {meaning} | {total:.0f} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(table())
