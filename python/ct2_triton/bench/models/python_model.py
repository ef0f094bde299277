# SPDX-License-Identifier: Apache-2.0
"""A model of Triton's Python backend with the protocol of docs/protocol.md.

Triton's dynamic batcher passes all waiting requests, of any lengths (`allow_ragged_batch`). Their
rows are translated together, and padded only inside. Requests cannot have options, because the
comparison uses one search for all rows; a request that asks for another is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from ct2_triton.bench.models.translator import SETTINGS_NAME, Settings
from ct2_triton.bench.setup import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.bench.models.translator import Translator


class _BatchedModel(ABC):
    """The class that Triton calls; a subclass chooses the translator."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the model; each instance does so once, in its own process."""
        folder = Path(args["model_repository"]) / args["model_version"]
        self._translator = self._load(Settings.read(folder / SETTINGS_NAME))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests in one batch; a malformed one fails alone."""
        read = [self._read(request) for request in requests]
        rows = [row for part in read if isinstance(part, list) for row in part]
        answers = iter(self._translator.translate(rows) if rows else ())
        return [
            pb_utils.InferenceResponse(error=part)
            if isinstance(part, pb_utils.TritonError)
            else _response([next(answers) for _ in part])
            for part in read
        ]

    @abstractmethod
    def _load(self, settings: Settings) -> Translator:
        """Load the translator of this instance."""

    def _read(self, request: Any) -> Any:  # noqa: ANN401 - a list of rows, or a TritonError
        """Read the rows of one request, or return an error response."""
        try:
            rows = _rows(request)
            for row in rows:
                self._translator.check(row)
        except ValueError as error:
            return pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
        return rows


class HuggingFaceModel(_BatchedModel):
    """Hugging Face `generate`."""

    def _load(self, settings: Settings) -> Translator:
        from ct2_triton.bench.models.hugging_face import HuggingFaceTranslator

        return HuggingFaceTranslator(settings)


class EngineModel(_BatchedModel):
    """CTranslate2's Python module."""

    def _load(self, settings: Settings) -> Translator:
        from ct2_triton.bench.models.engine import EngineTranslator

        return EngineTranslator(settings)


def _rows(request: Any) -> list[Row]:  # noqa: ANN401
    """Read the rows of a request.

    Padding is not removed, so a request of several rows must have rows of one length. No client of
    the comparison sends several.
    """
    if request.parameters() != "{}":
        raise ValueError(f"this model takes no options with a request: {request.parameters()}")
    source, prefix = (
        pb_utils.get_input_tensor_by_name(request, name).as_numpy()
        for name in ("INPUT_IDS", "TARGET_PREFIX")
    )
    if len(source) != 1 or len(prefix) != 1:
        raise ValueError(f"this model takes one row in a request, not {len(source)}")
    return [Row(tuple(source[0].tolist()), tuple(prefix[0].tolist()))]


def _response(answers: list[list[int]]) -> Any:  # noqa: ANN401
    return pb_utils.InferenceResponse(
        [pb_utils.Tensor("OUTPUT_IDS", np.array(answers, dtype=np.int32))]
    )
