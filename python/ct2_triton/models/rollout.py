# SPDX-License-Identifier: Apache-2.0
"""Promote and roll back versions of a model, in its folder and on a running server.

The folder is changed first, so that a server that starts at the same time agrees. If the running
server does not accept the change, the folder is restored. Text models that follow the model are
changed with it.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from ct2_triton.checksums import verify_version
from ct2_triton.errors import PreparedModelError, VersionError
from ct2_triton.model_versions import HISTORY_NAME, listed, read_history, versions_in
from ct2_triton.prepare.writing import locked
from ct2_triton.prepared_model import CONFIG_NAME, FORMAT
from ct2_triton.version_policy import (
    followed_by,
    followers,
    keep_serving,
    replace_text,
    serve_versions,
    versions_served,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Versions = tuple[int, ...]

if TYPE_CHECKING:
    Take = Callable[[str], None]
    """Makes running servers load the folder of a model; raises if they do not."""


def promote(model: Path, versions: Sequence[int], take: Take | None) -> Versions:
    """Serve exactly these versions.

    Args:
        model: The model's folder.
        versions: The versions; several for a canary.
        take: Called with the model's name, then with those of its followers; an error undoes the
            change. None: there is no running server.

    Returns:
        The versions that were served before. If they are the same, nothing is written, but servers
        still load the folder.

    Raises:
        VersionError: A version does not exist, the model follows another, the config cannot be
            changed, or it already selects these versions and there is no server.
        PreparedModelError: A version is damaged.
        OutputError: Another process is changing the model.
    """
    after = tuple(sorted(set(versions)))
    _check_leads(model)
    with locked(model):
        _check(model, after)
        before = versions_served(model)
        if take is None and all(versions_served(folder) == after for folder in _together(model)):
            raise VersionError(f"{model} serves {listed(after)} already")
        _change(model, "promote", before, after, take or _nobody)
    return before


def rollback(model: Path, take: Take | None) -> tuple[Versions, Versions]:
    """Return to the versions served before the newest promotion that was not rolled back.

    Returns the versions served before and now; `take` is as in `promote`.
    """
    _check_leads(model)
    with locked(model):
        before = versions_served(model)
        after = _previous(model, before)
        _check(model, after)
        _change(model, "rollback", before, after, take or _nobody)
    return before, after


def _previous(model: Path, served: Versions) -> Versions:
    """Return the versions to roll back to: promotions push versions, rollbacks pop them."""
    stack: list[tuple[Versions, Versions]] = []
    for entry in _carried_out(read_history(model), served):
        if entry["action"] == "promote":
            stack.append((tuple(entry["before"]), tuple(entry["after"])))
        elif stack:
            stack.pop()
        else:
            raise PreparedModelError(
                f"{model / HISTORY_NAME} is damaged: it has a rollback of no promotion; remove it "
                "to start anew"
            )
    if not stack:
        raise VersionError(f"{model / HISTORY_NAME} has no promotion to roll back")
    before, after = stack[-1]
    if after != served:
        raise VersionError(
            f"{model / CONFIG_NAME} serves {listed(served)}, and the newest promotion was to "
            f"{listed(after)}: it was changed meanwhile; choose versions with ct2-models promote"
        )
    return before


def _carried_out(history: list[dict[str, Any]], served: Versions) -> list[dict[str, Any]]:
    """Drop the last entry if the process ended before it changed the config."""
    if history and tuple(history[-1]["after"]) != served == tuple(history[-1]["before"]):
        return history[:-1]
    return history


def _check_leads(model: Path) -> None:
    if leader := followed_by(model):
        raise VersionError(
            f"{model.name} shares the files of {leader} and serves its versions: name {leader}"
        )


def _nobody(name: str) -> None:
    """Do nothing: there is no server."""


def _together(model: Path) -> list[Path]:
    """Return the model and its followers."""
    return [model, *followers(model)]


def _check(model: Path, versions: Versions) -> None:
    there = versions_in(model)
    if missing := [version for version in versions if version not in there]:
        raise VersionError(f"{model} has no version {listed(missing)}; there is: {listed(there)}")
    for version in versions:
        verify_version(model, version)


def _change(model: Path, action: str, before: Versions, after: Versions, take: Take) -> None:
    """Write the change, then make servers load it; undo both if a server does not."""
    folders, taken = _together(model), list[str]()
    for follower in folders[1:]:
        keep_serving(follower)
    try:
        with _undone_on_failure(folders):
            if before != after:
                _write_entry(model, action, before, after)
            for folder in folders:
                _serve(folder, after)
            for folder in folders:
                taken.append(folder.name)
                take(folder.name)
    except BaseException:
        for name in taken[:-1]:
            with suppress(Exception):
                take(name)
        raise


def _write_entry(model: Path, action: str, before: Versions, after: Versions) -> None:
    """Write an entry, before the config: it is valid only if the config agrees with it."""
    history = _carried_out(read_history(model), before)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    entry = {"at": now, "action": action, "before": before, "after": after}
    _write_history(model, [*history, entry])


def _serve(folder: Path, versions: Versions) -> None:
    """Make a model serve these versions; a follower's version folders have no files."""
    if versions_served(folder) == versions:
        return
    serve_versions(folder, versions)
    for version in versions:
        try:
            (folder / str(version)).mkdir(exist_ok=True)
        except OSError as error:
            raise VersionError(f"cannot make {folder / str(version)}: {error.strerror}") from error


@contextmanager
def _undone_on_failure(folders: Sequence[Path]) -> Iterator[None]:
    """Restore the configs, and the record of the first folder, if the block fails."""
    files = [folders[0] / HISTORY_NAME, *(folder / CONFIG_NAME for folder in folders)]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    try:
        yield
    except BaseException:
        for file in files:
            if file in texts:
                replace_text(file, texts[file])
            else:
                file.unlink(missing_ok=True)
        raise


def _write_history(model: Path, history: list[dict[str, Any]]) -> None:
    content = {"format": FORMAT, "history": history}
    replace_text(model / HISTORY_NAME, json.dumps(content, indent=1) + "\n")
