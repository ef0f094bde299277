# SPDX-License-Identifier: Apache-2.0
"""A lock file that the system releases when its process ends, however that happens."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def exclusive(path: Path, refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Hold a lock file while the block runs, and remove it afterwards.

    Where another process holds it, what `refuse` makes of a text is raised.
    """
    import filelock

    lock = filelock.FileLock(path, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise refuse(_owner(path)) from error
    try:
        with suppress(OSError):  # on Windows a locked file cannot be written
            path.write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        # Before the release: filelock does not take a lock whose file is gone.
        with suppress(OSError):
            path.unlink()
        lock.release()


def _owner(path: Path) -> str:
    try:
        return f"process {int(path.read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        return "process unknown"
