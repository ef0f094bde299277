# SPDX-License-Identifier: Apache-2.0
"""ct2-serve --check: check what serving needs, and translate a sentence."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.checksums import verify
from ct2_triton.engine_library import load_core
from ct2_triton.errors import Ct2TritonError, PreparedModelError
from ct2_triton.model_versions import followed_by
from ct2_triton.prepared_model import CONFIG_NAME, MANIFEST_NAME, TOKENIZER_NAME, TokenRules
from ct2_triton.serve import machine, model_configs
from ct2_triton.serve.backend_files import find_backend_files
from ct2_triton.serve.errors import ModelRepositoryError
from ct2_triton.serve.installation import find_server
from ct2_triton.serve.options import check_free
from ct2_triton.serve.server import TritonServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ct2_triton.serve.options import ServerOptions

_TEXT = "The ticket office opens at 5:45."  # known to the demo model


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        what: What was checked.
        text: A sentence about the result.
        is_wrong: Whether serving will fail, at least for some models.
    """

    what: str
    text: str
    is_wrong: bool = False


def examine(options: ServerOptions, models: Sequence[str], timeout_s: float) -> Iterator[Finding]:
    """Check the server, the engine, the machine and the models, and translate a sentence.

    Without names, all models of the repository are tried, or the demo model in a temporary folder
    if there is none. Findings are yielded as soon as they are known.
    """
    for what, check in (
        ("server", _server),
        ("engine", _engine),
        ("processor", _processor),
        ("GPU", _gpu),
    ):
        yield from _guarded(what, check)
    if options.ports is not None:
        yield from _guarded("ports", lambda: _ports(options))
    with contextlib.ExitStack() as stack:
        folders: list[Path] = []

        def choose() -> Iterator[str]:
            folders.extend(_chosen(options, models) or [_demo(stack)])
            return _describe(options, folders)

        yield from _guarded("models", choose)
        if folders:
            yield from _guarded("translation", lambda: _translations(options, folders, timeout_s))


def _guarded(what: str, check: Callable[[], Iterator[str]]) -> Iterator[Finding]:
    """Run a check; its error becomes a finding."""
    try:
        for text in check():
            yield Finding(what, text)
    except (Ct2TritonError, ImportError, OSError, RuntimeError) as error:
        yield Finding(what, str(error), is_wrong=True)


def _server() -> Iterator[str]:
    yield f"{find_server().executable}"


def _engine() -> Iterator[str]:
    files = find_backend_files()
    core = load_core()
    core.check_library()
    yield f"CTranslate2 {core.library_version()} (package {version('ctranslate2')}), {files.plugin}"


def _processor() -> Iterator[str]:
    core = load_core()
    fastest = core.kernels()[0]
    slow = "; this processor lacks AVX2: int8 will be slow" if fastest == "plain" else ""
    yield f"{core.usable_cores()} cores, int8 with {fastest}{slow}"
    if machine.int8_calls_are_inexact():
        yield machine.INEXACT_INT8


def _gpu() -> Iterator[str]:
    count = machine.count_gpus()
    if count and not machine.has_cublas():
        raise ModelRepositoryError(
            f"{count} found, but not {machine.CUBLAS}: 'pip install nvidia-cublas-cu12', or put it "
            "on LD_LIBRARY_PATH"
        )
    yield f"{count} found" if count else "none: models decode on the CPU"


def _ports(options: ServerOptions) -> Iterator[str]:
    assert options.ports is not None  # noqa: S101
    check_free(options.hosts, options.ports)
    yield f"{', '.join(map(str, options.ports))} of {options.host} are free"


def _chosen(options: ServerOptions, names: Sequence[str]) -> list[Path]:
    """Find the models to serve; nothing is prepared."""
    found = {
        path.parent.name: path.parent.resolve()
        for repository in reversed(options.model_repositories)
        for path in sorted(repository.glob(f"*/{CONFIG_NAME}"))
    }
    places = ", ".join(map(str, options.model_repositories))
    for name in names:
        if name not in found:
            there = ", ".join(sorted(found)) or "none"
            raise ModelRepositoryError(
                f"{places} has no model {name!r} (there: {there}): ct2-serve {name} prepares it"
            )
    return [folder for name, folder in found.items() if not names or name in names]


def _demo(stack: contextlib.ExitStack) -> Path:
    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepare.pipeline import prepare

    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return prepare(PrepareOptions("demo", Path(folder))).directory


def _describe(options: ServerOptions, folders: Sequence[Path]) -> Iterator[str]:
    with _only(folders) as repository:
        configs = model_configs.read_model_configs([repository])
        complaints = model_configs.warnings(configs)
        if machine.lacks_gpu(options.environment):
            complaints += model_configs.gpu_complaints(configs)
        if complaints:
            raise ModelRepositoryError("\n".join(complaints))
        yield f"{', '.join(sorted(folder.name for folder in folders))}: configs are fine"
        for place in filter(Path.is_dir, options.model_repositories):
            for other in model_configs.other_folders(place):
                yield f"{other}: left out, since it is no model"
        notes = verify_models([repository])
        yield "; ".join(["files are those that were prepared", *notes])


@contextlib.contextmanager
def _only(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield a repository of only these models."""
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            (Path(scratch) / folder.name).symlink_to(folder)
        yield Path(scratch)


def _translations(
    options: ServerOptions, folders: Sequence[Path], timeout_s: float
) -> Iterator[str]:
    """Start a server for this machine only, on free ports, and translate with every model."""
    with _only(folders) as repository:
        server = TritonServer(
            replace(
                options,
                model_repositories=[repository],
                host="127.0.0.1",
                http_host=None,
                ports=None,
                log=None,
            )
        )
        try:
            server.start(timeout_s)
            for folder in folders:
                yield _translation(server, folder)
        finally:
            server.stop()


def _translation(server: TritonServer, folder: Path) -> str:
    if not (folder / MANIFEST_NAME).is_file():
        return f"{folder.name} was loaded; only models with a tokenizer folder are tried"
    from ct2_triton.client import SyncTranslationClient

    rules = TokenRules.read(folder / TOKENIZER_NAME)
    sources = [one.code for one in rules.languages if one.source]
    sources.sort(key=lambda code: not code.startswith("en"))
    source = next(iter(sources), None)
    target = next((one.code for one in rules.languages if one.target and one.code != source), None)
    with SyncTranslationClient(server.grpc_url, folder.name, repository=folder.parent) as client:
        answer = client.translate(_TEXT, source=source, targets=target)
    return f"{folder.name}: {_TEXT!r} -> {answer.text!r} ({answer.target or 'no target language'})"


def verify_models(repositories: Sequence[Path]) -> list[str]:
    """Check every prepared model of some repositories, and ignore other models.

    Returns a sentence for each difference that is not damage, and for each model with its own files
    but without a manifest.
    """
    notes: list[str] = []
    damages: list[str] = []
    for folder in sorted(
        entry for repository in repositories for entry in repository.iterdir() if entry.is_dir()
    ):
        if not (folder / MANIFEST_NAME).is_file():
            if followed_by(folder) is None:
                notes.append(f"{folder.name} has no {MANIFEST_NAME}: its files were not verified")
            continue
        try:
            notes += verify(folder.resolve())
        except PreparedModelError as error:
            damages.append(str(error))
    if damages:
        raise ModelRepositoryError("\n".join(damages))
    return notes
