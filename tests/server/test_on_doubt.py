# SPDX-License-Identifier: Apache-2.0
"""Flagged greedy rows are decoded once more, and the better answer is given (on_doubt retry)."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton import _core
from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadFailure, LoadModel
from server.helpers import Connection, Ids, Pending, Reference, padded, sentences
from server.moments import Occupied, in_backend, superseded
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.metrics import fresh
from support.waiting import wait_until

pytestmark = pytest.mark.server

VERDICTS = configs.entry("output", "QUALITY", "TYPE_FP32", "[-1]") + configs.entry(
    "output", "QUALITY_FLAGS", "TYPE_STRING", "[-1]"
)
NAMES = ["OUTPUT_IDS", "OUTPUT_LENGTHS", "QUALITY", "QUALITY_FLAGS"]
LIMIT = {"max_decoding_length": 16}
GREEDY: dict[str, Any] = {"beam_size": 1, **LIMIT}
SECOND: dict[str, Any] = {"beam_size": 2, "no_repeat_ngram_size": 4, **LIMIT}
RETRY: dict[str, Any] = {"on_doubt": "retry", **GREEDY}
JUDGE = _core.Judge()
HOUR = 3_600_000_000  # microseconds
AT_ONCE = 16  # rows that may be decoded again before others are judged
ROWS_FOR_ONE = 20


def config(**values: Any) -> str:
    return configs.full(more=VERDICTS, compute_type="float32", **values)


@dataclass
class Case:
    """A row, and CTranslate2's answers to it by both searches, with the judge's verdicts."""

    row: Ids
    prefix: Ids
    first: Ids
    second: Ids
    flagged: bool
    better: bool

    @classmethod
    def of(cls, reference: Reference, row: Ids, prefix: Ids, **second: Any) -> Case:
        answers = [reference.translate(row, prefix, **o) for o in (GREEDY, {**SECOND, **second})]
        source = _core.token_text(reference.tokens(row))
        first, again = (
            JUDGE.judge(source, _core.token_text(reference.tokens(answer))) for answer in answers
        )
        better = _core.better_verdict(again["doubts"], first["doubts"])
        flagged = bool(first["flags"])
        return cls(row, prefix, *answers, flagged, flagged and better)

    @property
    def given(self) -> Ids:
        return self.second if self.better else self.first


@pytest.fixture(scope="module")
def cases(reference: Reference) -> list[Case]:
    """Rows of each kind: not flagged, better the second time, and no better then."""
    kinds: dict[tuple[bool, bool], list[Case]] = {}
    for row, prefix in sentences(reference, 60):
        case = Case.of(reference, row, prefix)
        kinds.setdefault((case.flagged, case.better), []).append(case)
    assert len(kinds) == 3, {kind: len(some) for kind, some in kinds.items()}
    return [case for some in kinds.values() for case in some[:5]]


def ask(connection: Connection, model: str, cases: list[Case], **options: Any) -> list[Ids]:
    got = connection.infer(
        model,
        padded([case.row for case in cases]),
        [case.prefix for case in cases],
        outputs=NAMES,
        **options,
    )
    lengths = got["OUTPUT_LENGTHS"].ravel().tolist()
    return [ids[:n] for ids, n in zip(got["OUTPUT_IDS"].tolist(), lengths, strict=True)]


def retried(server: TritonServer, model: str) -> tuple[float, float]:
    """Rows that were decoded again, and those whose second answer was given."""
    metrics = fresh(server, model)
    return metrics["ct2_retried_rows_total"], metrics["ct2_retried_rows_better_total"]


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Of a model of this test alone: a model that is loaded again goes on counting."""
    return re.sub(r"\W+", "-", request.node.name).strip("-")


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_the_better_answer_is_given(
    server: TritonServer,
    load: LoadModel,
    name: str,
    connection: Connection,
    cases: list[Case],
    decoding: str,
) -> None:
    model = load(config(decoding=decoding), name)
    got = ask(connection, model, cases, **RETRY)
    assert got == [case.given for case in cases]
    flagged = [case for case in cases if case.flagged]
    better = [case for case in flagged if case.better]
    assert retried(server, model) == (len(flagged), len(better))
    # Flags and qualities are those of the answers that were given.
    got = connection.infer(
        model, padded([c.row for c in better]), [c.prefix for c in better],
        outputs=NAMES, **SECOND, quality=True,
    )  # fmt: skip
    again = connection.infer(
        model, padded([c.row for c in better]), [c.prefix for c in better],
        outputs=NAMES, timeout=HOUR, **RETRY,
    )  # fmt: skip
    for name in NAMES:
        assert again[name].tolist() == got[name].tolist()


def test_rows_of_many_requests_at_once(
    load: LoadModel, connection: Connection, cases: list[Case]
) -> None:
    """Each request is answered as if it were alone, whether it retries or not."""
    model = load(config(decoding="loop"))
    sent = [
        (case, retry, connection.start(model, [case.row], [case.prefix], **options))
        for case in cases
        for retry, options in ((True, RETRY), (False, GREEDY))
    ]
    for case, retry, pending in sent:
        wanted = case.given if retry else case.first
        assert pending.get_result().as_numpy("OUTPUT_IDS").tolist() == [wanted]


def test_the_defaults_of_a_model(
    server: TritonServer, load: LoadModel, connection: Connection, cases: list[Case]
) -> None:
    flags = load(config(on_doubt="flag", **GREEDY), "flags")
    retries = load(config(on_doubt="retry", **GREEDY), "retries")
    assert ask(connection, flags, cases) == [case.first for case in cases]
    assert ask(connection, retries, cases) == [case.given for case in cases]
    case = next(case for case in cases if case.better)
    for model in (flags, retries):
        one = connection.infer(model, [case.row], [case.prefix], outputs=NAMES)
        assert one["QUALITY"].shape == (1, 1)
        off = connection.infer(model, [case.row], [case.prefix], outputs=NAMES, on_doubt="none")
        assert off["OUTPUT_IDS"].tolist() == [case.first]
        assert off["QUALITY"].shape == (1, 0)
        on = connection.infer(
            model, [case.row], [case.prefix], outputs=NAMES, on_doubt="none", quality=True
        )
        assert json.loads(on["QUALITY_FLAGS"].item())[0] == "repeats"
    assert retried(server, flags) == (0, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 2},
        {"sampling_topk": 5, "sampling_seed": 3},
        {"sampling_topk": 5, "num_hypotheses": 2},
        {"prefix_bias_beta": 0.5},
        {"num_hypotheses": 2, "return_alternatives": True},
    ],
)
def test_only_greedy_rows_are_decoded_again(
    server: TritonServer,
    load: LoadModel,
    name: str,
    connection: Connection,
    cases: list[Case],
    options: dict[str, Any],
) -> None:
    model = load(config(decoding="loop"), name)
    ask(connection, model, cases, **{**RETRY, **options})
    assert fresh(server, model)["ct2_quality_rows_total"] == len(cases)
    assert retried(server, model) == (0, 0)


def test_options_of_the_request_hold_for_both_searches(
    load: LoadModel, connection: Connection, reference: Reference, cases: list[Case]
) -> None:
    model = load(config(decoding="loop", max_beam_size=1, beam_size=1))
    stricter = [
        Case.of(reference, case.row, case.prefix, beam_size=1, no_repeat_ngram_size=4)
        for case in cases
    ]
    assert ask(connection, model, stricter, **RETRY) == [case.given for case in stricter]


def test_a_draft_that_loops(load: LoadModel, connection: Connection, cases: list[Case]) -> None:
    model = load(config(decoding="loop"))
    case = next(case for case in cases if case.better)
    got = connection.infer(
        model, [case.row], [case.prefix], more={"DRAFT_IDS": [case.first[1:]]}, **RETRY
    )
    assert got["OUTPUT_IDS"].tolist() == [case.second]


def test_a_row_that_the_second_search_may_not_take(
    server: TritonServer, load: LoadModel, name: str, connection: Connection, cases: list[Case]
) -> None:
    """Two beams would be more than the model allows: the first answer stands."""
    few = LIMIT["max_decoding_length"]
    model = load(config(decoding="loop", max_search_tokens=few, beam_size=1, **LIMIT), name)
    assert ask(connection, model, cases, **RETRY) == [case.first for case in cases]
    assert retried(server, model) == (0, 0)


def test_a_share_of_rows_is_decoded_again(
    server: TritonServer, load: LoadModel, name: str, connection: Connection, cases: list[Case]
) -> None:
    model = load(config(decoding="loop"), name)
    case = next(case for case in cases if case.better)
    rows = 100
    got = connection.infer(model, [case.row] * rows, [case.prefix] * rows, outputs=NAMES, **RETRY)
    ids = np.array(got["OUTPUT_IDS"])
    flagged = [json.loads(flags)[0] == "repeats" for [flags] in got["QUALITY_FLAGS"]]
    second = [row[: len(case.second)].tolist() == case.second for row in ids]
    assert second == [not flag for flag in flagged]
    assert all(
        row[: len(case.first)].tolist() == case.first
        for row, again in zip(ids, second, strict=True)
        if not again
    )
    again, better = retried(server, model)
    assert again == better == sum(second)
    assert AT_ONCE < again <= AT_ONCE + rows / ROWS_FOR_ONE
    # Rows that are not flagged earn more of them.
    good = next(case for case in cases if not case.flagged)
    ask(connection, model, [good] * ROWS_FOR_ONE, **RETRY)
    assert ask(connection, model, [case], **RETRY) == [case.second]


ONE_CALL = {"decoding": "calls", "inter_threads": 1, "max_batch_rows": 1, **ALLOWS_ENDLESS}


def begin_retry(
    server: TritonServer, connection: Connection, model: str, case: Case, **options: Any
) -> tuple[Pending, Pending]:
    """A request whose flagged row waits for its second search, and the endless one before it."""
    row = (case.row, case.prefix)
    hold = in_backend(connection, model, *row, "hold", **ENDLESS)
    one = in_backend(connection, model, *row, "one", **{**RETRY, **options})
    # Not equal to the first: if that still waits, the two would be decoded as one.
    endless = {**ENDLESS, "min_decoding_length": ENDLESS["min_decoding_length"] - 1}
    gate = in_backend(connection, model, *row, "gate", **endless)
    supersede(connection, model, case, "hold")
    assert superseded(hold)
    wait_until(lambda: fresh(server, model)["ct2_retried_rows_total"] == 1)
    assert not one.has_ended()
    return one, gate


def supersede(connection: Connection, model: str, case: Case, key: str) -> Pending:
    short = {"beam_size": 1, "max_decoding_length": 2}
    return connection.start(model, [case.row], [case.prefix], supersede_key=key, **short)


def open_gate(connection: Connection, model: str, case: Case, gate: Pending) -> None:
    last = supersede(connection, model, case, "gate")
    assert superseded(gate)
    assert not superseded(last)


@pytest.fixture
def one_call(load: LoadModel, name: str, cases: list[Case]) -> tuple[str, Case]:
    """A model that runs one row at a time."""
    model = load(config(**ONE_CALL), name, endless_model())
    return model, next(case for case in cases if case.better)


def test_the_first_answer_comes_in_time(
    server: TritonServer, connection: Connection, one_call: tuple[str, Case]
) -> None:
    model, case = one_call
    one, gate = begin_retry(server, connection, model, case, timeout=12_000_000)
    assert one.get_result().as_numpy("OUTPUT_IDS").tolist() == [case.first]
    open_gate(connection, model, case, gate)
    assert retried(server, model) == (1, 0)
    assert ask(connection, model, [case], **RETRY, timeout=HOUR) == [case.second]


def test_no_second_search_without_time(
    server: TritonServer, load: LoadModel, name: str, connection: Connection, cases: list[Case]
) -> None:
    """It would have to be faster than the first one, which took more than half of the time."""
    model = load(config(**ONE_CALL), name, endless_model())
    case = next(case for case in cases if case.better)
    timeout_s = 12
    with Occupied(connection, model, case.row, case.prefix):
        key = "one"
        one = in_backend(
            connection, model, case.row, case.prefix, key, **RETRY, timeout=timeout_s * 1_000_000
        )
        time.sleep(0.6 * timeout_s)
    assert one.get_result().as_numpy("OUTPUT_IDS").tolist() == [case.first]
    assert retried(server, model) == (0, 0)
    assert ask(connection, model, [case], **RETRY) == [case.second]


def test_a_newer_request_supersedes_one_that_retries(
    server: TritonServer, connection: Connection, one_call: tuple[str, Case]
) -> None:
    model, case = one_call
    one, gate = begin_retry(server, connection, model, case)
    newer = connection.start(model, [case.row], [case.prefix], supersede_key="one", **RETRY)
    assert superseded(one)
    open_gate(connection, model, case, gate)
    assert newer.get_result().as_numpy("OUTPUT_IDS").tolist() == [case.second]


def test_a_client_that_goes_while_its_row_is_decoded_again(
    server: TritonServer, connection: Connection, one_call: tuple[str, Case]
) -> None:
    model, case = one_call
    one, gate = begin_retry(server, connection, model, case)
    one.cancel()
    with pytest.raises(InferenceServerException, match="CANCELLED"):
        one.get_result()
    open_gate(connection, model, case, gate)
    wait_until(lambda: fresh(server, model)["ct2_waiting_rows"] == 0)
    assert ask(connection, model, [case], **RETRY) == [case.second]
    assert retried(server, model) == (2, 1)


def test_wrong_values_are_refused(
    load: LoadModel, load_failure: LoadFailure, connection: Connection, cases: list[Case]
) -> None:
    model = load(config())
    case = next(case for case in cases if case.better)
    row = ([case.row], [case.prefix])
    allowed = "give one of none, flag, retry"
    said = connection.refusal(model, *row, on_doubt="often")
    assert f'parameter "on_doubt": the value "often" is not allowed; {allowed}' in said
    said = connection.refusal(model, *row, on_doubt=True)
    assert f'parameter "on_doubt": the value true is not allowed; {allowed}' in said
    assert 'did you mean "on_doubt"?' in connection.refusal(model, *row, on_dout="retry")
    said = load_failure(config(on_doubt="always"), "broken")
    assert f'parameter "on_doubt": the value "always" is not allowed; {allowed}' in said
    assert ask(connection, model, [case], **RETRY) == [case.second]


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_retries_among_requests_that_end_early(
    server: TritonServer,
    load: LoadModel,
    connection: Connection,
    cases: list[Case],
    name: str,
    decoding: str,
) -> None:
    """Whatever ends them, each row that is answered has one of its two answers.

    No call is cancelled: Triton 2.51 may not survive that as a request ends.
    """
    model = load(config(decoding=decoding, tenant_header="who"), name)
    rng = random.Random(5)
    sent = []
    for _ in range(150):
        some = [rng.choice(cases) for _ in range(rng.choice([1, 1, 2, 5, 40]))]
        more: dict[str, Any] = {"who": f"tenant{rng.randrange(3)}"}
        if rng.random() < 0.4:
            more["timeout"] = rng.choice([1_000, 20_000, 100_000, 400_000, HOUR])
        if rng.random() < 0.3:
            more["supersede_key"] = f"key{rng.randrange(4)}"
        rows, prefixes = padded([case.row for case in some]), [case.prefix for case in some]
        pending = connection.start(model, rows, prefixes, outputs=NAMES, **RETRY, **more)
        sent.append((some, pending))
    answered = 0
    for some, pending in sent:
        try:
            got = pending.get_result()
        except InferenceServerException as error:
            assert error.status() == "StatusCode.CANCELLED"  # noqa: PT017
            continue
        answered += 1
        lengths = got.as_numpy("OUTPUT_LENGTHS").ravel().tolist()
        for case, ids, n in zip(some, got.as_numpy("OUTPUT_IDS").tolist(), lengths, strict=True):
            assert ids[:n] in ([case.first, case.second] if case.better else [case.first])
    assert answered > 0
    wait_until(lambda: fresh(server, model)["ct2_waiting_rows"] == 0)
    good = next(case for case in cases if not case.flagged)
    assert ask(connection, model, [good], **RETRY) == [good.first]
