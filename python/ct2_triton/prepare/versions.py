# SPDX-License-Identifier: Apache-2.0
"""Add a prepared model to another as a new version, which is served after a promotion.

All versions of a model share its tokenizer, languages and config.pbtxt, so that a client can send
the same IDs to any of them. A version that does not fit these is refused.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from ct2_triton.errors import OutputError, VersionError
from ct2_triton.model_versions import (
    FIRST,
    has_policy,
    keep_serving,
    read_config,
    served_versions,
    versions_in,
    versions_served,
)
from ct2_triton.prepare.model_config import check_text_models, text_models
from ct2_triton.prepare.writing import check_output, move, staged, written_at_once
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    LANGUAGES_NAME,
    MANIFEST_NAME,
    TOKENIZER_NAME,
    TokenRules,
    read_json,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tritonclient.grpc.model_config_pb2 import ModelConfig

    from ct2_triton.prepare.options import PrepareOptions


def check_place(output: Path, options: PrepareOptions) -> None:
    """Refuse early what would make writing a model or version fail at the end."""
    if options.as_version is not None:
        _check_version(output, options.as_version)
        return
    check_output(output, force=options.force)
    check_text_models(output, options)


def written(output: Path, options: PrepareOptions) -> AbstractContextManager[Path]:
    """Yield a temporary folder for a whole model, and move it in place after the block.

    It becomes a new model, with the text models that the block writes next to it, or a version of
    an existing one. After an exception, nothing is changed.
    """
    if options.as_version is not None:
        return _added(output, options.as_version)
    return written_at_once(output, force=options.force, beside=text_models(output, options))


@contextmanager
def _added(model: Path, version: int) -> Iterator[Path]:
    _check_version(model, version)
    with staged(model) as folder:
        yield folder
        check_compatible(model, folder)
        _check_version(model, version)  # another process may have added it
        keep_serving(model)
        _write_record(folder, version)
        try:
            move(folder / str(FIRST), model / str(version))
        except OSError as error:
            raise OutputError(
                f"cannot put version {version} of {model} in place: {error.strerror}"
            ) from error


def _check_version(model: Path, version: int) -> None:
    if not (model / MANIFEST_NAME).is_file():
        raise VersionError(
            f"{model} is not a prepared model, so there is nothing to add version {version} to; "
            "prepare it without --as-version, or choose the model with --name"
        )
    there = versions_in(model)
    if version in there:
        raise VersionError(
            f"{model} has a version {version} already, and no version is replaced; the next is "
            f"{there[-1] + 1}"
        )
    read_config(model)  # refuse an unreadable config before the conversion
    if has_policy(model) and version in served_versions(model, sorted((*there, version))):
        raise VersionError(
            f"the version_policy in {model / CONFIG_NAME} would have version {version} served at "
            f"once: have it name the versions to serve, "
            f"version_policy {{ specific {{ versions: {list(versions_served(model))} }} }}"
        )


def _write_record(folder: Path, version: int) -> None:
    """Move the record of the whole model into the folder of its only version."""
    record = read_json(folder / MANIFEST_NAME)
    start = f"{FIRST}/"
    files = {
        name.removeprefix(start): digest
        for name, digest in record.pop("files").items()
        if name.startswith(start)
    }
    write_json(
        folder / str(FIRST) / MANIFEST_NAME, {**record, "model_version": version, "files": files}
    )


_SHOWN = 5
_SHOWN_LETTERS = 60
# They describe a tokenizer; their effect is in languages.json, which is compared separately.
_DESCRIPTIONS = {LANGUAGES_NAME, "tokenizer_config.json", "special_tokens_map.json"}
# They do not change IDs.
_UNIMPORTANT_RULES = {"languages", "placeholders", "tokenizer_class"}
# Parameters that name files of a version.
_OF_FILES = ("model_path", "use_vmap", "vmap_prefix_ids", "vmap_source_ids")


def check_compatible(model: Path, candidate: Path) -> None:
    """Raise VersionError if a complete new model cannot become a version of another."""
    differences = [*_rules(model, candidate), *_files(model, candidate), *_config(model, candidate)]
    if differences:
        raise VersionError(
            f"this cannot be a version of {model}: {'; '.join(differences)}. Prepare it under a "
            "--name of its own, or make them equal"
        )


def _rules(model: Path, candidate: Path) -> Iterator[str]:
    """Yield differences of the token rules and languages."""
    old = TokenRules.read(model / TOKENIZER_NAME)
    new = TokenRules.read(candidate / TOKENIZER_NAME)
    for name in (entry.name for entry in fields(TokenRules)):
        there, here = getattr(old, name), getattr(new, name)
        if name not in _UNIMPORTANT_RULES and there != here:
            yield f"{name} is {_short(there)} there and {_short(here)} here"
    there, here = (  # names for people may differ
        {entry.code: replace(entry, name="") for entry in rules.languages} for rules in (old, new)
    )
    if missing := [code for code in there if code not in here]:
        yield f"it lacks the languages {_list(missing)}"
    if added := [code for code in here if code not in there]:
        yield f"the model lacks the languages {_list(added)}"
    if changed := [code for code in there if code in here and there[code] != here[code]]:
        yield f"these languages have other ids or names: {_list(changed)}"


def _files(model: Path, candidate: Path) -> Iterator[str]:
    """Yield differences of the tokenizer files and vocabularies."""
    old, new = _contents(model), _contents(candidate)
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"only the new version has {name}"
        elif name not in new:
            yield f"only the model has {name}"
        elif old[name].read_bytes() != new[name].read_bytes():
            yield f"{name} differs"


def _contents(model: Path) -> dict[str, Path]:
    tokenizer = {
        f"{TOKENIZER_NAME}/{path.name}": path
        for path in (model / TOKENIZER_NAME).iterdir()
        if path.name not in _DESCRIPTIONS
    }
    versions = versions_in(model)
    weights = model / str(versions[0]) / "model" if versions else model
    return tokenizer | {path.name: path for path in weights.glob("*vocabulary*")}


def _config(model: Path, candidate: Path) -> Iterator[str]:
    """Yield differences of the tensors, and of parameters that the new version sets."""
    old, new = read_config(model), read_config(candidate)
    for kind in ("input", "output"):
        there, here = (
            [(tensor.name, tensor.data_type) for tensor in getattr(config, kind)]
            for config in (old, new)
        )
        if there != here:
            names = [", ".join(name for name, _ in tensors) for tensors in (there, here)]
            yield f"the {kind} tensors are {names[0]} there and {names[1]} here (--io)"
    set_there, set_here = _parameters(old), _parameters(new)
    for name in sorted({*set_here, *_OF_FILES}):
        value, wanted = set_there.get(name), set_here.get(name)
        if value != wanted:
            yield (
                f"parameter {name} is {_short(value)} in {model / CONFIG_NAME} and "
                f"{_short(wanted)} here (--set)"
            )


def _parameters(config: ModelConfig) -> Mapping[str, str]:
    return {name: value.string_value for name, value in config.parameters.items()}


def _short(value: object) -> str:
    if value is None:
        return "not set"
    text = repr(value)
    return text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}..."


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
