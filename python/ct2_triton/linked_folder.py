# SPDX-License-Identifier: Apache-2.0
"""Folders of links in the user's cache: libraries, or models, that must stand side by side.

A wheel cannot carry links, and CTranslate2's library has another file name in every release; what
depends on it asks the loader for one fixed name beside itself. So a folder that has the files under
the names they load is assembled on the machine that uses it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path


def user_cache() -> Path:
    """Find the cache folder of ct2-triton, under XDG_CACHE_HOME or ~/.cache.

    A user without a home (a container that runs under a number only) has a private folder among the
    temporary files.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    if root:
        return Path(root) / "ct2-triton"
    try:
        return Path.home() / ".cache" / "ct2-triton"
    except RuntimeError:  # neither HOME nor an entry in the list of users
        return _private_folder(Path(tempfile.gettempdir()) / f"ct2-triton-{os.getuid()}")


def _private_folder(folder: Path) -> Path:
    """Make a folder that only this user can write to: libraries are loaded from it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    is_private = status.st_uid == os.getuid() and not status.st_mode & 0o077
    if not stat.S_ISDIR(status.st_mode) or not is_private:
        raise PermissionError(
            errno.EPERM, "not a folder of this user alone; set XDG_CACHE_HOME", str(folder)
        )
    return folder


def linked_folder(parent: Path, links: dict[str, Path]) -> Path:
    """Make a folder of links in a parent, or find it made; the keys are relative paths in it.

    Its name is a key of the identity of all files it points to; it is built aside and renamed, and
    so is safe when two processes start at once.
    """
    folder = parent / _key(links)
    if not folder.exists():
        parent.mkdir(parents=True, exist_ok=True)
        _build(parent, folder, links)
    return folder


def _key(links: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, target in sorted(links.items()):
        status = target.stat()
        identity = (name, str(target), status.st_ino, status.st_size, status.st_mtime_ns)
        digest.update(repr(identity).encode())
    return digest.hexdigest()[:16]


def _build(parent: Path, folder: Path, links: dict[str, Path]) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    try:
        for name, target in links.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).symlink_to(target.absolute())
        temporary.chmod(0o755)
        temporary.rename(folder)
    except OSError:
        # Another process may have been quicker: its folder has the same content.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
