# SPDX-License-Identifier: Apache-2.0
"""Commands of the project in processes that need not import everything first.

Imports are most of what a command does in a test. `Popen` and `run` are those of subprocess, but a
command of the project comes from `support.warm_process`, which has imported and forks: a process
with its own id, whose parent is this one, with the environment, folder and streams that are asked
for. Whatever could make it differ from a fresh one starts a fresh one.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import os
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

from support import warm_process
from support.warm_process import Request

# Read while Python starts, or by what a module imports: another value needs a fresh process.
_READ_AT_START = (
    *("CT2_TRITON_CORE", "CT2_TRITON_KERNELS", "CT2_USE_", "CT2_VERBOSE", "CUDA_", "DNNL_"),
    *("GRPC_", "HF_", "KMP_", "LANG", "LC_", "LD_", "MALLOC_", "MKL_", "OMP_", "OPENBLAS_"),
    *("PROTOCOL_BUFFERS_", "PYTHON", "TRANSFORMERS_", "TZ", "ASAN_", "LSAN_", "TSAN_", "UBSAN_"),
)
# subprocess's own arguments, with which a fresh process is started if they differ.
_USUAL = {
    "executable": None, "preexec_fn": None, "close_fds": True, "pass_fds": (), "shell": False,
    "restore_signals": True, "gid": None, "gids": None, "uid": None, "umask": -1,
    "process_group": -1,
}  # fmt: skip
_SET_SUBREAPER = 36  # of prctl()


_environment: dict[str, str] = {}


def use_environment() -> None:
    """Gives the warm process the environment of now, before a test has changed it."""
    _environment.update(os.environ)


class Popen(subprocess.Popen[Any]):
    """A process, forked if it is a command of the project."""

    def _execute_child(self, *given: Any) -> None:
        start = super()._execute_child
        asked = inspect.signature(start).bind(*given).arguments
        arguments = _python_arguments(asked["args"])
        environment = dict(os.environ if asked["env"] is None else asked["env"])
        usual = all(asked.get(name, value) in (value, None) for name, value in _USUAL.items())
        folder = str(asked["cwd"] or Path.cwd())
        if not (arguments and usual and Path(folder).is_dir() and _as_here(environment)):
            start(*given)
            return
        streams = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
        streams = [number if stream == -1 else stream for number, stream in enumerate(streams)]
        request = Request(
            arguments, environment, folder, _umask(), bool(asked["start_new_session"])
        )
        self.pid = _warm().start(request, streams)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in pipes))


def run(
    arguments: Any, *, capture_output: bool = False, timeout: float | None = None,
    check: bool = False, **place: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Does what subprocess.run() does, `input` included."""
    given = place.pop("input", None)
    if given is not None:
        place["stdin"] = subprocess.PIPE
    if capture_output:
        place |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(arguments, **place) as process:
        try:
            output, errors = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(arguments, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


def _python_arguments(command: Any) -> list[str]:
    """What Python is given to run this command; nothing if it is none of the project."""
    if isinstance(command, str | bytes | os.PathLike):
        return []
    program, *rest = map(os.fsdecode, command)
    script = Path(program)
    if script.parent == Path(sys.executable).parent and script.name.startswith("ct2-"):
        # Ray starts processes of its own from the one that calls it.
        return [program, *rest] if rest[:1] != ["bulk"] else []
    is_module = program == sys.executable and rest[:2] == ["-m", "ct2_triton"]
    return rest if is_module and "bulk" not in rest[:4] else []


def _state(environment: dict[str, str]) -> tuple[Any, ...]:
    """What a process takes over once, when it starts."""
    read = {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}
    return read, os.sched_getaffinity(0)


def _as_here(environment: dict[str, str]) -> bool:
    """Whether a process with this environment begins as the warm one did."""
    if "LD_PRELOAD" in environment or not sys.platform.startswith("linux"):
        return False
    return _state({**environment}) == _warm().state


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class _Warm:
    """The process that forks others, one for this process."""

    def __init__(self) -> None:
        self.state = _state(_environment)
        self._lock = threading.Lock()
        self._prctl = ctypes.CDLL(None).prctl
        self._connection, other = socket.socketpair()
        # A fork keeps one thread only: the libraries may not have others.
        command = [sys.executable, warm_process.__file__, str(other.fileno())]
        with other:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[other.fileno()],
                env={**_environment, "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
        atexit.register(self.stop)

    def start(self, request: Request, streams: list[int]) -> int:
        """Gives the id of a new process, of which this one is the parent.

        It is forked by one that ends, and the nearest ancestor that is ready to takes it over.
        """
        with self._lock:
            self._prctl(_SET_SUBREAPER, 1, 0, 0, 0)
            try:
                return warm_process.send(self._connection, request, streams)
            except BaseException:  # such as a time limit: an answer may be left
                self._connection.close()
                restart()
                raise
            finally:
                self._prctl(_SET_SUBREAPER, 0, 0, 0, 0)

    def stop(self) -> None:
        self._connection.close()
        self._process.wait()


@cache
def _warm() -> _Warm:
    return _Warm()


def restart() -> None:
    """Lets the next command start the warm process anew."""
    _warm.cache_clear()
