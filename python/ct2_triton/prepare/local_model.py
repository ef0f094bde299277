# SPDX-License-Identifier: Apache-2.0
"""A prepared model in this process: translated by the compiled core, as on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ct2_triton.client.pieces import read_pieces
from ct2_triton.engine_library import load_core
from ct2_triton.errors import SettingError
from ct2_triton.prepare.converted.files import read_vocabularies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ct2_triton.prepare.triton_config import Parameter
    from ct2_triton.prepared_model import Language, TokenRules

_ROWS_AT_A_TIME = 256
# Settings that change what a model answers, or to what its tokens are aligned.
_SETTINGS = ("alignment_heads", "alignment_layer", "compute_type")


class Translated(NamedTuple):
    """A text, its translation and the mean log-probability of its tokens.

    `gaps`: how much is uncovered and invented; None without the option `quality`, and if a
    CTranslate2 call made it.
    """

    source: str
    text: str
    score: float
    gaps: tuple[float, float] | None


class LocalModel:
    """A converted model as a server runs it: in decode loops if they support it."""

    def __init__(
        self,
        folder: Path,
        tokenizer_folder: Path,
        rules: TokenRules,
        settings: Sequence[Parameter] = (),
    ) -> None:
        """Load the model with the parameters of its `config.pbtxt` that matter.

        Raises ImportError or EngineLibraryError without the compiled core, and SettingError for
        settings that the model refuses.
        """
        self.core = load_core()
        parameters = {one.name: one.value for one in settings if one.name in _SETTINGS}
        if rules.max_source_tokens:
            parameters["max_input_length"] = str(rules.max_source_tokens)
        try:
            self._translator = self.core.Translator(str(folder), parameters)
        except self.core.Error as error:
            raise SettingError(str(error)) from error
        self.tokens = read_vocabularies(folder)
        self._rules = rules
        self._pieces = read_pieces(tokenizer_folder, rules)

    def translate(
        self,
        texts: Sequence[str],
        source: Language | None,
        targets: Sequence[Language | None],
        most_tokens: int,
        *,
        quality: bool = False,
    ) -> Iterator[Translated]:
        """Translate texts by greedy search, each into its own target language."""
        search = {
            "beam_size": 1,
            "max_decoding_length": most_tokens,
            "quality": quality,  # aligns, in a decode loop
            "return_scores": True,
            "truncate_input": bool(self._rules.max_source_tokens),
        }
        for at in range(0, len(texts), _ROWS_AT_A_TIME):
            part = slice(at, at + _ROWS_AT_A_TIME)
            rows = [
                self._rules.input_ids(self._pieces.encode(text), source, target)
                for text, target in zip(texts[part], targets[part], strict=True)
            ]
            prefixes = [self._rules.target_prefix(target) for target in targets[part]]
            answers = self._translator.translate(rows, prefixes, search)
            for text, target, row, [best, *_] in zip(
                texts[part], targets[part], rows, answers, strict=True
            ):
                translation = self._pieces.decode(self._rules.without_prefix(best["ids"], target))
                yield Translated(text, translation, best["score"], self._gaps(row, best))

    def _gaps(self, row: Sequence[int], best: Mapping[str, Any]) -> tuple[float, float] | None:
        if not best["alignments"]:
            return None
        uncovered, invented = self.core.quality_gaps(
            [self.tokens.source[i] for i in row],
            [self.tokens.target[i] for i in best["ids"]],
            best["alignments"],
        )
        return uncovered, invented
