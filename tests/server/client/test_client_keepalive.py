# SPDX-License-Identifier: Apache-2.0
"""A network that forgets its connections between the client and a real tritonserver."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

from ct2_triton import errors
from ct2_triton.client import RetryPolicy, TranslationClient
from ct2_triton.client.connection import Connection
from ct2_triton.client.retry import Deadline
from support.fault_server import Wire
from support.repository import IDENTITY_CONFIG, write_identity_model

if TYPE_CHECKING:
    from pathlib import Path

    from ct2_triton.serve import TritonServer
    from server.client.conftest import Prepared
    from support.servers import MakeServer

# No deadline: only what is tried here ends a call. Whoever waits longer, waits for ever.
CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn", "timeout_s": None}
GUARD_S = 30
TRITONS_OWN = [
    "--grpc-keepalive-time=7200000",
    "--grpc-keepalive-permit-without-calls=0",
    "--grpc-http2-max-pings-without-data=2",
    "--grpc-http2-min-recv-ping-interval-without-data=300000",
]
TEXT = "The teacher opened the green window."


async def test_the_client_comes_back_from_a_silent_peer(
    server: TritonServer, prepared: Prepared
) -> None:
    model = prepared("nllb")
    wire = Wire(server.grpc_url)
    async with (
        wire.open() as url,
        TranslationClient(url, model.name, tokenizer=model.tokenizer_folder) as client,
    ):
        expected = await client.translate(TEXT, **CALL, max_decoding_length=8)
        wire.silence()
        calls = [client.translate(TEXT, **CALL, max_decoding_length=8) for _ in range(20)]
        lost = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), GUARD_S)
        assert {type(one) for one in lost} == {errors.ConnectionLostError}
        again = client.translate(TEXT, **CALL, max_decoding_length=8)
        assert await asyncio.wait_for(again, GUARD_S) == expected
    assert wire.accepted == 2


async def test_a_server_with_tritons_own_ping_rules_answers_a_long_call(
    make_server: MakeServer, tmp_path: Path
) -> None:
    write_identity_model(tmp_path, "slow", IDENTITY_CONFIG, sleep_s=25)
    server = make_server(tmp_path, server_arguments=TRITONS_OWN)
    request = service_pb2.ModelInferRequest(model_name="slow")
    request.inputs.add(name="IN", datatype="INT32", shape=[1])
    request.raw_input_contents.append(b"\1\0\0\0")
    wire = Wire(server.grpc_url)
    async with wire.open() as url:
        connection = Connection(url, RetryPolicy())
        answer = await connection.infer(request, Deadline(None))
        await connection.close()
    assert answer.raw_output_contents == [b"\1\0\0\0"]
    assert wire.accepted == 1


async def test_ct2_serve_lets_clients_ping(server: TritonServer) -> None:
    """Triton's own rules end the connection of such a client at its fourth ping."""
    often = [
        ("grpc.keepalive_time_ms", 5000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    async with grpc.aio.insecure_channel(server.grpc_url, options=often) as channel:
        await channel.channel_ready()
        change = channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(change, 24)
