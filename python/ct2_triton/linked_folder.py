# SPDX-License-Identifier: Apache-2.0
"""Folders of links in the user's cache, for libraries that must find each other side by side.

A wheel cannot carry links, and CTranslate2's library has another file name in every release; what
depends on it asks the loader for one fixed name beside itself. So a folder that has the files under
the names they look for is put together on the machine it is used on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path


def user_cache() -> Path:
    """The cache folder of ct2-triton: under XDG_CACHE_HOME, else under ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME")
    return Path(root if root else Path.home() / ".cache") / "ct2-triton"


def linked_folder(parent: Path, links: dict[str, Path]) -> Path:
    """Make a folder of links, or find it made.

    Its name is a key of the identity of all files it points to; it is built aside and renamed, and
    so is safe when two processes start at once.

    Args:
        parent: Folder to keep it in; made where it is missing.
        links: Relative path in the folder, to the file or folder it points to.

    Returns:
        The folder.

    Raises:
        OSError: If it cannot be written.
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
        # Another process may have been quicker: its folder is as good as ours.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
