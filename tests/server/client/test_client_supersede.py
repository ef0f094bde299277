# SPDX-License-Identifier: Apache-2.0
"""A newer call takes an older one's place, from the client's argument to the backend's queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.errors import SupersededError

if TYPE_CHECKING:
    from server.client.conftest import MakeClient

TARGETS = ["deu_Latn", "fra_Latn"]
# The random model never ends a sentence by itself: every row takes all its steps.
LONG: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 100, "beam_size": 4}
SHORT: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 12, "beam_size": 1}


async def test_a_newer_call_ends_the_older_one_with_its_key(make_client: MakeClient) -> None:
    async with make_client() as client:
        expected = await client.translate("The short day.", targets=TARGETS, **SHORT)
        # Others keep the workers busy, so that the older call waits.
        busy = asyncio.create_task(
            client.translate([f"The long winter {i}." for i in range(80)], targets=TARGETS, **LONG)
        )
        other = asyncio.create_task(
            client.translate("The other speaker.", targets=TARGETS, supersede="b", **LONG)
        )
        older = asyncio.create_task(
            client.translate("The long day.", targets=TARGETS, supersede="a", **LONG)
        )
        await asyncio.sleep(0.1)  # it is on its way before the newer one
        newer = await client.translate("The short day.", targets=TARGETS, supersede="a", **SHORT)
        assert [answer.ids for answer in newer] == [answer.ids for answer in expected]
        with pytest.raises(SupersededError, match="superseded by a newer request"):
            await older
        assert len(await other) == len(TARGETS)
        assert len(await busy) == 80
        good = await client.translate("The short day.", targets=TARGETS, **SHORT)
        assert [answer.ids for answer in good] == [answer.ids for answer in expected]
