# SPDX-License-Identifier: Apache-2.0
"""A newer call takes an older one's place, from the client's argument to the backend's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.errors import SupersededError
from server.client.conftest import ENDLESS_MODEL, endless_call

if TYPE_CHECKING:
    from server.client.conftest import MakeClient

TARGETS = ["deu_Latn", "fra_Latn"]
SHORT: dict[str, Any] = {"source": "eng_Latn", "max_decoding_length": 12, "beam_size": 1}


async def test_a_newer_call_ends_the_older_one_with_its_key(make_client: MakeClient) -> None:
    async with make_client(made=ENDLESS_MODEL) as client:
        expected = await client.translate("The short day.", targets=TARGETS, **SHORT)
        older = await endless_call(client, "The long day.", TARGETS[0], "a")
        other = await endless_call(client, "The other speaker.", TARGETS[0], "b")
        newer = await client.translate("The short day.", targets=TARGETS, supersede="a", **SHORT)
        assert [answer.ids for answer in newer] == [answer.ids for answer in expected]
        with pytest.raises(SupersededError, match="superseded by a newer request"):
            await older
        assert not other.done()
        good = await client.translate("The short day.", targets=TARGETS, supersede="b", **SHORT)
        assert [answer.ids for answer in good] == [answer.ids for answer in expected]
        with pytest.raises(SupersededError):
            await other
