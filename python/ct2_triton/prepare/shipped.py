# SPDX-License-Identifier: Apache-2.0
"""The demo model in the package, prepared without network, PyTorch or transformers.

`demo_model/` of the package has `checkpoint/`, a Hugging Face checkpoint in float16, and the result
of ct2-prepare with its defaults: `model/`, `languages.json`, and `ct2_model.json` with the part of
the record that is valid for every copy.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import SourceError
from ct2_triton.prepare.checkpoint import Checkpoint
from ct2_triton.prepare.triton_config import Parameter
from ct2_triton.prepared_model import (
    LANGUAGES_NAME,
    MANIFEST_NAME,
    ModelSource,
    TokenRules,
)

if TYPE_CHECKING:
    from ct2_triton.prepare.generation import OwnSearch
    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepare.options import PrepareOptions

NAME = "demo"
"""The source name of this model; a folder of that name is `./demo`."""

VOCABULARY_NAME = "shared_vocabulary.json"

ALIGNMENT = Parameter(
    "alignment_heads", "[1]", "Live captions commit words earlier with it than with the first head."
)

FOLDER = Path(__file__).resolve().parents[1] / "demo_model"


def checkpoint(revision: str | None = None) -> Checkpoint:
    """Return the shipped checkpoint."""
    if revision is not None:
        raise SourceError(f"{NAME} is the model in the package: it has no revision {revision!r}")
    return Checkpoint(FOLDER / "checkpoint", ModelSource(id=NAME, license="apache-2.0"))


def is_ready(options: PrepareOptions) -> bool:
    """Return whether the package has exactly the requested conversion."""
    if options.source != NAME:
        return False
    return bool(options.quantization == _record()["conversion"]["quantization"])


def with_alignment(search: OwnSearch) -> OwnSearch:
    """Add the attention head of this model that aligns best, which its statistics are of."""
    return replace(search, parameters=(*search.parameters, ALIGNMENT))


def copy_statistics(model: Path) -> None:
    """Copy the statistics for the verdicts to a conversion with weights of another type."""
    from ct2_triton.prepare.quality import FILE_NAME

    shutil.copyfile(FOLDER / "model" / FILE_NAME, model / FILE_NAME)


def fill(new: NewModel) -> None:
    """Write all files of the model from the package, and last the manifest with the checksums."""
    from ct2_triton.prepare.conversion import copy_tokenizer
    from ct2_triton.prepare.families import ExpectedVocabulary
    from ct2_triton.prepare.families.prefixed import NLLB
    from ct2_triton.prepare.generation import own_search
    from ct2_triton.prepare.model_config import write_config
    from ct2_triton.prepare.quality import add_quality
    from ct2_triton.prepare.shortlist import build_shortlist
    from ct2_triton.prepare.verification.shortlist import add_shortlist
    from ct2_triton.prepare.writing import write_manifest

    new.report(f"{NAME}: the model in the package, already converted")
    source = checkpoint(new.options.revision)
    rules = TokenRules.read(FOLDER)
    new.tokenizer.mkdir()
    copy_tokenizer(source, new.tokenizer)
    shutil.copyfile(FOLDER / LANGUAGES_NAME, new.tokenizer / LANGUAGES_NAME)
    tokens = json.loads((FOLDER / "model" / VOCABULARY_NAME).read_text(encoding="utf-8"))
    shortlist = build_shortlist(new, rules, NLLB(), ExpectedVocabulary(tuple(tokens)))
    search = with_alignment(own_search(source, rules))
    parameters = write_config(new, source, rules, search, shortlist)
    new.weights.mkdir(parents=True)
    for file in (FOLDER / "model").iterdir():
        shutil.copyfile(file, new.weights / file.name)
    record = _record()
    results = {name: record[name] for name in ("family", "repairs", "verification", "placeholders")}
    results["generation"] = search.record
    results |= add_shortlist(new, rules, shortlist)
    results |= add_quality(new, rules, parameters)
    write_manifest(new, source.source, record["versions"], results)


def _record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads((FOLDER / MANIFEST_NAME).read_text(encoding="utf-8"))
    return record
