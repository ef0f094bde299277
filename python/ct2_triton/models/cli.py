# SPDX-License-Identifier: Apache-2.0
"""List the models of a repository, verify their files, and choose the versions that are served.

    ct2-models list
    ct2-models list --url localhost:8001
    ct2-models show nllb-200-distilled-600M
    ct2-models verify
    ct2-models promote nllb-200-distilled-600M 2 --url localhost:8001
    ct2-models rollback nllb-200-distilled-600M --url localhost:8001

With --url, list also shows what a server has loaded, and promote and rollback change it while it
translates.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.arguments import count
from ct2_triton.checksums import verify
from ct2_triton.client.servers import DEFAULT_URL
from ct2_triton.connection_arguments import add_access_arguments
from ct2_triton.errors import ConnectionLostError, PreparedModelError, VersionError
from ct2_triton.model_versions import listed
from ct2_triton.models.catalog import CatalogEntry, find, read_catalog
from ct2_triton.models.server import RunningServer
from ct2_triton.prepared_model import DEFAULT_TEXT, default_repository

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

_LOG = logging.getLogger(__name__)
_COMMIT_SHOWN = 12
_CHANGES = ("promote", "rollback")
_TASKS = {
    "list": "print a line for each version of a model",
    "show": "print the record of models: source and revision, licence, converter and its options, "
    "versions of the programs, proof",
    "verify": "compare the files of models with the SHA-256 that ct2-prepare wrote",
    "promote": "serve exactly these versions",
    "rollback": "serve the versions that were served before the newest promotion",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    for action, does in _TASKS.items():
        command = commands.add_parser(
            action, help=does, description=f"{does[0].upper()}{does[1:]}."
        )
        if action in _CHANGES:
            command.add_argument("model", metavar="MODEL", help="the model")
        else:
            command.add_argument("models", nargs="*", metavar="MODEL", help="these models only")
        if action == "promote":
            command.add_argument(
                "versions", nargs="+", type=count, metavar="VERSION", help="several for a canary"
            )
        command.add_argument(
            "--model-repository",
            type=Path,
            default=default_repository(),
            metavar="FOLDER",
            help=f"Triton's model repository ({DEFAULT_TEXT})",
        )
        command.add_argument("--json", action="store_true", help="print one JSON object per model")
        if action != "verify":
            _add_server_arguments(command, action)


def _add_server_arguments(command: argparse.ArgumentParser, action: str) -> None:
    does = (
        "have it load the change at once (it needs --model-control-mode=explicit)"
        if action in _CHANGES
        else "say what it has loaded"
    )
    group = command.add_argument_group("server")
    url = group.add_argument(
        "--url",
        metavar="URL",
        help=f"gRPC address of a server that has this repository, as in {DEFAULT_URL}: "
        f"{does} (default: ask no server)",
    )
    url.variable = "CT2_MODELS_URL"  # type: ignore[attr-defined]  # CT2_URL names no repository
    add_access_arguments(group)


def run(args: argparse.Namespace) -> int:
    """Run the action; 1 if models are damaged."""
    if args.action in _CHANGES:
        return _change(args)
    states = RunningServer(args).model_states() if getattr(args, "url", None) else []
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
    for entry in entries:
        if entry.damage:
            _LOG.error("model %s: %s", entry.name, entry.damage)
    return 1 if any(entry.damage for entry in entries) else 0


def _change(args: argparse.Namespace) -> int:
    """Promote or roll back, and print the served versions."""
    from ct2_triton.model_versions import followers
    from ct2_triton.models.rollout import promote, rollback

    name = args.model
    (entry,) = find(read_catalog(args.model_repository), [name])
    if entry.damage:
        raise PreparedModelError(entry.damage)
    take = _taker(RunningServer(args), name) if args.url else None
    if args.action == "promote":
        before = promote(entry.folder, args.versions, take)
        after = tuple(sorted(set(args.versions)))
    else:
        before, after = rollback(entry.folder, take)
    names = [name, *(folder.name for folder in followers(entry.folder))]
    if args.json:
        print(json.dumps({"name": name, "before": before, "after": after, "followers": names[1:]}))
    else:
        print(f"{', '.join(names)}: serves {listed(after)}, before {listed(before)}")
    if take is None:
        _LOG.info("a server loads the change at its next start, or now with --url")
    return 0


def _taker(server: RunningServer, name: str) -> Callable[[str], None]:
    """Return a function that makes the server load a model, or a follower that it has loaded."""
    loaded = {state.name for state in server.model_states() if state.state == "READY"}

    def take(model: str) -> None:
        if model == name or model in loaded:
            _take(server, model)

    return take


def _take(server: RunningServer, name: str) -> None:
    """Make the server load the folder's current state; raise if it did not, or may not have."""
    doubt = (
        f"the folder is as before, but {server.url} may still be loading; check with ct2-models "
        f"list --url {server.url}"
    )
    try:
        server.load(name)
    except ConnectionLostError as error:
        raise VersionError(f"no answer to the load ({error}): {doubt}") from error
    except VersionError as error:
        raise VersionError(
            f"{server.url} cannot load it, so nothing is changed: {error}"
        ) from error
    except KeyboardInterrupt:
        _LOG.warning("interrupted: %s", doubt)
        raise


def _verify(entry: CatalogEntry, *, as_json: bool) -> bool:
    notes: list[str] = []
    if entry.damage:
        result, whole = entry.damage, False
    elif not entry.is_prepared:
        result, whole = f"{_unprepared(entry)}; no checksums of its own", True
    else:
        try:
            notes, result, whole = verify(entry.folder), "unchanged", True
        except PreparedModelError as error:
            result, whole = str(error), False
    if as_json:
        print(json.dumps({"name": entry.name, "whole": whole, "result": result, "notes": notes}))
    else:
        print(f"{entry.name}: {'; '.join([result, *notes])}")
    return whole


def _lines(facts: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield facts as lines of text, without empty ones."""
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
    if entry.damage:
        return "damaged"
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
