# SPDX-License-Identifier: Apache-2.0
"""Files to translate, of which only the texts change, and the store of translated files.

Its temporary folder is locked; folders of killed gateways are removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import shutil
import tempfile
import time
import unicodedata
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.errors import ClientError
from ct2_triton.gateway.refusals import Refusal
from ct2_triton.subtitles import SUFFIXES as SUBTITLES
from ct2_triton.subtitles import read_subtitles, write_subtitles
from ct2_triton.terms.html_parts import blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Compose = Callable[[Sequence[str]], str]

HTML = (".html", ".htm")
SUFFIXES = (".txt", *HTML, *SUBTITLES)
"""Suffixes of the files that can be translated."""
_KEPT_S = 1800.0
_MOST_BYTES = 1 << 28  # of all stored files; beyond it the oldest are removed
_NAME = re.compile(r"[0-9a-f]{32}\.[^/\\]+")
_LONGEST_NAME = 255  # bytes, on most systems
_LONGEST_STEM = 150  # bytes
_UNSAFE = re.compile(r'[\x00-\x1f\x7f\ud800-\udfff"\\/:*?<>|;%\s]+')
_ENDS_OF_LINES = re.compile(r"(\r\n|\r|\n)")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class TextFile:
    """The texts of a file, and how to replace them.

    Attributes:
        name: The file's name.
        texts: The texts.
        format: Format of the texts: `text` or `html`.
        compose: Returns the file with other texts.
    """

    name: str
    texts: Sequence[str]
    format: str
    compose: Compose

    def name_in(self, language: str) -> str:
        """Return the name of its translation, like LibreTranslate's."""
        path = Path(self.name)
        stem = _UNSAFE.sub("_", unicodedata.normalize("NFC", path.stem))
        stem = stem.encode()[:_LONGEST_STEM].decode(errors="ignore")
        return f"{stem}_{language}{path.suffix.lower()}"


def read_file(name: str, content: bytes) -> TextFile:
    """Read the texts of a file."""
    name = name.replace("\\", "/").rpartition("/")[2]
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise Refusal(
            400,
            f"Invalid request: file format not supported: {name[:80]!r}; there is "
            + ", ".join(SUFFIXES),
        )
    if suffix in SUBTITLES:
        return _read_subtitles(name, suffix, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(400, f"Invalid request: {name[:80]!r} is not in UTF-8: {error}") from error
    if suffix in HTML:
        return TextFile(name, blocks(text), "html", "".join)
    lines = _ENDS_OF_LINES.split(text)

    def compose(texts: Sequence[str]) -> str:
        lines[::2] = texts
        return "".join(lines)

    return TextFile(name, lines[::2], "text", compose)


def _read_subtitles(name: str, suffix: str, content: bytes) -> TextFile:
    def parsed(folder: str) -> tuple[Path, list[str]]:
        path = Path(folder, f"subtitles{suffix}")
        path.write_bytes(content)
        try:
            return path, [text for text, _ in read_subtitles(path)]
        except ClientError as error:
            said = str(error).replace(str(path), repr(name[:80]))
            raise Refusal(400, f"Invalid request: {said}") from error

    def compose(texts: Sequence[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path, _ = parsed(folder)
            output = Path(folder, "output")
            write_subtitles(path, texts, output, suffix)
            return output.read_text(encoding="utf-8")

    with tempfile.TemporaryDirectory() as folder:
        return TextFile(name, parsed(folder)[1], "text", compose)


class Shelf:
    """A folder of translated files to download, shared by the processes."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder."""
        self._folder = folder

    async def put(self, name: str, text: str) -> str:
        """Store a file, remove old ones, and return the name for the download."""
        kept = f"{uuid.uuid4().hex}.{name}"
        await asyncio.to_thread(self._put, kept, text)
        return kept

    def find(self, kept: str) -> tuple[Path, str] | None:
        """Find a file that has not expired: its path, and its original name."""
        path = self._folder / kept
        is_name = len(kept.encode(errors="replace")) <= _LONGEST_NAME and _NAME.fullmatch(kept)
        if not is_name or not path.is_file():
            return None
        with contextlib.suppress(FileNotFoundError):
            if not _is_old(path.stat()):
                return path, kept.partition(".")[2]
            path.unlink()
        return None

    def _put(self, kept: str, text: str) -> None:
        content = text.encode()
        path = self._folder / kept
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._make_room(len(content))
            path.write_bytes(content)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            _LOG.exception("a translated file cannot be kept")
            raise Refusal(500, "The file cannot be kept; the gateway's log says why") from error

    def _make_room(self, size: int) -> None:
        """Remove expired files, and the oldest ones until a file of this size fits."""
        for path, found in sorted(self._files(), key=lambda one: -one[1].st_mtime):
            size += found.st_size
            if _is_old(found) or size > _MOST_BYTES:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                yield path, path.stat()


def _is_old(found: os.stat_result) -> bool:
    return found.st_mtime < time.time() - _KEPT_S


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
