# SPDX-License-Identifier: Apache-2.0
"""Two real tritonservers that share the load: one is killed, another is added."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from ct2_triton.client import RetryPolicy, TranslationClient
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from support.ports import free_ports
from support.prepared import prepare_tiny
from support.servers import MakeServer
from tiny_corpus import sentences

CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn", "max_decoding_length": 8}


def answered(server: TritonServer) -> int:
    """How many rows the server has answered."""
    connection = Connection(server.grpc_url)
    try:
        return int(connection.statistics("nllb").inference_stats.success.count)
    finally:
        connection.close()


async def test_one_of_two_servers_is_killed_and_one_is_added(
    make_server: MakeServer, tmp_path: Path
) -> None:
    model = prepare_tiny("nllb", tmp_path, "nllb")
    first, second = make_server(tmp_path), make_server(tmp_path)
    third_ports = free_ports()
    urls = [first.grpc_url, second.grpc_url, f"127.0.0.1:{third_ports.grpc}"]
    texts = sentences(60, seed=11)
    rows = 0
    async with TranslationClient(
        urls, "nllb", tokenizer=model.tokenizer_folder, retry=RetryPolicy(max_backoff_s=0.5)
    ) as client:
        for _ in range(100):  # until the connections to both stand
            await client.translate(texts[0], **CALL)
            rows += 1
            if answered(first) and answered(second):
                break
        before = await _all_answered([first, second], rows)
        expected = await client.translate(texts, **CALL)
        after = await _all_answered([first, second], rows + len(texts))
        assert [after[i] - before[i] for i in range(2)] == [len(texts) / 2] * 2

        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        # Nothing is under way, so that nothing can be lost once the client knows.
        while sum(one.is_ready() for _, one in client._link.connection._ring) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for text, answer in zip(texts, expected, strict=True):
            assert await client.translate(text, **CALL) == answer
        rows = after[1] + len(texts)

        third = make_server(tmp_path, ports=third_ports)
        for _ in range(600):
            assert await client.translate(texts[0], **CALL) == expected[0]
            rows += 1
            if answered(third):
                break
            await asyncio.sleep(0.1)
        before = await _all_answered([second, third], rows)
        assert await client.translate(texts, **CALL) == expected
        after = await _all_answered([second, third], rows + len(texts))
        assert [after[i] - before[i] for i in range(2)] == [len(texts) / 2] * 2


async def _all_answered(servers: list[TritonServer], rows: int) -> list[int]:
    """Rows that each has answered, once these are all: they are counted a moment after that."""
    for _ in range(600):
        counts = [answered(server) for server in servers]
        if sum(counts) == rows:
            return counts
        await asyncio.sleep(0.05)
    raise AssertionError(f"{counts} rows were answered, not {rows}")
