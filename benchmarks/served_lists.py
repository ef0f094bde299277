# SPDX-License-Identifier: Apache-2.0
"""What measurements of vocabulary lists on a server share: their command line and models."""

from __future__ import annotations

import argparse
from pathlib import Path

_CONFIG = """
backend: "ctranslate2"
dynamic_batching {{ }}
instance_group {{ kind: KIND_CPU count: 1 }}
parameters {{ key: "beam_size" value {{ string_value: "1" }} }}
parameters {{ key: "max_decoding_length" value {{ string_value: "{limit}" }} }}
parameters {{ key: "use_vmap" value {{ string_value: "{listed}" }} }}
"""


def list_parser(description: str, *, clients: str, least_rows: int) -> argparse.ArgumentParser:
    """Return a parser with the arguments that all of them have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of CTranslate2 files")
    parser.add_argument("--size", type=int, default=25_000, help="tokens of a list")
    parser.add_argument("--clients", default=clients, help="rows in flight (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=120, help="longest answer")
    parser.add_argument(
        "--least-rows", type=int, default=least_rows, help="rows of a turn at least"
    )
    parser.add_argument("--rounds", type=int, default=3)
    return parser


def add_model(repository: Path, name: str, limit: int, *, listed: bool) -> Path:
    """Adds a model's configuration; returns the folder for its CTranslate2 files."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    config = _CONFIG.format(limit=limit, listed="true" if listed else "false")
    (version.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    return version / "model"
