# SPDX-License-Identifier: Apache-2.0
"""The training loop: seeded, with a progress bar, and resumed where it was cut."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from train_demo.batches import TrainingData
from train_demo.export import grammar_checksums
from train_demo.grammar import read_grammar
from train_demo.kinds import GrammarError
from train_demo.model import loss, new_model
from train_demo.tokenizer import nllb_tokenizer, train_pieces

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import M2M100ForConditionalGeneration, NllbTokenizer

    from train_demo.batches import Batch
    from train_demo.sizes import Size

_SAVE_EVERY_S = 300
_LOG_EVERY = 50  # steps
_WARM_UP = 0.08  # of all steps
_STATE = "state.pt"


def train(
    size: Size, folder: Path, seed: int, threads: int
) -> tuple[M2M100ForConditionalGeneration, NllbTokenizer]:
    """Trains a model, or goes on with the training that `folder` holds.

    Args:
        size: Shape and plan.
        folder: Holds the pieces, the state to resume from, and `log.jsonl`.
        seed: Seed of all random choices.
        threads: Threads of torch; another number gives slightly different weights.

    Returns:
        The trained model and its tokenizer.

    Raises:
        GrammarError: The training in `folder` began with another grammar or other arguments.
    """
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    _check_begun_with(
        folder,
        {"size": asdict(size), "seed": seed, "threads": threads, "grammar": grammar_checksums()},
    )
    grammar = read_grammar()
    pieces = folder / "sentencepiece.bpe.model"
    if not pieces.is_file():
        train_pieces(grammar, size.pieces, seed, folder)
    tokenizer = nllb_tokenizer(pieces)
    model = new_model(size, tokenizer)
    print(f"{model.num_parameters():,} parameters", flush=True)
    loop = _Loop(model, folder)
    for number in range(loop.cycle, len(size.cycles)):
        cycle = size.cycles[number]
        data = TrainingData(
            grammar, tokenizer, cycle.sentences, size.batch_sentences, seed + number
        )
        print(f"cycle {number + 1} of {len(size.cycles)}: {len(data)} steps", flush=True)
        loop.run(number, data, cycle.learning_rate)
    return model.eval(), tokenizer


def _check_begun_with(folder: Path, plan: dict[str, Any]) -> None:
    """Record the arguments that determine the weights, or check them against the record."""
    path = folder / "plan.json"
    text = json.dumps(plan, indent=2)
    if not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    begun, wanted = json.loads(path.read_text(encoding="utf-8")), json.loads(text)
    if other := [name for name in wanted if begun.get(name) != wanted[name]]:
        raise GrammarError(
            f"the training in {folder} did not begin with this {', '.join(other)}: choose another "
            "folder, or remove that one"
        )


class _Loop:
    """Steps of AdamW under a one-cycle schedule, with its state in a file now and then."""

    def __init__(self, model: M2M100ForConditionalGeneration, folder: Path) -> None:
        import torch

        self._model, self._folder = model, folder
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01
        )
        self._resumed: dict[str, Any] = {}
        self.cycle, self._step, self._trained_s = 0, 0, 0.0
        self._resume()

    def run(self, cycle: int, data: TrainingData, learning_rate: float) -> None:
        """Do the steps of one cycle that are still to do."""
        import torch

        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimizer, learning_rate, total_steps=len(data), pct_start=_WARM_UP
        )
        if cycle == self.cycle and self._resumed:
            self._optimizer.load_state_dict(self._resumed["optimizer"])
            self._schedule.load_state_dict(self._resumed["schedule"])
        else:
            self._step = 0
        self.cycle, self._resumed = cycle, {}
        self._model.train()
        self._steps(data)
        self._save()

    def _steps(self, data: TrainingData) -> None:
        saved = time.monotonic()
        started = saved - self._trained_s
        losses: list[float] = []
        with tqdm(total=len(data), initial=self._step, unit="step", disable=None) as bar:
            for batch in data.from_batch(self._step):
                losses.append(self._one(batch))
                self._step += 1
                self._trained_s = time.monotonic() - started
                bar.update()
                if self._step % _LOG_EVERY == 0:
                    mean = sum(losses) / len(losses)
                    losses.clear()
                    bar.set_postfix(loss=f"{mean:.4f}")
                    self._log(mean)
                if time.monotonic() - saved > _SAVE_EVERY_S:
                    self._save()
                    saved = time.monotonic()

    def _one(self, batch: Batch) -> float:
        import torch

        value = loss(self._model, batch)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad()
        return float(value.detach())

    def _log(self, mean: float) -> None:
        line = {
            "cycle": self.cycle,
            "step": self._step,
            "loss": round(mean, 5),
            "seconds": round(self._trained_s, 1),
        }
        with (self._folder / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def _save(self) -> None:
        """Write a new file and rename it, so an interrupted write loses nothing."""
        import torch

        state = {
            "cycle": self.cycle,
            "step": self._step,
            "trained_s": self._trained_s,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }
        new = self._folder / f"{_STATE}.new"
        torch.save(state, new)
        new.rename(self._folder / _STATE)

    def _resume(self) -> None:
        import torch

        path = self._folder / _STATE
        if not path.is_file():
            return
        state = torch.load(path, weights_only=True)
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._resumed = state
        self.cycle = state["cycle"]
        self._step, self._trained_s = state["step"], state["trained_s"]
        print(f"resumed at step {self._step} of cycle {self.cycle + 1}", flush=True)
