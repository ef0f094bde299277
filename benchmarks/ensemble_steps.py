# SPDX-License-Identifier: Apache-2.0
"""The steps of a classic ensemble, for Triton's Python backend: `ensemble.py` copies this file.

Tokens and languages are those of the client, so the ensemble answers what the client does.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.errors import Ct2TritonError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class _Step(ABC):
    """What Triton calls; a subclass turns a request's tensors into those of its response."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the tokenizer, once for each instance.

        Args:
            args: Where the model is, and its config, as the Python backend gives it.
        """
        config = json.loads(args["model_config"])
        place = config["parameters"]["tokenizer_path"]["string_value"]
        self._tokenizer = Tokenizer(Path(args["model_repository"]) / place)
        self._types = {
            tensor["name"]: pb_utils.triton_string_to_numpy(tensor["data_type"])
            for tensor in config["output"]
        }

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests; one that is wrong fails alone.

        Args:
            requests: What the dynamic batcher has put together.

        Returns:
            A response for each.
        """
        return [self._respond(request) for request in requests]

    @abstractmethod
    def _outputs(self, request: Any) -> dict[str, NDArray[Any]]:
        """Make the outputs of a request."""

    def _respond(self, request: Any) -> Any:
        try:
            outputs = self._outputs(request)
        except (Ct2TritonError, UnicodeDecodeError) as error:
            refusal = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor(name, values.astype(self._types[name]))
                for name, values in outputs.items()
            ]
        )


class TokenizerModel(_Step):
    """Texts and their languages to INPUT_IDS and TARGET_PREFIX."""

    def _outputs(self, request: Any) -> dict[str, NDArray[Any]]:
        names = ("text_input", "source_language", "target_languages")
        rules = self._tokenizer.rules
        rows, prefixes = [], []
        for text, from_, to in zip(*(_texts(request, name) for name in names), strict=True):
            source = rules.source_language(from_ or None)
            target = rules.target_language(to or None)
            rows.append(rules.input_ids(self._tokenizer.encode(text).ids, source, target))
            prefixes.append(rules.target_prefix(target))
        filler = rules.pad_id
        return {"INPUT_IDS": _filled(rows, filler), "TARGET_PREFIX": _filled(prefixes, filler)}


class DetokenizerModel(_Step):
    """OUTPUT_IDS to texts."""

    def _outputs(self, request: Any) -> dict[str, NDArray[Any]]:
        rules = self._tokenizer.rules
        answers = pb_utils.get_input_tensor_by_name(request, "OUTPUT_IDS").as_numpy().tolist()
        texts = []
        for ids, to in zip(answers, _texts(request, "target_languages"), strict=True):
            target = rules.target_language(to or None)
            texts.append([self._tokenizer.decode(rules.without_prefix(ids, target)).encode()])
        return {"text_output": np.array(texts, dtype=np.object_)}


def _texts(request: Any, name: str) -> list[str]:
    """Read a tensor of one text for each row."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return [value.decode() for value in tensor.as_numpy().reshape(-1).tolist()]


def _filled(rows: Iterable[Sequence[int]], filler: int) -> NDArray[Any]:
    """Make rows of one length."""
    rows = list(rows)
    width = max(map(len, rows), default=0)
    filled = [[*row, *[filler] * (width - len(row))] for row in rows]
    return np.array(filled).reshape(len(rows), width)
