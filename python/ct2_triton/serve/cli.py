# SPDX-License-Identifier: Apache-2.0
"""Serve translation models with a tritonserver, or install the backend into one of your own.

  ct2-serve demo                               a small model of the package, without a download
  ct2-serve facebook/nllb-200-distilled-600M   prepares it first where it is missing
  ct2-serve                                    all models of the model repository
  ct2-serve --check                            says what is wrong, and translates a sentence
  ct2-serve demo -- --log-verbose=1            arguments after '--' go to tritonserver

The server is the one that TRITONSERVER names, else that on PATH, in /opt/tritonserver or in the
wheel nvidia-pytriton (extra 'server').
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from ct2_triton.arguments import chosen, count, duration, port_number
from ct2_triton.prepare.options import (
    add_preparation_arguments,
    given_options,
    preparation_options,
)
from ct2_triton.prepared_model import CONFIG_NAME, DEFAULT_TEXT, default_repository
from ct2_triton.serve import doctor, machine, model_configs
from ct2_triton.serve.backend_files import find_backend_files, install_backend
from ct2_triton.serve.chosen_models import choose_models, repository_of
from ct2_triton.serve.command import exposure_warnings
from ct2_triton.serve.errors import ModelRepositoryError, ServerStartError
from ct2_triton.serve.installation import find_server, release_warnings
from ct2_triton.serve.options import Ports, ServerOptions, check_free
from ct2_triton.serve.server import Supervisor, TritonServer
from ct2_triton.shared_files import user_cache

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from types import FrameType

PASSES_ON = True  # arguments after "--" are those of another program
_LOG = logging.getLogger(__name__)
_STANDARD_ERROR = Path("-")
_KEPT_LOGS = 5
_EXIT_TERMINATED = 128 + signal.SIGTERM
USUAL = (
    *("--model-repository", "--quantization", "--revision", "--check", "--install-backend"),
    *("--host", "--grpc-port", "--free-ports", "--log-file"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ct2-serve."""
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="models to serve: names in the repository, hub ids (owner/name), folders, or demo; "
        "what is missing is prepared as ct2-prepare does, with the options of a preparation "
        "(default: the whole repository)",
    )
    task = parser.add_mutually_exclusive_group()
    task.add_argument(
        "--model-repository",
        type=Path,
        action="append",
        metavar="FOLDER",
        help=f"folder of model folders, as ct2-prepare writes it; repeatable ({DEFAULT_TEXT})",
    )
    task.add_argument(
        "--install-backend",
        type=Path,
        metavar="FOLDER",
        help="copy the backend, self-contained, into this backends folder of a server, and exit",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="serve nothing: check server, engine, processor, GPU, ports and models, translate a "
        "sentence, and say what is wrong",
    )
    parser.add_argument(
        "--force", action="store_true", help="with --install-backend: replace an existing one"
    )
    _add_address_arguments(parser)
    parser.add_argument(
        "--log-file",
        type=Path,
        metavar="FILE",
        help="append tritonserver's log to this file; -: standard error (default: standard error; "
        "on a terminal a file, which is named; with -q a file, too)",
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        default=300.0,
        metavar="SECONDS",
        help="how long loading the models may take (default: %(default)s)",
    )
    parser.add_argument(
        "--restarts-per-minute",
        type=partial(count, least=0),
        default=5,
        metavar="N",
        help="restart the server after a crash, at most this often in 60 seconds; 0: exit instead "
        "(default: %(default)s)",
    )
    add_preparation_arguments(parser, io="auto")


def _add_address_arguments(parser: argparse.ArgumentParser) -> None:
    ports = Ports()
    names = {"http": "HTTP", "grpc": "gRPC", "metrics": "the metrics, over HTTP"}
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 for all, without any protection (default: %(default)s)",
    )
    parser.add_argument(
        "--http-host", metavar="HOST", help="another address for HTTP (default: that of --host)"
    )
    for name, port in ports._asdict().items():
        parser.add_argument(
            f"--{name}-port",
            type=partial(port_number, least=1),
            default=port,
            metavar="PORT",
            help=f"port of {names[name]} (default: %(default)s)",
        )
    parser.add_argument(
        "--free-ports",
        action="store_true",
        help="take any three free ports instead and print them",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the server ends, or install the backend; return tritonserver's exit code."""
    if args.install_backend is not None:
        target = install_backend(args.install_backend, find_backend_files(), replace=args.force)
        print(f"installed the backend in {target}")
        return 0
    _check_server_arguments(args.passed_on)
    if args.check:
        return _check(args)
    _check_start(args)
    signal.signal(signal.SIGTERM, _exit_on_signal)
    with _open_log(args.log_file) as log:
        options = _options(args, _repositories(args), log)
        for warning in exposure_warnings(options):
            _LOG.warning(warning)
        _check_model_configs(options)
        server = TritonServer(options)
        supervisor = Supervisor(
            server,
            start_timeout_s=args.timeout,
            most_restarts=args.restarts_per_minute,
        )
        return supervisor.run(partial(_print_ready, server))


def _check_start(args: argparse.Namespace) -> None:
    """Check the conditions of a start before a long preparation of a model."""
    find_server()
    find_backend_files()
    options = _options(args, [])
    if args.models and options.ports is not None:
        check_free(options.hosts, options.ports)


def _options(
    args: argparse.Namespace, repositories: list[Path], log: TextIO | None = None
) -> ServerOptions:
    ports = Ports(args.http_port, args.grpc_port, args.metrics_port)
    more = {"ports": None if args.free_ports else ports, "server_arguments": args.passed_on}
    return chosen(ServerOptions, args, model_repositories=repositories, log=log, **more)


def _check(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if anything is wrong, else 0."""
    options = _options(args, args.model_repository or [default_repository()])
    wrong = 0
    for finding in doctor.examine(options, args.models, args.timeout):
        wrong += finding.is_wrong
        print(
            f"{'wrong' if finding.is_wrong else 'ok':6}{finding.what:13}{finding.text}", flush=True
        )
    return int(wrong > 0)


def _check_server_arguments(arguments: list[str]) -> None:
    # tritonserver has only options; it answers anything else with 400 lines of usage.
    if arguments and not arguments[0].startswith("-"):
        raise ServerStartError(
            f"unexpected argument {arguments[0]!r} after '--'; models are named before it"
        )


def _repositories(args: argparse.Namespace) -> list[Path]:
    """Return the repositories for the server: whole ones, or one of the named models."""
    repositories = args.model_repository or [default_repository()]
    given = given_options(args)
    if args.models:
        make_options = partial(preparation_options, args)
        chosen = choose_models(args.models, repositories, _LOG.info, make_options, given)
        return [repository_of(chosen)]
    if given:
        flags = ", ".join(f"--{name}" for name in given)
        _LOG.warning("%s: nothing is prepared, since no MODEL is named", flags)
    if all(map(_is_empty, repositories)) and "--model-control-mode" not in " ".join(args.passed_on):
        raise ModelRepositoryError(
            f"{', '.join(map(str, repositories))} has no model: name one that is to be prepared, "
            "as in ct2-serve demo"
        )
    return [_of_models(repository, args.passed_on) for repository in repositories]


def _is_empty(repository: Path) -> bool:
    """Return whether no folder in it is a model."""
    if not repository.is_dir() or (repository / CONFIG_NAME).exists():
        return False  # the reader of configs has a better message
    folders = sum(entry.is_dir() for entry in repository.iterdir())
    return folders == len(model_configs.other_folders(repository))


def _of_models(repository: Path, passed_on: Sequence[str]) -> Path:
    """Return the repository, or links to its models if it has other folders, too."""
    if not repository.is_dir() or not (others := model_configs.other_folders(repository)):
        return repository
    names = ", ".join(map(str, others))
    if "--model-control-mode" in " ".join(passed_on):  # it may load models that come later
        _LOG.warning("%s: no models; tritonserver ends where it tries to load them", names)
        return repository
    _LOG.warning("%s: left out, since they are no models", names)
    return repository_of(
        [entry for entry in repository.iterdir() if entry.is_dir() and entry not in others]
    )


def _check_model_configs(options: ServerOptions) -> None:
    configs = model_configs.read_model_configs(options.model_repositories)
    for warning in model_configs.warnings(configs):
        _LOG.warning(warning)
    calls = any(config.may_call_at_int8 for config in configs)
    if calls and machine.int8_calls_are_inexact({**os.environ, **options.environment}):
        _LOG.warning(machine.INEXACT_INT8)
    if machine.count_gpus() > 0:
        _check_cublas()
    if not machine.lacks_gpu(options.environment):
        return
    complaints = model_configs.gpu_complaints(configs)
    if not complaints:
        return
    # With one of these flags, the server can run without the models in question.
    if options.has_argument("--model-control-mode") or options.has_argument("--exit-on-error"):
        for complaint in complaints:
            _LOG.warning(complaint)
        return
    raise ModelRepositoryError("\n".join(complaints))


def _check_cublas() -> None:
    if not machine.has_cublas():
        _LOG.warning(
            f"CTranslate2 needs {machine.CUBLAS} on a GPU and the loader does not find it: models "
            "on a GPU will fail; 'pip install nvidia-cublas-cu12', or put it on LD_LIBRARY_PATH"
        )


def _print_ready(server: TritonServer) -> None:
    for warning in release_warnings(server.options, server.version()):
        _LOG.warning(warning)
    states = server.model_states()
    for state in states:
        if state.state == "UNAVAILABLE":
            _LOG.warning(f"model '{state.name}' is not available: {state.reason}")
    ready = sorted({state.name for state in states if state.state == "READY"})
    print(f"ready; models: {', '.join(ready) or 'none'}")
    print(f"  gRPC     {server.grpc_url}")
    print(f"  HTTP     {server.http_url}")
    print(f"  metrics  {server.metrics_url}", flush=True)


def _exit_on_signal(_signal_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(_EXIT_TERMINATED)


def _new_log_file() -> Path:
    """Return a new log file, and remove the oldest logs."""
    folder = user_cache() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    old = sorted(folder.glob("tritonserver-*.log"), key=lambda file: file.stat().st_mtime)
    for file in old[: -_KEPT_LOGS + 1]:
        file.unlink(missing_ok=True)
    return folder / f"tritonserver-{os.getpid()}.log"


@contextlib.contextmanager
def _open_log(path: Path | None) -> Iterator[TextIO]:
    is_quiet = not _LOG.isEnabledFor(logging.WARNING)
    if path == _STANDARD_ERROR or (path is None and not (is_quiet or sys.stderr.isatty())):
        yield sys.stderr
        return
    if path is None:
        path = _new_log_file()
        _LOG.info("tritonserver's log: %s", path)
    try:
        log = path.open("a", encoding="utf-8")
    except OSError as error:
        raise ServerStartError(f"cannot write the log file {path}: {error.strerror}") from error
    try:
        yield log
    finally:
        with contextlib.suppress(OSError):  # a full disk: the buffered rest is lost
            log.close()
