# SPDX-License-Identifier: Apache-2.0
"""ct2-bench text, on the demo model behind a real server."""

from __future__ import annotations

import argparse

import pytest

from ct2_triton.bench import cli
from ct2_triton.cli import bench


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--model", "owner/model", "text"], "--model"),
        (["--device", "gpu", "text"], "--device"),
        (["--from", "de", "text"], "--from"),
        (["--output", "folder", "text"], "--output"),
        (["--max-tokens", "9", "live"], "--max-tokens"),
        (["--rounds", "2", "live"], "--rounds"),
    ],
)
def test_flags_that_say_nothing_to_a_subcommand_are_refused(
    arguments: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(arguments) == 1
    said = f"{flag} says nothing to ct2-bench {arguments[-1]}, which serves the demo model"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["live", "text"])
def test_a_subcommand_overwrites_nothing_that_stands_before_it(command: str) -> None:
    parser = argparse.ArgumentParser(prog="ct2-bench")
    cli.add_arguments(parser)
    args = parser.parse_args(["--to", "de", "--rounds", "2", "--output", "there", command])
    assert (args.to, args.rounds, str(args.output)) == ("de", 2, "there")
    args = parser.parse_args(["--to", "de", command, "--to", "fr"])
    assert args.to == "fr"


@pytest.mark.server
def test_all_ways_are_measured_and_give_the_same_answers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    # What ct2-bench has itself counts before the subcommand as well as behind it.
    arguments = ["--rounds", "2", "--to", "de,fr", "text", "--clients", "2", "--seconds", "0.1"]
    ways = ["ids", "ensemble", "gateway"]
    assert bench([*arguments, *(word for way in ways for word in ("--way", way))]) == 0
    shown = capfd.readouterr().out
    assert "medians of 2 rounds" in shown
    rows = [line.split() for line in shown.splitlines() if "clients x" in line]
    loads = [["2", "clients", "x", str(targets), "languages"] for targets in (1, 2)]
    assert [row[:5] for row in rows] == loads * 2
    for *_, ids, ensemble, gateway, text, differing in rows[:2]:
        assert all(float(rate) > 0 for rate in (ids, ensemble, gateway, text))
        assert int(differing) <= 20  # of 100 or 200: int8 may round otherwise in a batch
    for row in rows[2:]:
        assert len(row) == 5 + 3 * 4
        for ratio, low, high in zip(row[5::4], row[6::4], row[8::4], strict=True):
            assert 0 < float(low.strip("(")) <= float(ratio) <= float(high.strip(")"))
