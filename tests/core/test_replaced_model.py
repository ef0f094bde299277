# SPDX-License-Identifier: Apache-2.0
"""What a model knows of model.bin is of the file that it was loaded from."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton import _core
from support.tiny import tiny_engine_model

SOURCES = [[5, 6, 7, 2], [40, 50, 2]]
GREEDY = {"beam_size": 1, "max_decoding_length": 8}
MAP = "\t▁\n"
READ = 3
"""Times that a load reads vmap.txt; CTranslate2 has loaded model.bin before the last one."""


class Gates:
    """A vmap.txt that holds a load up: each time it is read, something may be done first."""

    def __init__(self, directory: Path, before_last: Callable[[], object]) -> None:
        """Lays the first gate.

        Args:
            directory: A model without a vocabulary map.
            before_last: What to do when the load asks for the map for the last time.
        """
        self._path = directory / "vmap.txt"
        self._before_last = before_last
        os.mkfifo(self._path)
        self.passed = 0
        self._thread = threading.Thread(target=self._let_through, daemon=True)
        self._thread.start()

    def _let_through(self) -> None:
        while self.passed < READ:
            with self._path.open("w", encoding="utf-8") as gate:  # once somebody reads
                self.passed += 1
                following = self._path.with_name(f"gate{self.passed}")
                if self.passed < READ:
                    os.mkfifo(following)
                else:
                    following.write_text(MAP, encoding="utf-8")
                    self._before_last()
                following.replace(self._path)
                gate.write(MAP)

    def all_passed(self) -> bool:
        self._thread.join(60)
        return self.passed == READ


def answers(translator: Any) -> list[Any]:
    rows = translator.translate(SOURCES, [[300]] * len(SOURCES), GREEDY)
    return [row[0]["ids"] for row in rows]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that each load tries, since no proof of it is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    return Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "model"))


def test_what_is_known_of_a_model_is_of_the_file_that_was_loaded(directory: Path) -> None:
    translator = _core.Translator(str(directory), {"decoding": "loop"})
    truth, size = answers(translator), translator.weight_bytes
    (directory / "model.bin").unlink()
    assert translator.weight_bytes == size
    assert answers(translator) == truth


def test_model_bin_that_goes_away_while_it_loads_is_missing(directory: Path) -> None:
    truth = answers(_core.Translator(str(directory), {"decoding": "loop"}))
    kept = shutil.copy(directory / "model.bin", directory.parent / "kept")
    gates = Gates(directory, (directory / "model.bin").unlink)

    with pytest.raises(_core.Error, match=r"model\.bin is missing"):
        _core.Translator(str(directory), {"decoding": "loop"})

    assert gates.all_passed()
    shutil.move(kept, directory / "model.bin")
    assert answers(_core.Translator(str(directory), {"decoding": "loop"})) == truth


def test_model_bin_of_another_model_while_one_loads_is_refused(directory: Path) -> None:
    """Weights of one model with vocabularies of another would answer nonsense."""
    truth = answers(_core.Translator(str(directory), {"decoding": "loop"}))
    kept = shutil.copy(directory / "model.bin", directory.parent / "kept")
    other = shutil.copy(tiny_engine_model("t5") / "model.bin", directory.parent / "other")
    gates = Gates(directory, lambda: Path(other).replace(directory / "model.bin"))

    with pytest.raises(_core.Error, match="changed while they were loaded"):
        _core.Translator(str(directory), {"decoding": "loop"})

    assert gates.all_passed()
    shutil.move(kept, directory / "model.bin")
    assert answers(_core.Translator(str(directory), {"decoding": "loop"})) == truth
