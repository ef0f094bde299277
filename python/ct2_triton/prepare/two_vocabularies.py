# SPDX-License-Identifier: Apache-2.0
"""Convert a Marian checkpoint with a vocabulary for each side.

CTranslate2 runs such a model, and its converter handles the weights, but registers the source's
tokens for both sides. Both vocabularies have equally many tokens, as in transformers, because both
have the ID that starts the decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctranslate2.converters.converter import Converter
from ctranslate2.converters.transformers import MarianMTLoader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class TwoVocabularies(Converter):  # type: ignore[misc] # ctranslate2 has no types
    """CTranslate2's converter for Marian, with the tokens of both sides."""

    def __init__(self, checkpoint: Path, source: Sequence[str], target: Sequence[str]) -> None:
        """Keep the checkpoint and the tokens of both sides."""
        self._checkpoint = str(checkpoint)
        self._source = list(source)
        self._target = list(target)

    def _load(self) -> Any:  # noqa: ANN401 - untyped
        import torch
        import transformers

        make_model: Any = transformers.MarianMTModel
        make_tokenizer: Any = transformers.AutoTokenizer
        model = make_model.from_pretrained(
            self._checkpoint, low_cpu_mem_usage=True, local_files_only=True
        )
        tokenizer = make_tokenizer.from_pretrained(self._checkpoint, local_files_only=True)
        loader: Any = MarianMTLoader()
        with torch.no_grad():
            spec = loader.get_model_spec(model)
        loader.set_config(spec.config, model, tokenizer)
        spec.register_source_vocabulary(self._source)
        spec.register_target_vocabulary(self._target)
        return spec
