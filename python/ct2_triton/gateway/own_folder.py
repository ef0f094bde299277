# SPDX-License-Identifier: Apache-2.0
"""The temporary folder of translated files; also removes those of killed gateways."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "ct2-gateway-"
_NEW_S = 60.0  # seconds in which a new folder may not be locked yet


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a new folder that is locked while this process or one that it starts lives.

    Folders of the same user whose processes ended without removing them are removed.
    """
    _remove_stale()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, _locked(Path(folder)):
        yield Path(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, not through a link; raise OSError if another process has locked it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def _remove_stale() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another gateway uses it, or it was removed
            state = folder.lstat()
            if state.st_uid != os.geteuid() or time.time() - state.st_mtime < _NEW_S:
                continue
            with _locked(folder):
                shutil.rmtree(folder, ignore_errors=True)
