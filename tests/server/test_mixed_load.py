# SPDX-License-Identifier: Apache-2.0
"""Good, bad and cancelled requests at once, while a model is loaded, refused and unloaded.

A few seconds of it with every run of the tests; tests/sanitize/sanitize.sh runs it longer, on a
server whose backend is built with a sanitizer. CT2_TRITON_LOAD_SECONDS and CT2_TRITON_SEED
set it.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from server import configs
from server.helpers import END, Connection, Ids, Reference, sentences
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.repository import write_model
from support.seeds import SEED
from support.servers import MakeServer

pytestmark = pytest.mark.server

SECONDS = float(os.environ.get("CT2_TRITON_LOAD_SECONDS", "3"))
CLIENTS = 6
OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1, "max_decoding_length": 12},
    {"beam_size": 3, "max_decoding_length": 8},
    {"beam_size": 4, "num_hypotheses": 2, "max_decoding_length": 6},
    {"beam_size": 2, "max_decoding_length_multiple": 0.7, "min_decoding_length": 0},
]
OUTPUTS = ("OUTPUT_IDS", "OUTPUT_LENGTHS", "HYPOTHESES", "HYPOTHESIS_LENGTHS", "FINISH_REASON")
Case = tuple[Ids, Ids, list[list[Ids]]]  # source, prefix, hypotheses for each of OPTIONS


@pytest.fixture(scope="module")
def cases(reference: Reference) -> list[Case]:
    """Rows, and what they must give, from CTranslate2 itself."""
    return [
        (row, prefix, [_expected(reference, row, prefix, options) for options in OPTIONS])
        for row, prefix in sentences(reference, 40, seed=SEED)
    ]


def _expected(reference: Reference, row: Ids, prefix: Ids, options: dict[str, Any]) -> list[Ids]:
    known = dict(options)
    multiple = known.pop("max_decoding_length_multiple", None)
    if multiple:
        known["max_decoding_length"] = max(1, int(multiple * len(row)))
    return reference.hypotheses(row, prefix, **known)


# Requests that must be refused, as arguments of Connection.start.
BAD: list[dict[str, Any]] = [
    {"ids": [[300, -1, END]], "prefix": [[9]]},
    {"ids": [[300, 50, END], [300, 99999, END]], "prefix": [[9], [9]]},
    {"ids": [[300, 50, END]], "prefix": [[2**31 - 1]]},
    {"ids": [[50] * 5000], "prefix": [[9]]},
    {"ids": [[300, 50, END]] * 2, "prefix": [[9]]},
    {"ids": np.array([[0.5, 1.5]], np.float32), "prefix": [[9]]},
    {"ids": [[300, 50, END]], "prefix": [[9]], "more": {"INPUT_LENGTHS": [[7]]}},
    {"ids": [[300, 50, END]], "prefix": [[9]], "beam_size": 0},
    {"ids": [[300, 50, END]], "prefix": [[9]], "beam_sise": 2},
    {"ids": [[300, 50, END]], "prefix": [[9]], "num_hypotheses": 30},
    {"ids": [[300, 50, END]], "prefix": [[9]], "suppress_sequences": "[[1,"},
    {"ids": [[300, 50, END]], "prefix": [[9]], "end_token": '["no such token"]'},
]
REFUSED_CONFIGS = [
    configs.full(beam_size="many"),
    configs.full(pad_id=2**40),
    configs.full(compute_type="int9"),
    configs.full(model_path="../../elsewhere"),
    configs.full(model_path="../nowhere/1/model"),
    configs.full("TYPE_INT8"),
    configs.full(suppress_sequences=[["no such token"]]),
    configs.plain("response_cache { enable: true }"),
]


class MixedClient:
    """One client: asks at random until the time is over, and counts what came back."""

    def __init__(self, url: str, cases: list[Case], seed: int) -> None:
        self._connection = Connection(url)
        self._cases = cases
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Sends one request, or a few, and checks what comes back."""
        act = self._random.choices(
            (self._good, self._bad, self._cancel, self._from_a_model_that_comes_and_goes),
            (12, 6, 1, 6),
        )
        act[0]()

    def close(self) -> None:
        self._connection.close()

    def _draw(self) -> tuple[list[Case], int, dict[str, Any]]:
        chosen = self._random.randrange(len(OPTIONS))
        rows = self._random.choices(self._cases, k=self._random.choice((1, 1, 1, 2, 7)))
        return rows, chosen, OPTIONS[chosen]

    def _start(self, model: str, rows: list[Case], options: dict[str, Any]) -> Any:
        sources, prefixes = [row[0] for row in rows], [row[1] for row in rows]
        more = {"INPUT_LENGTHS": [[len(row)] for row in sources]}
        ids = [[*row, *[1] * (max(map(len, sources)) - len(row))] for row in sources]
        return self._connection.start(model, ids, prefixes, outputs=OUTPUTS, more=more, **options)

    def _check(self, result: Any, rows: list[Case], chosen: int) -> None:
        ids, lengths = result.as_numpy("HYPOTHESES"), result.as_numpy("HYPOTHESIS_LENGTHS")
        for i, (_, _, expected) in enumerate(rows):
            got = [row[:n].tolist() for row, n in zip(ids[i], lengths[i], strict=True)]
            assert got == expected[chosen]

    def _good(self) -> None:
        rows, chosen, options = self._draw()
        self._check(self._start("steady", rows, options).get_result(), rows, chosen)
        self.counts["good"] += 1

    def _bad(self) -> None:
        request = dict(self._random.choice(BAD))
        self._connection.refusal("steady", request.pop("ids"), request.pop("prefix"), **request)
        self.counts["refused"] += 1

    def _cancel(self) -> None:
        """Rows without an end: Triton 2.51 dies when a cancellation meets the end of its request.

        triton-inference-server/server#8034
        """
        sent = [self._start("endless", self._draw()[0][:1], ENDLESS) for _ in range(2)]
        time.sleep(self._random.uniform(0, 0.02))
        for request in sent:
            request.cancel()
        for request in sent:
            with pytest.raises(InferenceServerException) as caught:
                request.get_result()
            assert caught.value.status() == "StatusCode.CANCELLED"
            self.counts["cancelled"] += 1

    def _from_a_model_that_comes_and_goes(self) -> None:
        rows, chosen, options = self._draw()
        try:
            result = self._start("flickering", rows, options).get_result()
        except InferenceServerException as error:
            if "no available versions" not in str(error) and "not found" not in str(error):
                raise
            self.counts["model away"] += 1
        else:
            self._check(result, rows, chosen)
            self.counts["answered by a model that comes and goes"] += 1


def _reload(connection: Connection, repository: Path, model: Path, counts: Counter[str]) -> None:
    raw = connection.raw
    shutil.rmtree(repository / "refused", ignore_errors=True)
    config = REFUSED_CONFIGS[counts["refused loads"] % len(REFUSED_CONFIGS)]
    write_model(repository, "refused", model, config)
    with pytest.raises(InferenceServerException):
        raw.load_model("refused")
    counts["refused loads"] += 1
    raw.load_model("flickering")
    time.sleep(0.05)
    raw.unload_model("flickering")
    counts["loads"] += 1


def _until_the_end(act: Callable[[], None], end: float, problems: list[BaseException]) -> None:
    try:
        while time.monotonic() < end and not problems:
            act()
    except BaseException as error:
        problems.append(error)


def test_mixed_load(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, cases: list[Case]
) -> None:
    config = configs.full(inter_threads=2, max_queued_rows=16)
    for name in ("steady", "flickering"):
        write_model(tmp_path, name, nllb_engine_model, config)
    roomy = configs.full(inter_threads=2, max_queued_rows=16, **ALLOWS_ENDLESS)
    write_model(tmp_path, "endless", endless_model(), roomy)
    loaded = [f"--load-model={name}" for name in ("steady", "endless")]
    server = make_server(tmp_path, server_arguments=["--model-control-mode=explicit", *loaded])
    connection = Connection(server.grpc_url)
    counts: Counter[str] = Counter()
    problems: list[BaseException] = []
    end = time.monotonic() + SECONDS
    clients = [MixedClient(server.grpc_url, cases, SEED + i) for i in range(CLIENTS)]
    acts: list[Callable[[], None]] = [client.step for client in clients]
    acts.append(lambda: _reload(connection, tmp_path, nllb_engine_model, counts))
    threads = [threading.Thread(target=_until_the_end, args=(act, end, problems)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        counts += client.counts
        client.close()
    assert problems == [], f"seed {SEED}"
    assert counts["good"] > 0
    assert counts["refused"] > 0
    row, prefix, expected = cases[0]
    assert connection.translate("steady", row, prefix, **OPTIONS[0]) == expected[0][0]
    connection.close()
    print(f"seed {SEED}, {SECONDS:g} s:", dict(counts))  # noqa: T201 - shown with pytest -s
    assert server.stop() == 0
