# SPDX-License-Identifier: Apache-2.0
"""The settings that all contenders of a run share: the model, its limits, the cores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.bench.cores import count_cores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.prepared_model import PreparedModel

MODEL = "translate"

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One row of token IDs, the same for every contender.

    Attributes:
        input_ids: INPUT_IDS of docs/protocol.md, complete with language and end tokens.
        target_prefix: TARGET_PREFIX; empty for a model without one.
        model: Index in `Setup.models`.
    """

    input_ids: Ids
    target_prefix: Ids = ()
    model: str = MODEL


@dataclass(frozen=True)
class Setup:
    """The settings that all contenders of a run share.

    Attributes:
        source: As for ct2-prepare: `demo`, a checkpoint's folder, or a hub ID.
        folder: Where contenders write their files, each in a folder of its name.
        models: Names to serve the model under; several simulate several models on one server.
        distinct: Whether each name has its own files, so that no two share weights.
        beam_size: Beam size of every translation.
        max_decoding_length: Limit on the tokens of an answer, its prefix included.
        cores: Cores that a contender may use.
        device: Where all contenders translate: `cpu` or `gpu`.
        given: `source` as ct2-prepare wrote it earlier; it is used in its own quantization.
    """

    source: str
    folder: Path
    models: tuple[str, ...] = (MODEL,)
    distinct: bool = False
    beam_size: int = 1
    max_decoding_length: int = 256
    cores: int = field(default_factory=count_cores)
    device: str = "cpu"
    given: PreparedModel | None = None

    def prepared(self, precision: str) -> PreparedModel:
        """Return the model as ct2-prepare writes it in a quantization; the first call prepares it.

        Its config has this setup's device, beam size and limit. Callers must not change it.
        """
        from ct2_triton.prepare import PrepareOptions, prepare
        from ct2_triton.prepared_model import PreparedModel

        repository = self.folder / "prepared" / precision
        if (repository / MODEL).is_dir():
            return PreparedModel.read(repository / MODEL)
        settings = {
            "beam_size": str(self.beam_size),
            "max_decoding_length": str(self.max_decoding_length),
        }
        if self.given and self.given.manifest["conversion"]["quantization"] == precision:
            return self._with_settings(self.given, repository / MODEL, settings)
        return prepare(
            PrepareOptions(
                self.source,
                repository,
                name=MODEL,
                quantization=precision,
                instance_kind=self.device,
                settings=settings,
            )
        )

    def _with_settings(
        self, given: PreparedModel, folder: Path, settings: Mapping[str, str]
    ) -> PreparedModel:
        """Link a prepared model's files, and write its config with this setup's settings."""
        from google.protobuf import text_format

        from ct2_triton.model_versions import read_config
        from ct2_triton.prepared_model import PreparedModel

        folder.mkdir(parents=True)
        for file in given.directory.iterdir():
            if file.name != given.config_file.name:
                (folder / file.name).symlink_to(file.resolve())
        config = read_config(given.directory)
        config.name = MODEL
        for group in config.instance_group:
            group.kind = group.Kind.Value(f"KIND_{self.device.upper()}")
        for name, value in settings.items():
            config.parameters[name].string_value = value
        text = text_format.MessageToString(config, as_utf8=True)
        (folder / given.config_file.name).write_text(text, encoding="utf-8")
        return PreparedModel.read(folder)

    @property
    def title(self) -> str:
        """Name of the model in reports: its source, or the shape that was made for this run."""
        made = Path(self.source).parent == self.folder
        return f"{Path(self.source).name} (--shape)" if made else self.source

    def checkpoint(self) -> Path:
        """Return the folder of the Hugging Face checkpoint."""
        from ct2_triton.prepare.source import find_checkpoint

        return find_checkpoint(self.source, None, self.folder).folder


def find_prepared(model: str) -> PreparedModel | None:
    """Return the prepared model in a folder; None if `model` names anything else."""
    from ct2_triton.prepared_model import MANIFEST_NAME, PreparedModel

    folder = Path(model)
    return PreparedModel.read(folder) if (folder / MANIFEST_NAME).is_file() else None
