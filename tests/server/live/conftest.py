# SPDX-License-Identifier: Apache-2.0
"""The demo model on a server of its own, and words that grow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.live import SegmentUpdate
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from support.servers import ServerStack


@pytest.fixture(scope="session")
def demo_model(tmp_path_factory: pytest.TempPathFactory) -> PreparedModel:
    """Computed in float32: the same answers whatever else is in the batch."""
    repository = tmp_path_factory.mktemp("demo")
    return prepare(PrepareOptions("demo", repository, settings={"compute_type": "float32"}))


@pytest.fixture(scope="session")
def demo_server(demo_model: PreparedModel) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(demo_model.directory.parent)


@pytest.fixture
async def client(
    demo_server: TritonServer, demo_model: PreparedModel
) -> AsyncIterator[TranslationClient]:
    repository = demo_model.directory.parent
    async with TranslationClient(demo_server.grpc_url, "demo", repository=repository) as made:
        yield made


def growing(segment: str, sentence: str) -> list[SegmentUpdate]:
    """A sentence word by word, as a recognizer without errors gives it."""
    words = sentence.split()
    ends = range(1, len(words) + 1)
    return [
        SegmentUpdate(segment, " ".join(words[:end]), final=end == len(words), time=end / 2.5)
        for end in ends
    ]


def in_turn(*segments: Sequence[SegmentUpdate]) -> list[SegmentUpdate]:
    """Updates of several segments, one of each at a time."""
    longest = max(map(len, segments))
    return [segment[i] for i in range(longest) for segment in segments if i < len(segment)]
