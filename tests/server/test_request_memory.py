# SPDX-License-Identifier: Apache-2.0
"""What one request of 64 MB costs the server: at most four times its bytes, in whatever tensor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
from tritonclient.utils import InferenceServerException

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server import configs
from server.helpers import END, Connection, Reference, tensor
from server.text_client import send_text, strings, translated
from support.repository import write_model
from support.servers import MakeServer

pytestmark = pytest.mark.server

MEGABYTES = 64
MOST_TIMES = 4
LIMIT = 12
ROW, PREFIX = [300, 50, 60, 70, END], [9]
OPTIONS = {"max_decoding_length": LIMIT}


@dataclass
class Case:
    """A request with one huge tensor, and how it is refused (None: it is answered)."""

    name: str
    refusal: str | None


CASES = [
    Case("INPUT_IDS", "INPUT_IDS, row 0: it has {count} ids, more than the "),
    Case("TARGET_PREFIX", None),
    Case("INPUT_LENGTHS", "INPUT_LENGTHS"),
    Case("PREFIX_LENGTHS", "PREFIX_LENGTHS"),
]


def _memory_bytes(server: TritonServer, field: str) -> int:
    """A line of the process's status; of those that are counted in kB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return 1024 * int(status.split(f"{field}:")[1].split()[0])


def _forget_peak(server: TritonServer) -> None:
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5", encoding="ascii")


def _inputs(case: Case, id_type: Any) -> tuple[list[Any], int]:
    """The tensors of a request, and the elements of the huge one."""
    values: dict[str, Any] = {
        "INPUT_IDS": np.array([ROW], id_type),
        "TARGET_PREFIX": np.array([PREFIX], id_type),
    }
    huge_type = np.dtype(np.int32 if case.name.endswith("LENGTHS") else id_type)
    count = MEGABYTES * 1_000_000 // huge_type.itemsize
    values[case.name] = np.full((1, count), 50, huge_type)
    return [tensor(name, value) for name, value in values.items()], count


@pytest.mark.parametrize("id_type", [np.int32, np.uint16], ids=["INT32", "UINT16"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_a_request_costs_at_most_four_times_its_bytes(
    make_server: MakeServer,
    tmp_path: Path,
    nllb_engine_model: Path,
    reference: Reference,
    case: Case,
    id_type: Any,
) -> None:
    """A server of its own: what an earlier request left in the heap would hide the next one's."""
    config = configs.full(f"TYPE_{np.dtype(id_type).name.upper()}", inter_threads=1)
    write_model(tmp_path, "nllb", nllb_engine_model, config)
    server = make_server(tmp_path)
    connection = Connection(server.grpc_url)

    def translate(prefix: list[int]) -> Any:
        inputs = [
            tensor(name, np.array([ids], id_type))
            for name, ids in (("INPUT_IDS", ROW), ("TARGET_PREFIX", prefix))
        ]
        pending = connection.send("nllb", inputs, ["OUTPUT_IDS"], **OPTIONS)
        return pending.get_result().as_numpy("OUTPUT_IDS").tolist()

    expected = [reference.translate(ROW, PREFIX, **OPTIONS)]
    assert translate(PREFIX) == expected
    inputs, count = _inputs(case, id_type)
    _forget_peak(server)
    before = _memory_bytes(server, "VmRSS")
    pending = connection.send("nllb", inputs, ["OUTPUT_IDS"], **OPTIONS)
    if case.refusal is None:
        assert pending.get_result().as_numpy("OUTPUT_IDS").tolist() == [[50] * LIMIT]
    else:
        with pytest.raises(InferenceServerException) as raised:
            pending.get_result()
        assert case.refusal.format(count=count) in str(raised.value.message())
    times = (_memory_bytes(server, "VmHWM") - before) / (MEGABYTES * 1_000_000)
    assert times <= MOST_TIMES
    assert translate(PREFIX) == expected
    connection.close()


def test_empty_strings_cost_no_more(make_server: MakeServer, tmp_path: Path) -> None:
    """They are four bytes each on the wire; too many are refused before they are read."""
    prepare(PrepareOptions("demo", tmp_path, "demo", io="both"))
    server = make_server(tmp_path)
    connection = Connection(server.grpc_url)
    good = translated(connection, "Gate C19 closes in 6 minutes!", ["de"])
    count = MEGABYTES * 1_000_000 // 4
    targets = grpc.InferInput("target_languages", [1, count], "BYTES")
    targets._raw_content = bytes(4 * count)  # what set_data_from_numpy makes of empty strings
    inputs = [
        tensor("text_input", strings([["A word."]])),
        tensor("source_language", strings([["en"]])),
        targets,
    ]
    _forget_peak(server)
    before = _memory_bytes(server, "VmRSS")
    with pytest.raises(InferenceServerException, match=f"{count} languages are more than the mod"):
        connection.send("demo-text", inputs, ["text_output"]).get_result()
    times = (_memory_bytes(server, "VmHWM") - before) / (MEGABYTES * 1_000_000)
    assert times <= MOST_TIMES
    assert translated(connection, "Gate C19 closes in 6 minutes!", ["de"]) == good
    connection.close()


def test_texts_that_are_read_together_have_a_bound(make_server: MakeServer, tmp_path: Path) -> None:
    """Each is refused behind rows of some 150 MB; not all of them are half read at once."""
    prepare(PrepareOptions("demo", tmp_path, "demo", io="both"))
    server = make_server(tmp_path)
    connection = Connection(server.grpc_url)
    good = translated(connection, "Gate C19 closes in 6 minutes!", ["de"])
    hard = "".join(chr(0xFDFA) + chr(0x4E00 + i % 9000) for i in range(160_000))
    _forget_peak(server)
    before = _memory_bytes(server, "VmRSS")
    pending = [send_text(connection, [hard, b"\xff"], ["de"] * 64, split="none") for _ in range(8)]
    for one in pending:
        with pytest.raises(InferenceServerException, match="text_input, row"):
            one.get_result()
    peak = _memory_bytes(server, "VmHWM") - before
    assert peak < 800 * 1_000_000
    assert translated(connection, "Gate C19 closes in 6 minutes!", ["de"]) == good
    connection.close()


def test_a_request_has_a_bound_of_rows(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, reference: Reference
) -> None:
    """A row may be one byte of the request and hundreds in the server."""
    batching = "max_batch_size: 256\n"
    config = configs.full("TYPE_UINT16", batching=batching, max_request_rows=100)
    write_model(tmp_path, "nllb", nllb_engine_model, config)
    connection = Connection(make_server(tmp_path).grpc_url)

    def send(rows: int) -> Any:
        inputs = [
            tensor("INPUT_IDS", np.array([ROW] * rows, np.uint16)),
            tensor("TARGET_PREFIX", np.array([PREFIX] * rows, np.uint16)),
        ]
        return connection.send("nllb", inputs, ["OUTPUT_IDS"], **OPTIONS).get_result()

    with pytest.raises(InferenceServerException, match="101 rows are more than the model's max_re"):
        send(101)
    expected = [reference.translate(ROW, PREFIX, **OPTIONS)] * 100
    assert send(100).as_numpy("OUTPUT_IDS").tolist() == expected
    connection.close()
