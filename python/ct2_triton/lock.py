# SPDX-License-Identifier: Apache-2.0
"""Files shared by processes: locks that end with their process, and atomic writes."""

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

    If another process holds it, the error that `refuse` makes from a text is raised.
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


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically, even if this process is killed or another one writes it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _owner(path: Path) -> str:
    try:
        return f"process {int(path.read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        return "process unknown"
