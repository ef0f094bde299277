# SPDX-License-Identifier: Apache-2.0
"""docs/security.md names flags, parameters and defaults that exist."""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

import pytest

from ct2_triton import _core
from ct2_triton.gateway.cli import add_arguments as add_gateway_arguments
from ct2_triton.live.cli import add_arguments as add_live_arguments
from ct2_triton.serve import ServerOptions
from ct2_triton.serve.cli import add_arguments
from ct2_triton.serve.command import closed_apis
from ct2_triton.serve.installation import find_server

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text(encoding="utf-8")


@pytest.mark.server
def test_every_flag_exists() -> None:
    own = []
    for add in (add_arguments, add_live_arguments, add_gateway_arguments):
        parser = argparse.ArgumentParser()
        add(parser)
        own.append(parser.format_help())
    help_text = subprocess.run(
        [find_server().executable, "--help"], capture_output=True, text=True, check=False
    )
    of_newer_servers = "--grpc-max-response-pool-size"
    known = "".join([*own, help_text.stdout, help_text.stderr, "--revision", of_newer_servers])
    flags = set(re.findall(r"`(--[a-z-]+)", TEXT))
    assert len(flags) > 10
    assert {flag for flag in flags if not re.search(rf"{flag}\b", known)} == set()


def test_the_limits_have_the_defaults_of_the_table() -> None:
    table = {row["name"]: row["default"] for row in _core.parameters()}
    limits = TEXT.partition("| limit |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", limits)) - {"max_batch_size"}
    assert named <= set(table)
    for name in ("max_input_length", "max_decoding_length", "decoding_length_limit"):
        assert re.search(rf"\b{table[name]}\b.*`{name}`", limits), name
    assert table["max_beam_size"] == table["max_num_hypotheses"] == 32
    assert "| 32 each |" in limits


def test_what_is_closed_is_named() -> None:
    (flag, _) = closed_apis(ServerOptions([], host="0.0.0.0"))
    for api in flag.partition("=")[2].partition(":")[0].split(","):
        assert f"`{api}`" in TEXT
