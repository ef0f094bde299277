# SPDX-License-Identifier: Apache-2.0
"""How sentences are sent: to a contender that keeps a record instead of translating."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ct2_triton.bench.contenders import Contender, ListContender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.scenarios import parse_scenario
from ct2_triton.bench.setup import Ids, Row, Setup
from ct2_triton.bench.workload import Sentence

SENTENCES = [
    Sentence((Row((n, 2), (7,)), Row((n, 2), (8,)), Row((n, 2), (9,)))) for n in range(100, 140)
]


class Recorder(Contender):
    """Answers with the prefix and the row; holds as many as `held` until that many have come."""

    kind = "recorder"

    def __init__(self, held: int = 1) -> None:
        super().__init__("float32", Setup("none", Path("none")))
        self.seen: list[Row] = []
        self.under_way: list[int] = []
        self._now = 0
        self._held = held
        self._release = asyncio.Event()

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    @property
    def pid(self) -> int:
        return 0

    def settings(self) -> Mapping[str, str]:
        return {}

    async def translate(self, row: Row) -> Ids:
        self.seen.append(row)
        self._now += 1
        self.under_way.append(self._now)
        if self._now >= self._held:
            self._release.set()
        await self._release.wait()
        await asyncio.sleep(0)
        self._now -= 1
        return (*row.target_prefix, *row.input_ids, 5)


class ListRecorder(Recorder, ListContender):
    """Is asked for lists."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    async def translate_each(self, rows: Sequence[Row]) -> tuple[list[Ids], list[float]]:
        self.calls += [1] * len(rows)
        return [(*row.target_prefix, 5) for row in rows], [0.5] * len(rows)

    async def translate_list(self, rows: Sequence[Row]) -> tuple[list[Ids], float]:
        self.calls.append(len(rows))
        return [(*row.target_prefix, 5) for row in rows], 2.0


async def test_a_closed_loop_keeps_so_many_under_way_and_sends_each_once() -> None:
    contender = Recorder(held=6)
    outcome = await parse_scenario("single:6").run(contender, SENTENCES)
    assert outcome is not None
    assert max(contender.under_way) == 6
    assert Counter(contender.seen) == Counter(sentence.rows[0] for sentence in SENTENCES)
    assert sorted(sample.sentence for sample in outcome.samples) == list(range(40))
    assert {sample.generated_tokens for sample in outcome.samples} == {3}
    assert outcome.answers[3, 0] == (7, 103, 2, 5)
    assert outcome.wall_s >= max(sample.done_s or 0.0 for sample in outcome.samples)


async def test_a_stream_sends_a_sentence_to_all_its_languages_at_once() -> None:
    contender = Recorder(held=6)
    outcome = await parse_scenario("streams:2").run(contender, SENTENCES)
    assert outcome is not None
    assert max(contender.under_way) == 6  # two sessions, three languages
    assert Counter(contender.seen) == Counter(row for s in SENTENCES for row in s.rows)
    assert set(outcome.answers) == {(number, row) for number in range(40) for row in range(3)}


async def test_an_open_loop_does_not_wait_for_answers() -> None:
    """All 40 are sent though none is answered before the last has come."""
    contender = Recorder(held=40)
    outcome = await parse_scenario("poisson:500").run(contender, SENTENCES)
    assert outcome is not None
    assert max(contender.under_way) == 40
    assert [row.input_ids[0] for row in contender.seen] == list(range(100, 140))
    due = [sample.due_s for sample in sorted(outcome.samples)]
    assert due == sorted(due)
    last = max(due)
    # Nothing was answered before the last was sent, and latency counts from the time due.
    assert all((sample.done_s or 0.0) >= last for sample in outcome.samples)


async def test_bursts_arrive_together() -> None:
    contender = Recorder(held=8)
    outcome = await parse_scenario("bursts:8@0.01").run(contender, SENTENCES[:16])
    assert outcome is not None
    assert Counter(sample.due_s for sample in outcome.samples) == {0.0: 8, 0.01: 8}


async def test_lists_go_to_a_list_contender_in_one_call() -> None:
    contender = ListRecorder()
    outcome = await parse_scenario("streams:4").run(contender, SENTENCES)
    assert outcome is not None
    assert contender.calls == [120]
    assert outcome.wall_s == 2.0
    assert {sample.done_s for sample in outcome.samples} == {None}


async def test_one_client_of_a_list_contender_is_timed_row_by_row() -> None:
    contender = ListRecorder()
    outcome = await parse_scenario("single:1").run(contender, SENTENCES)
    assert outcome is not None
    assert contender.calls == [1] * 40
    assert (outcome.wall_s, {sample.done_s for sample in outcome.samples}) == (20.0, {0.5})


async def test_arrivals_mean_nothing_to_a_list_contender() -> None:
    assert await parse_scenario("poisson:5").run(ListRecorder(), SENTENCES) is None


async def test_a_failure_of_the_contender_ends_the_scenario() -> None:
    class Broken(Recorder):
        async def translate(self, row: Row) -> Ids:
            if row.input_ids[0] == 110:
                raise OSError("the server has gone")
            return await super().translate(row)

    with pytest.raises(OSError, match="the server has gone"):
        await parse_scenario("single:4").run(Broken(), SENTENCES)


@pytest.mark.parametrize(
    "name",
    ["single", "single:0", "single:1.5", "single:4@2", "streams:4@0", "poisson:0", "poisson:5@1",
     "bursts:8", "bursts:0@1", "storm:4", "single:4 "],
)  # fmt: skip
def test_a_name_that_is_no_scenario_is_refused_with_the_forms(name: str) -> None:
    with pytest.raises(BenchError, match=r"is not a scenario; give single:CLIENTS"):
        parse_scenario(name)


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("single:48", "closed loop, 48 at a time, each a sentence"),
        ("streams:4", "closed loop, 4 at a time, each a sentence in all languages"),
        ("streams:4@2.5", "4 sessions, each a sentence in all languages every 2.5 s"),
        ("poisson:0.5", "open loop, 0.5 sentences/s, Poisson arrivals"),
        ("bursts:48@2", "48 sentences at once, every 2 s"),
    ],
)
def test_a_scenario_says_what_it_is(name: str, description: str) -> None:
    assert parse_scenario(name).description == description
