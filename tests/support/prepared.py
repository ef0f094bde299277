# SPDX-License-Identifier: Apache-2.0
"""Prepared models made of the tiny checkpoints, by ct2-prepare itself."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import ct2_triton
from ct2_triton import engine_library
from ct2_triton.prepare.options import PrepareOptions
from ct2_triton.prepare.pipeline import prepare
from ct2_triton.prepared_model import PreparedModel
from support.checkout import ROOT
from support.made_once import made_once
from support.tiny import tiny_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.tiny import TinyOptions

_CACHE = ROOT / "build" / "prepared-models"
# Options that name files, or need what is in the repository already: each call prepares anew.
_ANEW = {"as_version", "force", "quality_texts", "shortlist"}
# Variables that choose how the core computes, and so what a proof says.
_VARIABLES = ("CT2_TRITON_KERNELS", "CT2_USE_MKL", "DNNL_MAX_CPU_ISA")


@contextmanager
def proofs_of(tokens: int) -> Iterator[None]:
    """Lets proofs compare so many tokens of each sentence, and not 32 or 24.

    The proof is most of the work of preparing a tiny model; where it is not the subject, few do.
    """
    from ct2_triton.prepare import loop_proof
    from ct2_triton.prepare.verification import own_search, proof

    with ExitStack() as stack:
        for module in (own_search, proof):
            stack.enter_context(patch.object(module, "_MAX_OUTPUT_TOKENS", tokens))
        few = {**loop_proof._GREEDY, "max_decoding_length": min(tokens, 24)}
        stack.enter_context(patch.object(loop_proof, "_GREEDY", few))
        yield


@contextmanager
def loops_proved_once() -> Iterator[None]:
    """Lets this process prove the loops of a model once, whatever repository it is prepared in.

    A proof's id is that of the files, the compute type and the build of the core.
    """
    from ct2_triton.prepare import loop_proof

    prove = loop_proof._proof
    proofs: dict[tuple[str, int], dict[str, Any]] = {}

    def once(core: ModuleType, model: Path, compute_type: str) -> dict[str, Any]:
        if not isinstance(core, ModuleType):  # the core of a test, which answers otherwise
            return prove(core, model, compute_type)
        tokens = loop_proof._GREEDY["max_decoding_length"]
        try:
            key = core.proof_id(str(model), compute_type), tokens
        except core.Error:
            return prove(core, model, compute_type)
        if key not in proofs:
            proofs[key] = prove(core, model, compute_type)
        return dict(proofs[key])

    with patch.object(loop_proof, "_proof", once):
        yield


def prepare_tiny(
    family: str,
    repository: Path,
    name: str,
    tiny: TinyOptions | None = None,
    **options: Any,
) -> PreparedModel:
    """Prepares the tiny checkpoint of a family in float32, with a short proof.

    `options` are PrepareOptions's. Equal preparations are made once, kept in build/ and copied,
    unless an option names a file or what is in the repository counts.
    """
    given = {"quantization": "float32", "instance_kind": "cpu", "placeholders": False}
    options = given | options
    checkpoint = tiny_checkpoint(family, tiny)
    if _ANEW & options.keys() or (repository / name).exists():
        with proofs_of(4):
            return prepare(PrepareOptions(str(checkpoint), repository, name, **options))
    made = prepared_once(checkpoint, name, 4, **options)
    shutil.copytree(made.directory.parent, repository, dirs_exist_ok=True)
    return PreparedModel.read(repository / name)


def prepared_once(checkpoint: Path, name: str, tokens: int, **options: Any) -> PreparedModel:
    """Prepares a tiny checkpoint, with proofs of so many tokens, unless the same was done before.

    The model is the only one of its repository, in build/. Read it, do not change it.
    """
    key = hashlib.sha256(repr((checkpoint.name, name, tokens, sorted(options.items()))).encode())
    key.update(_preparing())

    def make(folder: Path) -> None:
        with proofs_of(tokens):
            prepare(PrepareOptions(str(checkpoint), folder, name, **options))

    made = made_once(_CACHE / f"{checkpoint.name}-{key.hexdigest()[:16]}", make)
    return PreparedModel.read(made / name)


@cache
def _preparing() -> bytes:
    """A digest of what prepares: the package, its core and libraries, and what the core obeys."""
    obeyed = [os.environ.get(name) for name in _VARIABLES]
    libraries = [version(name) for name in ("ctranslate2", "torch", "transformers")]
    digest = hashlib.sha256(repr((obeyed, libraries)).encode())
    for source in sorted(Path(ct2_triton.__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    try:
        digest.update(engine_library._find_core().read_bytes())
    except ImportError:
        digest.update(b"no core")
    return digest.digest()
