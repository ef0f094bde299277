# SPDX-License-Identifier: Apache-2.0
"""A newer call takes an older one's place, from the client's argument to the backend's queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

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

        async def supersede() -> bool:
            """Whether the newer call came before the older one's end; it always has its answer."""
            older = asyncio.create_task(
                client.translate("The long day.", targets=TARGETS, supersede="a", **LONG)
            )
            other = asyncio.create_task(
                client.translate("The other speaker.", targets=TARGETS, supersede="b", **LONG)
            )
            await asyncio.sleep(0.02)  # they are on their way
            newer = await client.translate(
                "The short day.", targets=TARGETS, supersede="a", **SHORT
            )
            assert [answer.ids for answer in newer] == [answer.ids for answer in expected]
            assert len(await other) == len(TARGETS)
            try:
                await older
            except SupersededError as error:
                assert "superseded by a newer request" in str(error)  # noqa: PT017
                return True
            return False

        # Others keep the workers busy, so that the older call waits.
        busy = asyncio.create_task(
            client.translate([f"The long winter {i}." for i in range(60)], targets=TARGETS, **LONG)
        )
        assert any([await supersede() for _ in range(20)])
        assert len(await busy) == 60
        good = await client.translate("The short day.", targets=TARGETS, **SHORT)
        assert [answer.ids for answer in good] == [answer.ids for answer in expected]
