# SPDX-License-Identifier: Apache-2.0
"""The live translator's promises, at moments that the tests make."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ct2_triton.errors import (
    ConnectionLostError,
    InvalidCallError,
    RequestRejectedError,
    ServerUnreachableError,
    SupersededError,
)
from ct2_triton.live import Caption, LiveInputError, LiveOptions, LiveTranslator, SegmentUpdate
from ct2_triton.live.policies import Append
from python.live.scripted import AT_ONCE, ScriptedClient, collect, each, live, texts

WORDS = st.lists(st.sampled_from(["ice", "cream", "I", "scream", "水"]), max_size=6).map(" ".join)
FAILURES = st.lists(
    st.sampled_from(
        [
            None,
            SupersededError("newer"),
            ServerUnreachableError("gone"),
            ConnectionLostError("lost"),
        ]
    ),
    max_size=4,
)


@settings(max_examples=60)
@given(
    segments=st.lists(st.lists(WORDS, min_size=1, max_size=5), max_size=4),
    order=st.randoms(use_true_random=False),
    mode=st.sampled_from(["final", "steady", "append"]),
    failures=FAILURES,
)
def test_every_final_comes_once_and_what_is_committed_stays(
    segments: list[list[str]], order: object, mode: str, failures: list[Exception | None]
) -> None:
    """Segments mixed in any way, with any few failures of the server, in two languages."""
    waiting = [texts(str(i), *steps) for i, steps in enumerate(segments)]
    updates = []
    while any(waiting):
        updates.append(order.choice([one for one in waiting if one]).pop(0))  # type: ignore[attr-defined]

    async def run() -> list[Caption]:
        client = ScriptedClient(failures)
        options = replace(AT_ONCE, mode=mode)
        return await collect(live(client, ["de", "fr"], options), updates)

    captions = asyncio.run(run())
    finals = Counter((c.segment, c.target) for c in captions if c.final)
    assert finals == {(str(i), t): 1 for i in range(len(segments)) for t in ("de", "fr")}
    for key in finals:
        mine = [c for c in captions if (c.segment, c.target) == key]
        assert [c.revision for c in mine] == sorted({c.revision for c in mine})
        assert [c.final for c in mine] == [False] * (len(mine) - 1) + [True]
        stays = mine if mode == "append" else mine[:-1]
        for before, after in itertools.pairwise(stays):
            assert after.committed.startswith(before.committed)
        last = mine[-1]
        if last.error is None:
            assert last.transcript == segments[int(last.segment)][-1].upper()


async def test_append_asks_what_words_look_at() -> None:
    """Interims do where the model tells; what looks at the last two words of the source waits."""
    steps = ["a", "a b", "a b c", "a b c d", "a b c d e", "a b c d e f"]
    for aligns, shown in ((True, {"A B", "A B C"}), (False, set())):
        client = ScriptedClient(aligns=aligns)
        options = replace(AT_ONCE, mode="append")
        translator = live(client, options=options)
        captions = []
        async with translator:
            for text in steps[:-1]:
                before = len(client.calls)
                await translator.push(SegmentUpdate("1", text))
                while len(client.calls) == before:  # noqa: ASYNC110 - each interim is made
                    await asyncio.sleep(0)
            captions = await collect(translator, [SegmentUpdate("1", steps[-1], final=True)])
        asked = ["return_alignments" in options for *_, options in client.calls]
        assert asked == [aligns] * 5 + [False]
        assert captions[-1].committed == "A B C D E F"
        assert bool(captions[:-1]) == aligns
        assert {one.committed for one in captions[:-1]} <= shown


async def test_newer_text_replaces_what_waits_and_the_final_supersedes_what_runs() -> None:
    client = ScriptedClient()
    client.gate.clear()
    async with live(client) as translator:
        await translator.push(SegmentUpdate("1", "a"))
        await client.arrived.wait()
        for text in ("a b", "a b c", "a b c d"):
            await translator.push(SegmentUpdate("1", text))
        assert [text for text, *_ in client.calls] == ["a"]  # one request under way
        await translator.push(SegmentUpdate("1", "a b c d e", final=True))
        while len(client.calls) < 2:  # noqa: ASYNC110 - sent while the first still runs
            await asyncio.sleep(0)
        client.gate.set()
        async with aclosing(translator.captions()) as captions:
            caption = await anext(captions)
    assert caption.final
    assert caption.committed == caption.transcript == "A B C D E"
    assert [text for text, *_ in client.calls] == ["a", "a b c d e"]
    keys = {options["supersede"] for *_, options in client.calls}
    assert keys == {"test/1"}
    assert translator.counts.superseded == 1


async def test_a_revision_supersedes_what_runs_but_not_twice_in_a_row() -> None:
    client = ScriptedClient()
    client.gate.clear()
    async with live(client) as translator:
        for text in ("a b", "x b", "y b", "y b c"):
            await translator.push(SegmentUpdate("1", text))
            for _ in range(20):
                await asyncio.sleep(0)
        assert [text for text, *_ in client.calls] == ["a b", "x b"]
        client.gate.set()
        while len(client.calls) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert [text for text, *_ in client.calls] == ["a b", "x b", "y b c"]
    assert translator.counts.superseded == 1


async def test_a_final_is_free_and_has_the_callers_search_and_an_interim_is_greedy() -> None:
    client = ScriptedClient()
    forced = partial(Append, agreeing_interims=2, hold=2, forces=True)
    options = replace(AT_ONCE, policy=forced)
    translator = LiveTranslator(
        client,
        targets="de",
        options=options,
        key="k",
        length_penalty=0.5,  # type: ignore[arg-type]
    )
    steps = ["a b c", "a b c d", "a b c d e"]

    async def one_by_one():  # noqa: ANN202
        for update in texts("1", *steps, "x b c d e f"):
            yield update
            for _ in range(20):  # the scripted answer takes fewer turns of the loop
                await asyncio.sleep(0)

    captions = [caption async for caption in translator.run(one_by_one())]
    *interims, final, completion = client.calls
    assert [options["beam_size"] for *_, options in interims] == [1, 1, 1]
    assert [options["prefix"] for *_, options in interims[:2]] == [(), ()]
    assert interims[2][2]["prefix"]  # what was committed is forced in an interim
    assert final[2] == {"supersede": "k/1", "source": None, "length_penalty": 0.5, "prefix": ()}
    assert completion[2]["prefix"]
    assert captions[-1].transcript == "X B C D E F"
    assert captions[-1].committed == "A B C D E F"


@pytest.mark.parametrize(
    ("failure", "drafts", "whole"),
    [
        (None, True, "A BC D"),  # in place of "A" stands "X": the model ends what was shown
        (None, False, "A BC D"),
        (RequestRejectedError("sampling cannot lean"), True, "A BC D"),
    ],
)
@pytest.mark.parametrize("takes_text", [False, True], ids=["ids", "text"])
async def test_what_viewers_have_seen_is_completed(
    failure: Exception | None, drafts: bool, whole: str, takes_text: bool
) -> None:
    """By the model, which leans towards the final; where it cannot, by the final's own end."""
    client = ScriptedClient([None, None, failure], drafts=drafts, takes_text=takes_text)
    at_once = partial(Append, agreeing_interims=1, guard=None, hold=0)
    translator = live(client, options=replace(AT_ONCE, policy=at_once))

    async def one_by_one():  # noqa: ANN202
        yield SegmentUpdate("1", "a")
        for _ in range(20):  # the scripted answer takes fewer turns of the loop
            await asyncio.sleep(0)
        yield SegmentUpdate("1", "x bc d", final=True)

    *_, last = [caption async for caption in translator.run(one_by_one())]
    assert (last.transcript, last.committed, last.error) == ("X BC D", whole, None)
    completion = client.calls[2][2]
    assert completion["prefix"] == ("A" if takes_text else tuple(map(ord, "A")))
    leans = {name: completion.get(name) for name in ("draft", "draft_bias")}
    draft = "A BC D" if takes_text else tuple(map(ord, " BC D"))
    bias = {"draft": draft, "draft_bias": 0.6}
    assert leans == (bias if drafts else dict.fromkeys(bias))


async def test_a_word_that_viewers_have_seen_gets_no_other_end() -> None:
    class Sticks(ScriptedClient):
        async def translate(self, text: str, **options: Any) -> Any:
            if options.get("prefix"):
                text = "conite."
            return await super().translate(text, **options)

    at_once = partial(Append, agreeing_interims=1, guard=None, hold=0)
    translator = live(Sticks(), options=replace(AT_ONCE, policy=at_once))
    async with translator:
        await translator.push(SegmentUpdate("1", "con"))
        captions = translator.captions()
        assert (await anext(captions)).committed == "CON"
        await translator.push(SegmentUpdate("1", "ma per lui", final=True))
        assert (await anext(captions)).committed == "CON per lui".upper()
        await captions.aclose()


async def one_by_one() -> AsyncIterator[SegmentUpdate]:
    """Gives an update when the one before is answered."""
    for update in texts("1", "a b", "a b c", "a b c d"):
        yield update
        for _ in range(20):  # the scripted answer takes fewer turns of the loop
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("drafts", "decoding", "interim", "final"),
    [
        (True, {}, True, False),  # the final's search is the model's own
        (True, {"beam_size": 1}, True, True),
        (True, {"beam_size": 4}, True, False),
        (True, {"sampling_topk": 3}, False, False),
        (False, {"beam_size": 1}, False, False),
    ],
)
async def test_the_answer_before_is_the_draft_of_the_next(
    drafts: bool, decoding: dict[str, Any], interim: bool, final: bool
) -> None:
    client = ScriptedClient()
    options = replace(AT_ONCE, drafts=drafts)
    translator = LiveTranslator(client, targets="de", options=options, key="k", **decoding)  # type: ignore[arg-type]

    [_ async for _ in translator.run(one_by_one())]
    first, second, last = (options.get("draft") for *_, options in client.calls)
    assert first is None
    assert second == (tuple(map(ord, "A B")) if interim else None)
    assert last == (tuple(map(ord, "A B C")) if final else None)


@pytest.mark.parametrize(
    ("drafts", "decoding", "bias"),
    [(True, {}, 0.2), (False, {}, None), (True, {"sampling_topk": 3}, None)],
)
async def test_a_steady_interim_is_biased_towards_the_one_before_and_a_final_does_not(
    drafts: bool, decoding: dict[str, Any], bias: float | None
) -> None:
    client = ScriptedClient(drafts=True)
    options = replace(AT_ONCE, drafts=drafts)
    translator = LiveTranslator(client, targets="de", options=options, key="k", **decoding)  # type: ignore[arg-type]

    [_ async for _ in translator.run(one_by_one())]
    found = [options.get("draft_bias") for *_, options in client.calls]
    assert found == [None, bias, None]


async def test_a_slow_reader_skips_captions_and_no_final() -> None:
    client = ScriptedClient()
    async with live(client, options=replace(AT_ONCE, source="newest")) as translator:
        for i in range(30):
            await translator.push(SegmentUpdate("1", " ".join(["a"] * (i + 2))))
            for _ in range(8):
                await asyncio.sleep(0)
        for name in "234":
            await translator.push(SegmentUpdate(name, "b", final=True))
            for _ in range(8):
                await asyncio.sleep(0)
        assert len(translator._outbox) == 4
        taken = []
        async with aclosing(translator.captions()) as captions:
            async for caption in captions:
                taken.append(caption)
                if len(taken) == 4:
                    break
    assert [(c.segment, c.final) for c in taken] == [
        ("1", False), ("2", True), ("3", True), ("4", True),
    ]  # fmt: skip
    assert taken[0].revision > 20


async def test_a_final_waits_while_too_many_wait_and_partials_of_others_go_on() -> None:
    client = ScriptedClient()
    options = replace(AT_ONCE, max_waiting_finals=2)
    async with live(client, options=options) as translator:
        for name in "12":
            await translator.push(SegmentUpdate(name, "a", final=True))
        third = asyncio.create_task(translator.push(SegmentUpdate("3", "a", final=True)))
        await asyncio.sleep(0.01)
        assert not third.done()
        with pytest.raises(LiveInputError, match="segment '3' is final already"):
            await translator.push(SegmentUpdate("3", "b", final=True))
        await translator.push(SegmentUpdate("4", "a b"))
        async with aclosing(translator.captions()) as captions:
            seen = [(await anext(captions)).segment for _ in range(1)]
            await third
            while "3" not in seen:
                seen.append((await anext(captions)).segment)
    assert "2" in seen


REFUSED = {
    "a second final": (SegmentUpdate("1", "b", final=True), "segment '1' is final already"),
    "a late partial": (SegmentUpdate("1", "b"), "what is said next needs a new segment"),
    "10 MB": (SegmentUpdate("5", "x" * 10_000_000), "has 10000000 characters; 4000 are allowed"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_bad_update_is_refused_and_the_next_is_translated(case: str) -> None:
    update, message = REFUSED[case]
    refused: list[str] = []
    first, good = texts("1", "a"), texts("2", "b")
    run = live(ScriptedClient()).run(
        each([*first, update, *good]), on_refused=lambda _, error: refused.append(str(error))
    )
    captions = [caption async for caption in run]
    assert [(c.segment, c.transcript) for c in captions] == [("1", "A"), ("2", "B")]
    assert len(refused) == 1
    assert message in refused[0]
    with pytest.raises(LiveInputError, match="segment '1'|characters"):
        await collect(live(ScriptedClient()), [*first, update])


async def test_a_thousand_segments_at_once() -> None:
    """Those beyond the bound are refused; the others, and a good one after, are translated."""
    refused: list[SegmentUpdate] = []
    many = [SegmentUpdate(str(i), "a") for i in range(1000)]
    ends = [SegmentUpdate(str(i), "a b", final=True) for i in range(64)]
    run = live(ScriptedClient()).run(
        each([*many, *ends, *texts("good", "c", "c d")]),
        on_refused=lambda update, _: refused.append(update),
    )
    captions = [caption async for caption in run]
    assert [update.segment for update in refused] == [str(i) for i in range(64, 1000)]
    finals = {c.segment: c.transcript for c in captions if c.final}
    assert finals == {**{str(i): "A B" for i in range(64)}, "good": "C D"}


async def test_text_that_shrinks_is_a_revision() -> None:
    updates = texts("1", "a b c d", "a b c d", "a", "x y z")
    captions = await collect(live(ScriptedClient()), updates)
    assert captions[-1].transcript == "X Y Z"


async def test_a_final_that_the_server_refuses_says_so_and_the_next_is_translated() -> None:
    client = ScriptedClient([RequestRejectedError("too long")])
    captions = await collect(live(client), [*texts("1", "a"), *texts("2", "b")])
    assert sorted((c.segment, c.error, c.transcript) for c in captions) == [
        ("1", "too long", None), ("2", None, "B"),
    ]  # fmt: skip


async def test_a_final_that_breaks_three_connections_is_given_up() -> None:
    client = ScriptedClient([ConnectionLostError("lost")] * 3)
    captions = await collect(live(client), [*texts("1", "a"), *texts("2", "b")])
    assert {c.segment: c.error for c in captions if c.segment == "2"} == {"2": None}
    assert len(client.calls) <= 5


async def test_segments_without_an_end_end_with_the_input() -> None:
    captions = await collect(live(ScriptedClient()), [SegmentUpdate("1", "a b")])
    assert [(c.final, c.transcript) for c in captions][-1] == (True, "A B")


async def test_an_interim_waits_for_new_words_and_for_its_time() -> None:
    client = ScriptedClient()
    options = LiveOptions(min_words=3, min_interval_ms=0, source="newest")
    steps = ["a", "a b", "a b c", "a b c d", "a b c d e", "a b c d e f"]
    async with live(client, options=options) as translator:
        for text in steps:
            await translator.push(SegmentUpdate("1", text))
            for _ in range(8):
                await asyncio.sleep(0)
    assert [text for text, *_ in client.calls] == ["a b c", "a b c d e f"]

    client = ScriptedClient()
    options = LiveOptions(min_words=1, min_interval_ms=1e6, source="newest")
    async with live(client, options=options) as translator:
        for text in steps:
            await translator.push(SegmentUpdate("1", text))
            for _ in range(8):
                await asyncio.sleep(0)
    assert [text for text, *_ in client.calls] == ["a"]


async def test_a_policy_that_fails_ends_the_captions_with_its_error() -> None:
    class Broken:
        has_interims, appends = True, False

        def draft(self) -> None:
            raise ZeroDivisionError("mine")

    options = replace(AT_ONCE, policy=lambda _: Broken())  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError, match="mine"):
        await collect(live(ScriptedClient(), options=options), texts("1", "a", "a b"))


async def test_wrong_settings_and_a_closed_translator() -> None:
    for wrong in (
        {"mode": "fast"}, {"source": "?"}, {"min_words": 0}, {"mask_words": -1},
        {"outage_s": float("nan")},
    ):  # fmt: skip
        with pytest.raises(InvalidCallError, match=next(iter(wrong))):
            LiveOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidCallError, match="1 to 80 bytes"):
        LiveTranslator(ScriptedClient(), targets="de", key="k" * 81)  # type: ignore[arg-type]
    translator = live(ScriptedClient())
    await translator.close()
    with pytest.raises(InvalidCallError, match="closed"):
        await translator.push(SegmentUpdate("1", "a"))


async def test_a_final_that_nobody_had_read_at_the_close_is_delivered() -> None:
    translator = live(ScriptedClient(), ["de", "fr"])
    await translator.push(SegmentUpdate("1", "a", final=True))
    while len(translator._outbox) < 2:  # noqa: ASYNC110 - both wait for their reader
        await asyncio.sleep(0)
    await translator.close()
    found = [(caption.target, caption.transcript) async for caption in translator.captions()]
    assert sorted(found) == [("de", "A"), ("fr", "A")]
    assert [caption async for caption in translator.captions()] == []


async def test_an_update_that_waits_at_the_close_says_so() -> None:
    translator = live(ScriptedClient(), options=replace(AT_ONCE, max_waiting_finals=1))
    await translator.push(SegmentUpdate("1", "a", final=True))
    waiting = [
        asyncio.create_task(translator.push(SegmentUpdate(name, "b", final=True)))
        for name in ("2", "3")
    ]
    await asyncio.sleep(0)
    await translator.close()
    for one in waiting:
        with pytest.raises(InvalidCallError, match="closed"):
            await asyncio.wait_for(one, 600)
