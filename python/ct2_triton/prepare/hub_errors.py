# SPDX-License-Identifier: Apache-2.0
"""Describe an error of the hub in one sentence: its meaning, and what to do."""

from __future__ import annotations

import importlib

from huggingface_hub import constants
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return OSError and, for huggingface_hub from 1 on, the errors of httpx or httpx2."""
    found: list[type[Exception]] = [OSError, OfflineModeIsEnabled]
    for library in ("httpx", "httpx2"):
        try:
            found.append(importlib.import_module(library).TransportError)
        except ImportError:
            continue
    return tuple(found)


TRANSPORT_ERRORS = _transport_errors()
"""Exceptions of a request to the hub without a successful response."""


def is_unreachable(error: Exception) -> bool:
    """Return whether the hub could not be reached.

    This includes offline mode, failed and broken connections, timeouts, and a gateway's errors.
    """
    if isinstance(error, OfflineModeIsEnabled | LocalEntryNotFoundError):
        return True
    if isinstance(error, HfHubHTTPError):
        return _status(error) >= 500
    return isinstance(error, TRANSPORT_ERRORS)


def describe(error: Exception, hub_id: str, revision: str | None) -> str:
    """Return a sentence about an error."""
    page = f"{constants.ENDPOINT}/{hub_id}"
    # The order matters: the error for a gated repository is a subclass of that for a missing one.
    known: list[tuple[type[Exception], str]] = [
        (
            GatedRepoError,
            f"access to {hub_id} is restricted: accept its terms at {page}, then log in with "
            "`hf auth login` or set HF_TOKEN",
        ),
        (DisabledRepoError, f"{hub_id} has been disabled by the hub, see {page}"),
        (
            RepositoryNotFoundError,
            f"the hub has no model {hub_id}, or it is private: check the spelling, or log in with "
            "`hf auth login` or set HF_TOKEN",
        ),
        (
            RevisionNotFoundError,
            f"{hub_id} has no revision {revision!r}: its branches and tags are at {page}/tree/main",
        ),
        (
            EntryNotFoundError,
            f"a file of {hub_id} that the hub lists cannot be downloaded ({one_line(error)}): "
            "try again, or another --revision",
        ),
    ]
    for kind, sentence in known:
        if isinstance(error, kind):
            return sentence
    return (
        f"the download of {hub_id} from {constants.ENDPOINT} broke off ({one_line(error)}); "
        "run the command again to resume it"
    )


def _status(error: HfHubHTTPError) -> int:
    return int(getattr(error.response, "status_code", 0) or 0)


def one_line(error: Exception) -> str:
    """Return an exception's message in one line, or its class if it has none."""
    # urllib3's last error, without the history of its attempts.
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return " ".join(str(reason or error).split()) or type(error).__name__
