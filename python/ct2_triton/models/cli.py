# SPDX-License-Identifier: Apache-2.0
"""Say which models lie in a repository, what proves each, and which versions are served.

    ct2-models list
    ct2-models list --server localhost:8000
    ct2-models show nllb-200-distilled-600M
    ct2-models verify
    ct2-models promote nllb-200-distilled-600M 2 --server localhost:8000
    ct2-models rollback nllb-200-distilled-600M --server localhost:8000

`list` has a line for each version of a model. `show` has the whole record of some: source and
revision, licence, converter and its options, versions of the programs, proof. `verify` holds the
files against the SHA-256 that ct2-prepare wrote. `promote` has exactly the versions served that are
named, and `rollback` those of before. With `--server`, the first two say what that server has
loaded, and the last two have it take the change at once, while it translates.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.checksums import verify
from ct2_triton.default_repository import DEFAULT_TEXT, default_repository
from ct2_triton.errors import (
    ConnectionLostError,
    PreparedModelError,
    ServerUnreachableError,
    VersionError,
)
from ct2_triton.models.catalog import CatalogEntry, find, read_catalog

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ct2_triton.serve.http_probe import HttpProbe

_LOG = logging.getLogger(__name__)
_CHANGES = ("promote", "rollback")
_COMMIT_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("action", choices=("list", "show", "verify", *_CHANGES), help="what to do")
    parser.add_argument(
        "models",
        nargs="*",
        default=[],  # else argparse calls it required where the action is missing
        metavar="MODEL",
        help="these models only; for promote, a model and then the versions to serve",
    )
    parser.add_argument(
        "--model-repository",
        type=Path,
        default=default_repository(),
        help=f"Triton's model repository ({DEFAULT_TEXT})",
    )
    parser.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="HTTP port of a server that has this repository: says what it has loaded, and is told "
        "what is promoted (it needs --model-control-mode=explicit)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a model")


def run(args: argparse.Namespace) -> int:
    """Print what is asked for.

    Args:
        args: What `add_arguments` declares.

    Returns:
        0, or 1 where `verify` found damage.

    Raises:
        PreparedModelError: No such repository or model, or a damaged record.
        ServerUnreachableError: The server does not answer.
        PrepareError: Versions cannot be promoted or rolled back.
    """
    if args.action in _CHANGES:
        return _change(args)
    states = _probe(args.server).model_states() if args.server else []
    entries = find(read_catalog(args.model_repository, states), args.models)
    if args.action == "verify":
        damaged = [entry for entry in entries if not _verify(entry, as_json=args.json)]
        return 1 if damaged else 0
    if args.json:
        for entry in entries:
            print(json.dumps(entry.facts(), ensure_ascii=False))
    elif args.action == "show":
        print("\n\n".join("\n".join(_lines(entry.facts())) for entry in entries))
    else:
        _print_table(entries)
    return 0


def _change(args: argparse.Namespace) -> int:
    """Promote or roll back, and say what is served since."""
    from ct2_triton.followers import followers
    from ct2_triton.models.rollout import promote, rollback

    name, versions = _named(args.action, args.models)
    (entry,) = find(read_catalog(args.model_repository), [name])
    probe = _probe(args.server) if args.server else None

    take = None if probe is None else _taker(probe, args.server, name)
    if args.action == "promote":
        before, after = promote(entry.folder, versions, take), tuple(sorted(set(versions)))
    else:
        before, after = rollback(entry.folder, take)
    names = [name, *(folder.name for folder in followers(entry.folder))]
    if args.json:
        print(json.dumps({"name": name, "before": before, "after": after, "followers": names[1:]}))
    else:
        print(f"{', '.join(names)}: serves {_list(after)}, before {_list(before)}")
    if probe is None:
        _LOG.info("a server takes it at its next start, or now with --server HOST:PORT")
    return 0


def _taker(probe: HttpProbe, server: str, name: str) -> Callable[[str], None]:
    """Make what has the server load a model, or a follower of it that the server has loaded."""
    loaded = {state.name for state in probe.model_states() if state.state == "READY"}

    def take(model: str) -> None:
        if model == name or model in loaded:
            _take(probe, server, model)

    return take


def _take(probe: HttpProbe, server: str, name: str) -> None:
    """Have the server load what the folder says now; raise where it did not, or may not have."""
    doubt = (
        f"the folder is as before, but {server} may still be loading; look with ct2-models list "
        f"--server {server}"
    )
    try:
        failure = probe.load_model(name)
    except ConnectionLostError as error:
        raise VersionError(f"no answer to the load ({error}): {doubt}") from error
    except KeyboardInterrupt:
        _LOG.warning("interrupted: %s", doubt)
        raise
    if failure:
        raise VersionError(f"{server} does not take it, so nothing is changed: {failure}")


def _named(action: str, words: list[str]) -> tuple[str, list[int]]:
    """Find the model and the versions on the command line."""
    name, *versions = words or [""]
    numbers = [int(word) for word in versions if word.isascii() and word.isdigit()]
    is_right = bool(numbers) if action == "promote" else not versions
    if not name or not is_right or len(numbers) < len(versions):
        wanted = "MODEL VERSION [VERSION ...]" if action == "promote" else "MODEL"
        raise VersionError(f"say ct2-models {action} {wanted}, not {' '.join(words) or 'nothing'}")
    return name, numbers


def _list(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions)) or "none"


def _probe(server: str) -> HttpProbe:
    from ct2_triton.serve.http_probe import HttpProbe

    host, colon, port = server.rpartition(":")
    if not colon or not port.isdigit():
        raise PreparedModelError(f"--server {server} is not of the form host:port")
    probe = HttpProbe(host.strip("[]"), int(port))
    if not probe.server_version():
        raise ServerUnreachableError(f"no Triton server answers at http://{server}")
    return probe


def _verify(entry: CatalogEntry, *, as_json: bool) -> bool:
    if not entry.is_prepared:
        result, notes, whole = f"{_unprepared(entry)}: nothing to hold it against", [], True
    else:
        try:
            notes, result, whole = verify(entry.folder), "whole", True
        except PreparedModelError as error:
            notes, result, whole = [], str(error), False
    if as_json:
        print(json.dumps({"name": entry.name, "whole": whole, "result": result, "notes": notes}))
    else:
        print(f"{entry.name}: {'; '.join([result, *notes])}")
    return whole


def _lines(facts: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Write facts as readable text; what is empty is left out."""
    for key, value in facts.items():
        if value in (None, "", [], {}):
            continue
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{key}: {', '.join(map(str, value))}"
        else:
            yield f"{indent}{key}: {value}"


def _print_table(entries: list[CatalogEntry]) -> None:
    rows: list[tuple[str, ...]] = [
        ("model", "version", "served", "source", "revision", "weights", "licence", "server")
    ]
    rows += [row for entry in entries for row in _rows(entry)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        print("  ".join(cells).rstrip())


def _unprepared(entry: CatalogEntry) -> str:
    return "not prepared" if entry.follows is None else f"the files of {entry.follows}"


def _rows(entry: CatalogEntry) -> Iterator[tuple[str, ...]]:
    for version in entry.versions or ("none",):
        record = entry.records.get(version, {}) if isinstance(version, int) else {}
        source = record.get("source", {})
        revision = (source.get("commit") or "")[:_COMMIT_SHOWN] or source.get("revision")
        is_served = "?" if entry.served is None else "yes" if version in entry.served else "no"
        yield (
            entry.name,
            str(version),
            is_served,
            source.get("id") or _unprepared(entry),
            revision or "-",
            record.get("conversion", {}).get("quantization", "-"),
            source.get("license") or "-",
            entry.states.get(str(version)) or "-",
        )
