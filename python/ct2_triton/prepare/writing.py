# SPDX-License-Identifier: Apache-2.0
"""Write a folder atomically: it is complete, or does not exist.

A prepared model can also be added to another as a new version, which is served after a promotion.
All versions of a model share its tokenizer, languages and config.pbtxt, so that a client can send
the same IDs to any of them. A version that does not fit these is refused.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ct2_triton
from ct2_triton.checksums import checksums
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
from ct2_triton.prepare.loop_proof import loop_proofs
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    FORMAT,
    LANGUAGES_NAME,
    MANIFEST_NAME,
    TOKENIZER_NAME,
    ModelSource,
    TokenRules,
    read_json,
    write_json,
)
from ct2_triton.shared_files import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tritonclient.grpc.model_config_pb2 import ModelConfig

    from ct2_triton.prepare.options import PrepareOptions

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_output(output: Path, *, force: bool) -> None:
    """Refuse early what would make writing fail at the end."""
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise OutputError(f"{output} is not a folder; remove it or choose another --name")
    if output.exists() and not force:
        raise OutputError(f"{output} exists already; --force replaces it, --name chooses another")


@contextmanager
def written_at_once(output: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder that becomes `output` when the block ends without an exception.

    If possible, it is next to the parent of `output` instead of inside it, because Triton takes
    every folder of its model repository for a model, even hidden ones. Only one process at a time
    writes `output`; files of an earlier, killed process are removed. After any exception, including
    Ctrl-C, the folder is removed and `output` is unchanged.
    """
    check_output(output, force=force)
    with staged(output) as folder:
        yield folder
        _put_in_place(folder, output, folder.parent / "replaced", force=force)


@contextmanager
def staged(output: Path) -> Iterator[Path]:
    """Yield a temporary folder with the name of `output`, on the same file system."""
    with _staging_folder(output) as staging:
        try:
            folder = staging / output.name
            folder.mkdir()
            yield folder
        except BaseException as error:
            reason = error if isinstance(error, OSError) else error.__cause__
            if isinstance(reason, OSError) and reason.errno in _NO_ROOM:
                raise OutputError(
                    f"no room for {output}: {reason.strerror}; make some, or choose another "
                    "--model-repository"
                ) from error
            raise


@contextmanager
def _staging_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary folder under a lock; both are removed afterwards."""
    with ExitStack() as cleanup:
        try:
            made_parent = not output.parent.exists()
            output.parent.mkdir(parents=True, exist_ok=True)
            if made_parent:
                cleanup.callback(_remove_if_empty, output.parent)
            place = _staging_place(output)
            prefix = _prefix(output)
            cleanup.enter_context(locked(output))
            _sweep(place, prefix)
            staging = Path(tempfile.mkdtemp(prefix=prefix, suffix=".tmp", dir=place))
        except OSError as error:
            raise OutputError(f"cannot write to {output.parent}: {error.strerror}") from error
        cleanup.callback(shutil.rmtree, staging, ignore_errors=True)
        yield staging


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Prevent other processes from writing a model while the block runs."""

    def refuse(owner: str) -> OutputError:
        return OutputError(
            f"another ct2-prepare or ct2-models ({owner}) is writing {output}; wait until it is "
            "done, or choose another --name"
        )

    with ExitStack() as held:
        try:
            lock = _staging_place(output) / f"{_prefix(output)}lock"
            held.enter_context(exclusive(lock, refuse))
        except OSError as error:
            raise OutputError(f"cannot write to {output.parent}: {error.strerror}") from error
        yield


def _staging_place(output: Path) -> Path:
    """Find a folder on the file system of `output`, outside its parent if possible."""
    repository = output.parent.resolve()
    outside = repository.parent
    same_device = outside.stat().st_dev == repository.stat().st_dev
    return outside if same_device and os.access(outside, os.W_OK | os.X_OK) else repository


def _prefix(output: Path) -> str:
    return f".{output.parent.resolve().name}.{output.name}."


def _sweep(place: Path, prefix: str) -> None:
    """Remove files of killed preparations of the same model; the lock ensures that none runs."""
    of_mkdtemp = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}\.tmp")
    for entry in place.iterdir():
        if of_mkdtemp.fullmatch(entry.name):
            shutil.rmtree(entry, ignore_errors=True)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _put_in_place(folder: Path, output: Path, replaced: Path, *, force: bool) -> None:
    """Rename the folder to `output`; restore the replaced one if that fails."""
    check_output(output, force=force)  # it may have appeared meanwhile
    try:
        try:
            if output.exists():
                _move(output, replaced)
            folder.rename(output)
        except BaseException:
            if replaced.exists():
                shutil.rmtree(output, ignore_errors=True)
                replaced.rename(output)
            raise
    except OSError as error:
        raise OutputError(f"cannot put {output} in place: {error.strerror}") from error


def _move(folder: Path, to: Path) -> None:
    """Rename a folder, or a copy of it if it is in a layer of a container image."""
    try:
        folder.rename(to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = to.with_name(f"{to.name}.copy")
        shutil.copytree(folder, copy, symlinks=True)
        copy.rename(to)  # complete
        shutil.rmtree(folder)


def write_manifest(
    folder: Path,
    source: ModelSource,
    options: PrepareOptions,
    versions: Mapping[str, str],
    results: Mapping[str, Any],
) -> None:
    """Write the manifest, after all other files of the folder."""
    python = ".".join(map(str, sys.version_info[:3]))
    content = {
        "format": FORMAT,
        "name": folder.name,
        "source": asdict(source),
        "conversion": {
            "quantization": options.quantization,
            "instance_kind": options.instance_kind,
            "max_batch_size": options.max_batch_size,
            "settings": dict(options.settings),
        },
        "versions": {"ct2-triton": ct2_triton.__version__, "python": python, **versions},
        **results,
        "loop_proofs": loop_proofs(folder / "1" / "model", options.settings),
        "files": checksums(folder),
    }
    write_json(folder / MANIFEST_NAME, content)


def check_place(output: Path, options: PrepareOptions) -> None:
    """Refuse early what would make writing a model or version fail at the end."""
    if options.as_version is None:
        check_output(output, force=options.force)
    else:
        _check_version(output, options.as_version)


def written(output: Path, options: PrepareOptions) -> AbstractContextManager[Path]:
    """Yield a temporary folder for a whole model, and move it in place after the block.

    It becomes a new model, or a version of an existing one. After an exception, nothing is changed.
    """
    if options.as_version is None:
        return written_at_once(output, force=options.force)
    return _added(output, options.as_version)


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
            (folder / str(FIRST)).rename(model / str(version))
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
