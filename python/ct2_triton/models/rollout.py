# SPDX-License-Identifier: Apache-2.0
"""Promote versions of a model, and roll back: in its folder, and on a running server.

The folder is changed first, so that a server that starts meanwhile agrees. Where the running server
does not take the change, the folder is put back.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from ct2_triton.checksums import verify_version
from ct2_triton.errors import PreparedModelError, VersionError
from ct2_triton.model_versions import HISTORY_NAME, read_history, versions_in
from ct2_triton.prepare.writing import locked
from ct2_triton.prepared_model import CONFIG_NAME, FORMAT
from ct2_triton.version_policy import replace_text, serve_versions, served_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Versions = tuple[int, ...]


def promote(model: Path, versions: Sequence[int], take: Callable[[], None] | None) -> Versions:
    """Have exactly these versions served from now on.

    Args:
        model: The model's folder.
        versions: The versions; several are for a canary.
        take: Has running servers take the change; what it raises undoes the change. None: there is
            no such server.

    Returns:
        The versions that were served before. Where they are the same, nothing is written, and the
        servers take what is written.

    Raises:
        VersionError: There is no such version, the config cannot be changed, or it says the same
            and there is no server.
        PreparedModelError: A version is damaged.
        OutputError: Another process changes the model.
    """
    after = tuple(sorted(set(versions)))
    with locked(model):
        _check(model, after)
        before = served_versions(model, versions_in(model))
        if before != after:
            _change(model, "promote", before, after, take)
        elif take is None:
            raise VersionError(f"{model} serves {_list(after)} already")
        else:
            take()
    return before


def rollback(model: Path, take: Callable[[], None] | None) -> tuple[Versions, Versions]:
    """Go back to what was served before the newest promotion that was not rolled back.

    Args:
        model: The model's folder.
        take: As in `promote`.

    Returns:
        The versions that were served before, and those that are served now.

    Raises:
        VersionError: There is nothing to go back to, or the version is gone.
        PreparedModelError: The version, or the record of promotions, is damaged.
        OutputError: Another process changes the model.
    """
    with locked(model):
        before = served_versions(model, versions_in(model))
        after = _previous(model, before)
        _check(model, after)
        _change(model, "rollback", before, after, take)
    return before, after


def _previous(model: Path, served: Versions) -> Versions:
    """Walk the record: a promotion adds what was served before it, a rollback takes it away."""
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
            f"{model / CONFIG_NAME} serves {_list(served)}, and the newest promotion was to "
            f"{_list(after)}: somebody else changed it; say what to serve with ct2-models promote"
        )
    return before


def _carried_out(history: list[dict[str, Any]], served: Versions) -> list[dict[str, Any]]:
    """Leave out a last entry behind which the process ended before the config was changed."""
    if history and tuple(history[-1]["after"]) != served == tuple(history[-1]["before"]):
        return history[:-1]
    return history


def _check(model: Path, versions: Versions) -> None:
    there = versions_in(model)
    if missing := [version for version in versions if version not in there]:
        raise VersionError(f"{model} has no version {_list(missing)}; there is: {_list(there)}")
    for version in versions:
        verify_version(model, version)


def _change(
    model: Path, action: str, before: Versions, after: Versions, take: Callable[[], None] | None
) -> None:
    """Write the record, then the config: an entry is believed where the config agrees with it."""
    history = _carried_out(read_history(model), before)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    entry = {"at": now, "action": action, "before": before, "after": after}
    with _undone_on_failure(model):
        _write_history(model, [*history, entry])
        serve_versions(model, after)
        if take is not None:
            take()


@contextmanager
def _undone_on_failure(model: Path) -> Iterator[None]:
    history = read_history(model)
    config = (model / CONFIG_NAME).read_text(encoding="utf-8")
    try:
        yield
    except BaseException:
        replace_text(model / CONFIG_NAME, config)
        _write_history(model, history)
        raise


def _write_history(model: Path, history: list[dict[str, Any]]) -> None:
    content = {"format": FORMAT, "history": history}
    replace_text(model / HISTORY_NAME, json.dumps(content, indent=1) + "\n")


def _list(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions)) or "none"
