# SPDX-License-Identifier: Apache-2.0
"""What is dear to make and kept in build/: several processes of a run need it at once."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path


def made_once(place: Path, make: Callable[[Path], object]) -> Path:
    """A file or folder, which `make` makes at the path that it is given unless it is there.

    One process makes it, and the others wait. Nobody sees a part of it.
    """
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
                new = Path(scratch) / place.name
                make(new)
                new.rename(place)
    return place
