# SPDX-License-Identifier: Apache-2.0
"""Say which models lie in a repository, where each comes from and what proves it.

    ct2-models list
    ct2-models list --server localhost:8000
    ct2-models show nllb-200-distilled-600M
    ct2-models verify

`list` has a line for each model. `show` has the whole record of some: source and revision, licence,
converter and its options, versions of the programs, proof. `verify` holds the files against the
SHA-256 that ct2-prepare wrote. With `--server`, both say which versions that server has loaded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.checksums import verify
from ct2_triton.default_repository import DEFAULT_TEXT, default_repository
from ct2_triton.errors import PreparedModelError, ServerUnreachableError
from ct2_triton.models.catalog import CatalogEntry, find, read_catalog

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from ct2_triton.serve.http_probe import ModelState

_COMMIT_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument("action", choices=("list", "show", "verify"), help="what to do")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="these models only")
    parser.add_argument(
        "--model-repository",
        type=Path,
        default=default_repository(),
        help=f"Triton's model repository ({DEFAULT_TEXT})",
    )
    parser.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="HTTP port of a server that has this repository: says what it has loaded",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a model")


def run(args: argparse.Namespace) -> int:
    """Prints what is asked for.

    Args:
        args: What `add_arguments` declares.

    Returns:
        0, or 1 where `verify` found damage.

    Raises:
        PreparedModelError: No such repository or model, or a damaged record.
        ServerUnreachableError: The server does not answer.
    """
    states = _states(args.server) if args.server else []
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


def _states(server: str) -> list[ModelState]:
    from ct2_triton.serve.http_probe import HttpProbe

    host, colon, port = server.rpartition(":")
    if not colon or not port.isdigit():
        raise PreparedModelError(f"--server {server} is not of the form host:port")
    probe = HttpProbe(host.strip("[]"), int(port))
    if not probe.server_version():
        raise ServerUnreachableError(f"no Triton server answers at http://{server}")
    return probe.model_states()


def _verify(entry: CatalogEntry, *, as_json: bool) -> bool:
    if not entry.record:
        result, notes = "not prepared by ct2-prepare: nothing to hold it against", []
        whole = True
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
    """Facts as readable text; what is empty is left out."""
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
        ("model", "versions", "source", "revision", "weights", "licence", "server")
    ]
    rows += [_row(entry) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        print("  ".join(cells).rstrip())


def _row(entry: CatalogEntry) -> tuple[str, ...]:
    source = entry.record.get("source", {})
    revision = (source.get("commit") or "")[:_COMMIT_SHOWN] or source.get("revision")
    states = ", ".join(f"{version} {state}" for version, state in entry.states.items())
    return (
        entry.name,
        ", ".join(map(str, entry.versions)) or "none",
        source.get("id") or "not prepared",
        revision or "-",
        entry.record.get("conversion", {}).get("quantization", "-"),
        source.get("license") or "-",
        states or "-",
    )
