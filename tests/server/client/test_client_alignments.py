# SPDX-License-Identifier: Apache-2.0
"""Alignments through the client: of a prepared model, and of one that declares none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton import errors
from ct2_triton.client import SyncTranslationClient
from server import configs

if TYPE_CHECKING:
    from ct2_triton.serve import TritonServer
    from server.client.conftest import MakeClient, Prepared
    from server.conftest import LoadModel

TEXT = "The teacher opened the green window."
CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn", "max_decoding_length": 12}


async def test_a_position_for_each_id(make_client: MakeClient) -> None:
    async with make_client() as client:
        plain = await client.translate(TEXT, **CALL)
        assert plain.alignments is None
        length = len(client.tokenizer.encode(TEXT).ids) + 2  # language and end tokens
        for options in ({"beam_size": 1}, {"beam_size": 3, "num_hypotheses": 3}):
            aligned = await client.translate(TEXT, **CALL, **options, return_alignments=True)
            assert aligned.alignments is not None
            assert len(aligned.alignments) == len(aligned.ids)
            assert set(aligned.alignments) <= set(range(length))
            assert [one.alignments for one in aligned.hypotheses[1:]] == [None] * (
                len(aligned.hypotheses) - 1
            )
        forced = await client.translate(TEXT, **CALL, prefix=plain.ids[:3], return_alignments=True)
        assert forced.alignments is not None
        assert forced.alignments[:3] == (-1, -1, -1)
        assert min(forced.alignments[3:]) >= 0
        blank = await client.translate(" ", **CALL, return_alignments=True)
        assert blank.alignments is None


def test_a_model_that_declares_none(
    server: TritonServer, prepared: Prepared, load: LoadModel
) -> None:
    folder = prepared("nllb").tokenizer_folder
    name = load(configs.plain())
    with SyncTranslationClient(server.grpc_url, name, tokenizer=folder) as client:
        with pytest.raises(errors.InvalidCallError, match="does not declare ALIGNMENTS"):
            client.translate(TEXT, **CALL, return_alignments=True)
        good = client.translate(TEXT, **CALL)
    assert good.ids


TEXT_WITHOUT = """
backend: "ctranslate2"
input { name: "text_input" data_type: TYPE_STRING dims: [1] }
input { name: "source_language" data_type: TYPE_STRING dims: [1] optional: true }
input { name: "target_languages" data_type: TYPE_STRING dims: [-1] optional: true }
output { name: "text_output" data_type: TYPE_STRING dims: [-1] }
parameters { key: "tokenizer_path" value { string_value: "TOKENIZER" } }
"""


def test_a_model_of_text_that_declares_none(
    server: TritonServer, prepared: Prepared, load: LoadModel
) -> None:
    folder = prepared("nllb").tokenizer_folder
    name = load(TEXT_WITHOUT.replace("TOKENIZER", f"../{folder.parent.name}/{folder.name}"))
    with SyncTranslationClient(server.grpc_url, name) as client:
        with pytest.raises(errors.InvalidCallError, match="'test' does not declare alignments;"):
            client.translate(TEXT, **CALL, return_alignments=True)
        good = client.translate(TEXT, **CALL)
    assert good.text
