# SPDX-License-Identifier: Apache-2.0
"""Marian on the whole list, with the weights of the other contenders."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from ct2_triton.bench.contenders.in_process import InProcessContender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.models.translator import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.bench.contenders.in_process import Translate

_ROWS_PER_BATCH = 32


class MarianContender(InProcessContender):
    """Marian's Python module, one thread per core; see `models/marian.py`."""

    kind = "marian"

    @staticmethod
    def load(settings: Settings) -> Translate:
        """Load the model."""
        from ct2_triton.bench.models.marian import MarianTranslator

        return MarianTranslator(settings).timed_translate

    def translator_settings(self) -> Settings:
        """Write the weights for Marian, and return settings with all cores."""
        from ct2_triton.bench.models.marian import CONFIG_NAME, ENGINE_NAME
        from ct2_triton.bench.models.marian_file import write_marian_file

        checkpoint = self.setup.checkpoint()
        config = json.loads((checkpoint / CONFIG_NAME).read_text(encoding="utf-8"))
        family = config["model_type"]
        if family != "marian":
            raise BenchError(
                f"Marian cannot run a model of the family {family}; --shape marian-base makes one "
                "that it can"
            )
        try:
            version("pymarian")
        except PackageNotFoundError as error:
            raise BenchError("pymarian is missing: pip install pymarian") from error
        folder = self.setup.folder / self.name
        folder.mkdir()
        write_marian_file(checkpoint, folder)
        shutil.copyfile(checkpoint / CONFIG_NAME, folder / CONFIG_NAME)
        engine = self.setup.prepared("float32").model_folder.absolute()
        (folder / ENGINE_NAME).symlink_to(engine)
        return Settings(
            str(folder.absolute()),
            precision=self.precision,
            threads=self.setup.cores,
            rows_per_call=_ROWS_PER_BATCH,
            beam_size=self.setup.beam_size,
            max_decoding_length=self.setup.max_decoding_length,
        )

    def settings(self) -> Mapping[str, str]:
        """Return how the list is cut."""
        from ct2_triton.bench.models.marian import COMPARED_ROWS, LENGTH_FACTOR, int8_type

        return {
            "server": f"none: pymarian {version('pymarian')} on the whole list",
            "threads": str(self.setup.cores),
            "batches": f"up to {_ROWS_PER_BATCH} rows, sorted by length",
            "weights": int8_type() if self.precision == "int8" else self.precision,
            "longest answer": f"{LENGTH_FACTOR} times the source",
            "checked": f"{COMPARED_ROWS} rows equal CTranslate2's in float32",
            "not in its times": "ids to text and back",
        }
