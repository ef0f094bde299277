# SPDX-License-Identifier: Apache-2.0
"""Promote and roll back versions of a model, in its folder and on a running server.

The folder is changed first, so that a server that starts at the same time agrees. If the running
server does not accept the change, the folder is restored. Text models that follow the model are
changed with it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from ct2_triton.checksums import verify_version
from ct2_triton.errors import PreparedModelError, VersionError
from ct2_triton.model_versions import (
    HISTORY_NAME,
    followed_by,
    followers,
    has_weights,
    keep_serving,
    listed,
    read_config,
    read_history,
    replace_text,
    serve_versions,
    versions_in,
    versions_served,
)
from ct2_triton.prepare.triton_config import BACKEND
from ct2_triton.prepare.writing import locked
from ct2_triton.prepared_model import CONFIG_NAME, FORMAT, WEIGHTS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Take = Callable[[str], None]
    """Makes running servers load the folder of a model; raises if they do not."""

Versions = tuple[int, ...]


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
    return _switch(model, tuple(sorted(set(versions))), take)[0]


def rollback(model: Path, take: Take | None) -> tuple[Versions, Versions]:
    """Return to the versions served before the newest promotion that was not rolled back.

    Returns the versions served before and now; `take` is as in `promote`.
    """
    return _switch(model, None, take)


def _switch(model: Path, wanted: Versions | None, take: Take | None) -> tuple[Versions, Versions]:
    """Serve these versions, or roll back; return the versions served before and now."""
    if leader := followed_by(model):
        raise VersionError(
            f"{model.name} shares the files of {leader} and serves its versions: name {leader}"
        )
    with locked(model):
        before = versions_served(model)
        after = _previous(model, before) if wanted is None else wanted
        there = versions_in(model)
        if missing := [version for version in after if version not in there]:
            raise VersionError(
                f"{model} has no version {listed(missing)}; there is: {listed(there)}"
            )
        for version in after:
            _check(model, version)
        folders = [model, *followers(model)]
        if take is None and all(versions_served(folder) == after for folder in folders):
            raise VersionError(f"{model} serves {listed(after)} already")
        action = "rollback" if wanted is None else "promote"
        _change(folders, action, before, after, take or (lambda _: None))
    return before, after


def _check(model: Path, version: int) -> None:
    """Refuse a version that a server could not load, or whose files have changed."""
    if read_config(model).backend == BACKEND and not has_weights(model, version):
        raise VersionError(
            f"version {version} of {model} has no {WEIGHTS_NAME}: prepare it with ct2-prepare "
            "--as-version, or remove its folder"
        )
    verify_version(model, version)


def _previous(model: Path, served: Versions) -> Versions:
    """Return the versions to roll back to: promotions push versions, rollbacks pop them."""
    stack: list[dict[str, Any]] = []
    for entry in _carried_out(model, served):
        if entry["action"] == "promote":
            stack.append(entry)
        elif stack:
            stack.pop()
        else:
            raise PreparedModelError(
                f"{model / HISTORY_NAME} is damaged: it has a rollback of no promotion; remove it "
                "to start anew"
            )
    if not stack:
        raise VersionError(f"{model / HISTORY_NAME} has no promotion to roll back")
    if (after := tuple(stack[-1]["after"])) != served:
        raise VersionError(
            f"{model / CONFIG_NAME} serves {listed(served)}, and the newest promotion was to "
            f"{listed(after)}: it was changed meanwhile; choose versions with ct2-models promote"
        )
    return tuple(stack[-1]["before"])


def _carried_out(model: Path, served: Versions) -> list[dict[str, Any]]:
    """Read the history, without a last entry whose process ended before it changed the config."""
    history = read_history(model)
    if history and tuple(history[-1]["after"]) != served == tuple(history[-1]["before"]):
        return history[:-1]
    return history


def _change(
    folders: Sequence[Path], action: str, before: Versions, after: Versions, take: Take
) -> None:
    """Write the change, then make servers load it; undo both if a server does not."""
    model, *others = folders
    taken: list[str] = []
    for follower in others:
        keep_serving(follower)
    files = [model / HISTORY_NAME, *(folder / CONFIG_NAME for folder in folders)]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    try:
        if before != after:
            _write_entry(model, action, before, after)
        for folder in folders:
            _serve(folder, after)
        for name in (folder.name for folder in folders):
            taken.append(name)
            take(name)
    except BaseException:
        for file in files:
            if file in texts:
                replace_text(file, texts[file])
            else:
                file.unlink(missing_ok=True)
        for name in taken[:-1]:
            with suppress(Exception):
                take(name)
        raise


def _write_entry(model: Path, action: str, before: Versions, after: Versions) -> None:
    """Write an entry, before the config: it is valid only if the config agrees with it."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    entry = {"at": now, "action": action, "before": before, "after": after}
    content = {"format": FORMAT, "history": [*_carried_out(model, before), entry]}
    replace_text(model / HISTORY_NAME, json.dumps(content, indent=1) + "\n")


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
