# SPDX-License-Identifier: Apache-2.0
"""Drafts through the client: of a prepared model, and of one whose config knows no drafts."""

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
CALL: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 12, "min_decoding_length": 12}


async def test_a_draft_changes_no_answer(make_client: MakeClient) -> None:
    async with make_client() as client:
        plain = await client.translate(TEXT, targets="deu_Latn", beam_size=1, **CALL)
        assert plain.draft_tokens_kept is None
        ids = list(plain.ids)
        for draft, kept in ((ids, len(ids) - 1), ([*ids[:4], 7], 4), ([7], 0)):
            drafted = await client.translate(
                TEXT, targets="deu_Latn", beam_size=1, draft=draft, **CALL
            )
            assert drafted.hypotheses == plain.hypotheses
            assert drafted.draft_tokens_kept == kept
        drafted = await client.translate(
            TEXT, targets="deu_Latn", beam_size=1, prefix=ids[:3], draft=ids[3:], **CALL
        )
        assert drafted.hypotheses == plain.hypotheses


async def test_a_bad_draft_is_refused(make_client: MakeClient) -> None:
    async with make_client() as client:
        for targets, more, message in (
            ("deu_Latn", {"beam_size": 2}, "the draft: a draft is for a greedy search"),
            ("deu_Latn", {"draft": [99999]}, "the draft: id 99999 at position 0"),
        ):
            call = {"beam_size": 1, "draft": [5], **CALL, **more}
            with pytest.raises(errors.RequestRejectedError, match=message):
                await client.translate(TEXT, targets=targets, **call)
        with pytest.raises(errors.InvalidCallError, match="draft is for one sentence"):
            await client.translate([TEXT], targets="deu_Latn", draft=[5], **CALL)
        good = await client.translate(TEXT, targets="deu_Latn", beam_size=1, draft=[5], **CALL)
        assert good.ids


def test_a_model_that_takes_no_drafts_gets_none(
    server: TritonServer, prepared: Prepared, load: LoadModel
) -> None:
    folder = prepared("nllb").tokenizer_folder
    name = load(configs.plain())
    with SyncTranslationClient(server.grpc_url, name, tokenizer=folder) as client:
        plain = client.translate(TEXT, targets="deu_Latn", beam_size=1, **CALL)
        drafted = client.translate(TEXT, targets="deu_Latn", beam_size=1, draft=plain.ids, **CALL)
    assert drafted == plain
