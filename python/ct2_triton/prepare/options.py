# SPDX-License-Identifier: Apache-2.0
"""The options of a preparation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# The types that CTranslate2 can store weights in.
QUANTIZATIONS = (
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
    "float16",
    "bfloat16",
    "float32",
)
INSTANCE_KINDS = ("auto", "cpu", "gpu")
# What clients send and receive.
IO_CHOICES = ("ids", "text", "both", "stream", "auto")


@dataclass(frozen=True)
class ShortlistOptions:
    """The vocabulary shortlist to make.

    Attributes:
        entries: `language=file` counts the pieces of a text; `language` takes every piece of the
            language's script; for a model with one target language, `file` suffices.
        size: Pieces per language: the most frequent of its text, then, if the text has fewer, the
            first of its script in the vocabulary; None: all of the text, or of the script.
        licence: Licence of the texts, as stated by the caller.
        union: One list for all languages (vmap.txt) instead of one for each (shortlists.json).
    """

    entries: tuple[str, ...]
    size: int | None = None
    licence: str | None = None
    union: bool = False


@dataclass(frozen=True)
class PrepareOptions:
    """One preparation.

    Attributes:
        source: Hub id (`facebook/nllb-200-distilled-600M`), a local directory, a package
            (`.argosmodel`, `.zip`), or `demo`.
        model_repository: Triton's model repository; created if it does not exist.
        name: The model's name in Triton; None derives it from the source.
        revision: Branch, tag or commit on the hub; None is the default branch.
        quantization: Type of the stored weights, of `QUANTIZATIONS`.
        instance_kind: Where Triton runs it, of `INSTANCE_KINDS`; auto: on a GPU if there is one.
        max_batch_size: Rows that Triton may put into one batch; 0 switches batching off.
        settings: Backend parameters by name, in place of the defaults written.
        shortlist: Vocabulary shortlist to make and switch on; None: none.
        language_pair: `en:de` for a converted model that does not say what it translates.
        io: What clients send and receive, of `IO_CHOICES`; both: `<name>` takes IDs and
            `<name>-text` takes text, with the same files; stream: also `<name>-stream`, which sends
            text as it is generated; auto: stream, or ids if the backend cannot tokenize for the
            model.
        placeholders: Whether to find out which placeholders the model copies (docs/terms.md).
        quality_texts: `FILE` or `FROM:TO,TO,...=FILE`: sentences from which the statistics of the
            verdicts are made (docs/quality.md).
        force: Replace a model of this name.
        as_version: Add the result to an existing model as this version; None: a new model.
    """

    source: str
    model_repository: Path
    name: str | None = None
    revision: str | None = None
    quantization: str = "int8"
    instance_kind: str = "auto"
    max_batch_size: int = 256
    settings: Mapping[str, str] = field(default_factory=dict)
    shortlist: ShortlistOptions | None = None
    language_pair: str | None = None
    io: str = "ids"
    placeholders: bool = True
    quality_texts: tuple[str, ...] = ()
    force: bool = False
    as_version: int | None = None
