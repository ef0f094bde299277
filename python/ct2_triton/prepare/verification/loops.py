# SPDX-License-Identifier: Apache-2.0
"""Compare decode loops, which serve the model, with the answers of the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.engine_library import EngineLibraryError, load_core
from ct2_triton.prepare.verification.comparison import GreedyModel, NearTie, compare, count_equal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ct2_triton.prepare.verification.reference import Answer, Row


@dataclass(frozen=True)
class LoopProof:
    """The result of the comparison.

    Attributes:
        near_ties: Near ties at which a loop in float32 and the checkpoint chose differently.
        stored_rows_equal: Probes whose answers by a loop on the stored model equal the
            checkpoint's.
        not_compared: Why nothing was compared; else empty.
    """

    near_ties: tuple[NearTie, ...] = ()
    stored_rows_equal: int = 0
    not_compared: str = ""


class LoopModel(GreedyModel):
    """A converted model in a decode loop."""

    TITLE = "the decode loop (--set decoding=calls does without)"

    def __init__(self, folder: Path, compute_type: str) -> None:
        """Load the model on the CPU; `default` is the stored type."""
        super().__init__(folder)
        parameters = {"compute_type": compute_type, "decoding": "loop", "calls": "refuse"}
        self._loop = load_core().Translator(str(folder), {**parameters, "proof": "off"})

    def continue_row(self, row: Row, so_far: Sequence[int], max_tokens: int) -> list[int]:
        """Translate a row whose first tokens are forced; see `GreedyModel`."""
        options = {"beam_size": 1, "max_decoding_length": row.echoed + max_tokens}
        [[answer]] = self._loop.translate(
            [row.input_ids], [[*row.prefix_ids, *so_far]], {**options, "return_end_token": True}
        )
        ids: list[int] = answer["ids"]
        return ids[row.echoed + len(so_far) :]


def compare_loops(
    exact: Path, stored: Path, answers: Sequence[Answer], max_tokens: int
) -> LoopProof:
    """Translate the probes in decode loops, in float32 and as stored.

    Raises VerificationError if a loop in float32 chose a token that was not as good.
    """
    try:
        refusal = load_core().Error
    except (ImportError, EngineLibraryError) as error:
        return LoopProof(not_compared=str(error))
    try:
        model = LoopModel(exact, "float32")
        ties = [tie for answer in answers for tie in compare(model, answer, max_tokens)]
        del model
        return LoopProof(
            tuple(ties), count_equal(LoopModel(stored, "default"), answers, max_tokens)
        )
    except refusal as error:
        return LoopProof(not_compared=str(error))
