# SPDX-License-Identifier: Apache-2.0
"""Find the models of a command line, and prepare missing ones."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.interrupts import WHOLE_MODELS, interrupts_say
from ct2_triton.prepare import shipped
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    MANIFEST_NAME,
    STREAM_SUFFIX,
    TEXT_SUFFIX,
    PreparedModel,
)
from ct2_triton.serve.errors import ModelRepositoryError
from ct2_triton.shared_files import linked_folder, user_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepared_model import ModelSource

    MakeOptions = Callable[[str, Path], PrepareOptions]

# Suffixes of the models that share the files of a token-ID model and are served with it.
_BESIDE = (TEXT_SUFFIX, STREAM_SUFFIX)


def choose_models(
    sources: Sequence[str],
    repositories: Sequence[Path],
    report: Callable[[str], None],
    make_options: MakeOptions,
    given: Sequence[str] = (),
) -> list[Path]:
    """Find the folder of each model, and prepare those without one.

    Args:
        sources: Names of models in a repository, their folders, hub IDs, folders of checkpoints, or
            `demo`.
        repositories: Where models are looked for; the first receives prepared models.
        report: Called with a line of text for each step of a preparation.
        make_options: Makes the options of a preparation from a source and a repository.
        given: Names of the options that were given.

    Returns:
        The distinct folders, in order, then the text models that share their files.

    Raises:
        ModelRepositoryError: If a name is ambiguous, a source is a repository, or a model was
            prepared with other options than those given.
        PrepareError: If a preparation failed.
    """
    chosen: dict[str, Path] = {}
    for source in sources:
        folder = _existing(source, repositories)
        options = make_options(source, repositories[0])
        if folder is None:
            folder = _prepare(options, report)
        else:
            _check_as_asked(folder, options, given, report)
        if chosen.setdefault(folder.name, folder).resolve() != folder.resolve():
            raise ModelRepositoryError(
                f"{chosen[folder.name]} and {folder} are both the model '{folder.name}': a server "
                "can have one of them"
            )
    for folder in tuple(chosen.values()):
        for suffix in _BESIDE:
            text = folder.with_name(folder.name + suffix)
            if (text / CONFIG_NAME).is_file():
                chosen.setdefault(text.name, text)
    return list(chosen.values())


def repository_of(models: Sequence[Path]) -> Path:
    """Make a folder of links in the user's cache: a repository with only these models."""
    try:
        links = {folder.name: folder.resolve() for folder in models}
        return linked_folder(user_cache() / "repositories", links)
    except OSError as error:
        raise ModelRepositoryError(f"cannot put the models together: {error}") from error


def _existing(source: str, repositories: Sequence[Path]) -> Path | None:
    """Find an existing model; None for one that must be prepared."""
    folder = Path(source).expanduser()
    if (folder / CONFIG_NAME).is_file():
        return folder.resolve()  # so that "." has a name
    if folder.is_dir() and any(folder.glob(f"*/{CONFIG_NAME}")):
        raise ModelRepositoryError(
            f"{source} is a model repository: name it with --model-repository, or name its models"
        )
    name = _name(source, repositories[0])
    found = (repository / name for repository in repositories)
    model = next((one for one in found if (one / CONFIG_NAME).is_file()), None)
    if model is not None and source != name:
        _check_origin(model, source)
    return model


def _check_origin(model: Path, source: str) -> None:
    """Refuse a model of the same name that was prepared from something else."""
    origin = PreparedModel.read(model).source if (model / MANIFEST_NAME).is_file() else None
    if origin is not None and _is_of(origin, source):
        return
    known = (origin.path or origin.id) if origin else "something unknown"
    gone = origin is not None and origin.path is not None and not Path(origin.path).exists()
    raise ModelRepositoryError(
        f"{model} is not {source}: it was prepared from {known}"
        f"{', which is no longer there and may have been moved' if gone else ''}; serve it as "
        f"{model.name}, or prepare {source} with ct2-prepare --name"
    )


def _is_of(origin: ModelSource, source: str) -> bool:
    """Return whether a model was prepared from a source that is not its name."""
    path = Path(source).expanduser().resolve()
    if origin.path is not None:
        return path == Path(origin.path)
    if not path.exists():
        return origin.id == source
    # A record of an earlier version has only the path that was given.
    is_local = origin.revision is None and origin.id != shipped.NAME
    return is_local and path == Path(origin.id).expanduser().resolve()


def _check_as_asked(
    model: Path, options: PrepareOptions, given: Sequence[str], report: Callable[[str], None]
) -> None:
    """Refuse a prepared model of another type or revision; report options that have no effect."""
    if not given or not (model / MANIFEST_NAME).is_file():
        return
    prepared = PreparedModel.read(model)
    of_record = {
        "quantization": {prepared.manifest.get("conversion", {}).get("quantization")},
        "revision": {prepared.source.revision, prepared.source.commit},
    }
    for name, values in of_record.items():
        known = values - {None}
        if name in given and known and getattr(options, name) not in known:
            raise ModelRepositoryError(
                f"{model} was prepared with --{name} {' = '.join(sorted(known))}, not "
                f"{getattr(options, name)}: replace it with ct2-prepare --force, or prepare "
                "another one with ct2-prepare --name"
            )
    if late := [f"--{name}" for name in given if name not in of_record]:
        report(
            f"{model.name} is prepared already, without regard to {', '.join(late)}; ct2-prepare "
            "--force prepares it again"
        )


def _name(source: str, repository: Path) -> str:
    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepare.pipeline import model_name

    return model_name(PrepareOptions(source, repository))


def _prepare(options: PrepareOptions, report: Callable[[str], None]) -> Path:
    from ct2_triton.prepare.child import prepare_in_child

    source, repository = options.source, options.model_repository
    there = {path.parent.name for path in repository.glob(f"*/{CONFIG_NAME}")} | {"demo"}
    near = difflib.get_close_matches(source, sorted(there - {source}), 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    report(f"{source} is not in {repository}{hint}: preparing it")
    with interrupts_say(WHOLE_MODELS):
        return prepare_in_child(options, report)
