# SPDX-License-Identifier: Apache-2.0
"""Counts the answers that bfloat16 products change, on the demo model's held-out sentences.

    python benchmarks/measure_bfloat16.py

CTranslate2 has no bfloat16 on a CPU, so it is imitated. The weights of all linear layers, and with
them the table of tokens, are rounded to bfloat16 and kept in float32. CTranslate2 runs these
weights. transformers runs them too, and rounds what goes into each linear layer as well, which is
what AVX-512 BF16 multiplies: two bfloat16 numbers, added up in float32. Attention stays in float32.
Every way is held against CTranslate2 in float32, greedy, and against the grammar's translations.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.extend(
    str(Path(__file__).resolve().parents[1] / name) for name in ("demo_model", "tests/tiny")
)

import ctranslate2
import torch
from tqdm import tqdm
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import tiny_models
from ct2_triton.prepare.shipped import FOLDER
from train_demo.corpus import held_out_sentences
from train_demo.grammar import read_grammar

CHECKPOINT = FOLDER / "checkpoint"
LANGUAGES = "deu,fra,spa,ita,por,nld"
LIMIT, ROWS = 64, 100
Answers = list[list[int]]
"""Ids of each sentence in each language, without those of languages and the end."""


class Sentences:
    """Sentences as ids, to be translated into each language."""

    def __init__(self, count: int, languages: list[str]) -> None:
        """Draws them."""
        self.tokenizer: Any = AutoTokenizer.from_pretrained(CHECKPOINT, src_lang="eng_Latn")
        drawn = held_out_sentences(read_grammar(), count, seed=17)
        self.sources = [self.tokenizer(one.texts["eng"]).input_ids for one in drawn]
        ids = self.tokenizer.convert_tokens_to_ids
        self.languages = {ids(f"{code}_Latn"): code for code in languages}
        self.right = [one.texts[code] for code in languages for one in drawn]
        self._special = set(self.tokenizer.all_special_ids)

    def plain(self, ids: list[int]) -> list[int]:
        """Leaves out special tokens."""
        return [each for each in ids if each not in self._special]

    def exact(self, answers: Answers) -> int:
        """Number of translations that equal the grammar's, character by character."""
        texts = self.tokenizer.batch_decode(answers)
        return sum(text == right for text, right in zip(texts, self.right, strict=True))


def load() -> Any:
    """The demo's checkpoint in float32."""
    return AutoModelForSeq2SeqLM.from_pretrained(CHECKPOINT, dtype=torch.float32).eval()


def linear_layers(model: Any) -> list[torch.nn.Linear]:
    """All linear layers; the weights of the last one are the token embeddings."""
    return [module for module in model.modules() if isinstance(module, torch.nn.Linear)]


def rounded(values: torch.Tensor) -> torch.Tensor:
    """Return a tensor rounded to bfloat16, as float32."""
    return values.to(torch.bfloat16).to(torch.float32)


def round_weights(model: Any) -> Any:
    """Rounds the weights of all linear layers, not their biases."""
    with torch.no_grad():
        for layer in linear_layers(model):
            layer.weight.copy_(rounded(layer.weight))
    return model


def round_inputs(model: Any) -> Any:
    """Lets all linear layers round their inputs."""
    for layer in linear_layers(model):
        layer.register_forward_pre_hook(lambda _, inputs: (rounded(inputs[0]),))
    return model


def engine_answers(model: Any, scratch: Path, sentences: Sentences, compute_type: str) -> Answers:
    """Return CTranslate2's translations with the weights of this model."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        checkpoint = Path(folder) / "checkpoint"
        model.save_pretrained(checkpoint)
        sentences.tokenizer.save_pretrained(checkpoint)
        quantization = None if compute_type == "float32" else compute_type
        directory = tiny_models.convert(checkpoint, Path(folder) / "model", quantization)
        engine = ctranslate2.Translator(str(directory), compute_type=compute_type)
    tokens, ids = sentences.tokenizer.convert_ids_to_tokens, sentences.tokenizer
    sources = [tokens(source) for source in sentences.sources]
    answers: Answers = []
    for language in sentences.languages:
        results = engine.translate_batch(
            sources,
            target_prefix=[[tokens(language)]] * len(sources),
            beam_size=1,
            max_decoding_length=LIMIT,
            max_batch_size=ROWS,
        )
        found = (ids.convert_tokens_to_ids(result.hypotheses[0]) for result in results)
        answers += [sentences.plain(each) for each in found]
    return answers


def transformers_answers(model: Any, sentences: Sentences) -> Answers:
    """What transformers answers; sentences of like length run together, each is answered alike."""
    order = sorted(range(len(sentences.sources)), key=lambda i: len(sentences.sources[i]))
    batches = [order[i : i + ROWS] for i in range(0, len(order), ROWS)]
    answers: Answers = []
    for language in sentences.languages:
        found: dict[int, list[int]] = {}
        for batch in tqdm(batches, desc="transformers", leave=False, disable=None):
            rows = [torch.tensor(sentences.sources[i]) for i in batch]
            inputs = torch.nn.utils.rnn.pad_sequence(rows, True, sentences.tokenizer.pad_token_id)
            ids = model.generate(
                inputs,
                attention_mask=inputs != sentences.tokenizer.pad_token_id,
                forced_bos_token_id=language,
                num_beams=1,
                do_sample=False,
                max_new_tokens=LIMIT,
            )
            found |= {i: sentences.plain(row.tolist()) for i, row in zip(batch, ids, strict=True)}
        answers += [found[i] for i in range(len(order))]
    return answers


def main() -> int:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--languages", default=LANGUAGES, help="default: %(default)s")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    sentences = Sentences(args.sentences, args.languages.split(","))
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        ways: dict[str, Callable[[], Answers]] = {
            "CTranslate2, float32": lambda: engine_answers(load(), scratch, sentences, "float32"),
            "transformers, float32": lambda: transformers_answers(load(), sentences),
            "CTranslate2, weights rounded": lambda: engine_answers(
                round_weights(load()), scratch, sentences, "float32"
            ),
            "transformers, weights and inputs rounded": lambda: transformers_answers(
                round_inputs(round_weights(load())), sentences
            ),
            "CTranslate2, int8": lambda: engine_answers(load(), scratch, sentences, "int8"),
        }
        print("| way | differ from CTranslate2, float32 | right, letter by letter |")
        print("|---|---:|---:|")
        base: Answers = []
        for name, answer in ways.items():
            answers = answer()
            base = base or answers
            differ = sum(one != other for one, other in zip(answers, base, strict=True))
            count = len(base)
            print(
                f"| {name} | {differ} of {count:,} ({differ / count:.2%}) "
                f"| {sentences.exact(answers) / count:.2%} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
