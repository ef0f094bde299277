# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's load tool beside ours, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare_perf_analyzer import find_binary, second_opinion
from ct2_triton.bench.contenders import TritonContender, make_contender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.scenarios import parse_scenario
from ct2_triton.bench.setup import Setup
from ct2_triton.bench.workload import random_workload
from ct2_triton.cli import main
from ct2_triton.client import Tokenizer

# `make test` puts it there.
BINARY = Path(__file__).resolve().parents[2] / ".venvs" / "perf-analyzer" / "bin" / "perf_analyzer"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--binary", "absent"], "absent is not found; 'pip install --no-deps"),
        (["--contender", "ctranslate2-int8", "--binary", __file__], "measures one tritonserver"),
    ],
)
def test_a_mistake_is_one_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("compare_perf_analyzer", "compare_perf_analyzer", options) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_a_missing_tool_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BenchError, match=r"pip install --no-deps .* tritonclient==2\.51\.0"):
        find_binary(None)
    with pytest.raises(BenchError, match="absent is not found"):
        find_binary(Path("absent"))


@pytest.mark.server
@pytest.mark.skipif(not BINARY.exists(), reason="perf_analyzer is installed by `make test`")
async def test_both_send_every_row_once_and_find_the_server_working(tmp_path: Path) -> None:
    setup = Setup("demo", tmp_path)
    tokenizer = Tokenizer(setup.prepared("int8").tokenizer_folder)
    sentences = random_workload(60, 1, setup, tokenizer, "en", ["de"]).sentences
    async with make_contender("ct2-triton-int8", setup) as contender:
        assert isinstance(contender, TritonContender)
        for name in ("single:4", "poisson:40"):
            before = await contender.server_counts()
            scenario = parse_scenario(name)
            table = await second_opinion(contender, scenario, sentences, BINARY)
            counted = (await contender.server_counts()).since(before)
            warm_up = max(16, scenario.in_flight)
            assert counted.requests == counted.rows == warm_up + 2 * len(sentences)
            assert table.header == ["", "ct2-bench", "perf_analyzer"]
            cells = [cell for row in table.rows for cell in row[1:]]
            assert len(cells) == 12
            assert all(float(cell.replace(",", "")) > 0 for cell in cells)
        with pytest.raises(BenchError, match="does not know streams:4; it runs single and poisson"):
            await second_opinion(contender, parse_scenario("streams:4"), sentences, BINARY)
