# SPDX-License-Identifier: Apache-2.0
"""Scores a checkpoint on held-out sentences, through ct2-prepare, tritonserver and the client."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sacrebleu.metrics import CHRF
from tqdm import tqdm

from train_demo.languages import FLORES, SOURCE, TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.client import SyncTranslationClient
    from train_demo.grammar import Grammar
    from train_demo.templates import Sentence

PRECISIONS = ("float32", "int8")
_ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Score:
    """Scores of one language at one precision.

    Attributes:
        language: Target.
        precision: Number format of the stored weights and of computing.
        exact: Share of sentences that equal the reference, in percent.
        chrf: chrF2 of sacrebleu over all sentences, 0 to 100.
        wrong: The sentences that differ: source, reference, answer.
    """

    language: str
    precision: str
    exact: float
    chrf: float
    wrong: tuple[tuple[str, str, str], ...]


def evaluate(checkpoint: Path, sentences: Sequence[Sentence]) -> list[Score]:
    """Serve the checkpoint at each precision and translate the sentences into all languages."""
    from ct2_triton.client import SyncTranslationClient
    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepare.pipeline import prepare
    from ct2_triton.serve import ServerOptions, TritonServer

    scores = []
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        for precision in PRECISIONS:
            prepare(
                PrepareOptions(
                    str(checkpoint),
                    repository,
                    precision,
                    quantization=precision,
                    settings={"compute_type": precision},
                )
            )
        with TritonServer(ServerOptions([repository])) as server:
            for precision in PRECISIONS:
                with SyncTranslationClient(
                    server.grpc_url, precision, repository=repository
                ) as client:
                    scores += _scores(client, precision, sentences)
    return scores


def describe(grammar: Grammar, sentences: Sequence[Sentence]) -> str:
    """Return what was evaluated: how many sentences, templates and words."""
    words = sorted(len(sentence.texts[SOURCE].split()) for sentence in sentences)
    return (
        f"{len(sentences)} distinct held-out sentences of {len({s.template for s in sentences})} "
        f"templates ({len(grammar.templates)} in all), {sum(words)} English words, "
        f"{words[0]} to {words[-1]} a sentence, median {words[len(words) // 2]}"
    )


def table(scores: Sequence[Score]) -> str:
    """Write the scores as a Markdown table, a language a line."""
    lines = [
        "| into | exact match float32 | chrF float32 | exact match int8 | chrF int8 |",
        "|---|---|---|---|---|",
    ]
    for language in TARGETS:
        cells = [
            cell
            for precision in PRECISIONS
            for score in scores
            if (score.language, score.precision) == (language, precision)
            for cell in (f"{score.exact:.2f} %", f"{score.chrf:.2f}")
        ]
        lines.append(f"| {FLORES[language]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _scores(
    client: SyncTranslationClient, precision: str, sentences: Sequence[Sentence]
) -> list[Score]:
    targets = [FLORES[language] for language in TARGETS]
    answers: list[list[str]] = []
    for first in tqdm(range(0, len(sentences), _ROWS_AT_ONCE), desc=precision, disable=None):
        texts = [s.texts[SOURCE] for s in sentences[first : first + _ROWS_AT_ONCE]]
        translations = client.translate(texts, source=FLORES[SOURCE], targets=targets)
        answers += [[translation.text for translation in row] for row in translations]
    scores = []
    for number, language in enumerate(TARGETS):
        given = [row[number] for row in answers]
        expected = [s.texts[language] for s in sentences]
        wrong = tuple(
            (s.texts[SOURCE], want, got)
            for s, want, got in zip(sentences, expected, given, strict=True)
            if want != got
        )
        exact = 100 * (1 - len(wrong) / len(sentences))
        chrf = CHRF().corpus_score(given, [expected]).score
        scores.append(Score(language, precision, exact, chrf, wrong))
    return scores
