# SPDX-License-Identifier: Apache-2.0
"""Files shared by processes: locks that end with their process, atomic writes, folders of links.

A wheel cannot contain links, and CTranslate2's library has another file name in every release,
while libraries that depend on it load one fixed name from their own folder. So a folder with the
names that are loaded is assembled in the user's cache, on each machine. A repository of the models
that a command names is such a folder, too.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


def user_cache() -> Path:
    """Find the cache folder of ct2-triton, under XDG_CACHE_HOME or ~/.cache.

    A user without a home (such as a container's user without a name) has a private temporary
    folder.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    if root:
        return Path(root) / "ct2-triton"
    try:
        return Path.home() / ".cache" / "ct2-triton"
    except RuntimeError:  # neither HOME nor an entry in /etc/passwd
        return _private_folder(Path(tempfile.gettempdir()) / f"ct2-triton-{os.getuid()}")


def _private_folder(folder: Path) -> Path:
    """Make a folder that only this user can write to, because libraries are loaded from it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    is_private = status.st_uid == os.getuid() and not status.st_mode & 0o077
    if not stat.S_ISDIR(status.st_mode) or not is_private:
        raise PermissionError(
            errno.EPERM, "not a folder of this user alone; set XDG_CACHE_HOME", str(folder)
        )
    return folder


def linked_folder(parent: Path, links: dict[str, Path]) -> Path:
    """Return a folder of links in a parent, made if necessary; the keys are relative paths in it.

    Its name is a hash of the identities of the linked files. It is built under another name and
    then renamed, so two processes can do this at the same time.
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
        # Another process made it first, with the same content.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
