# SPDX-License-Identifier: Apache-2.0
"""A process with the imports of the commands done, which forks a process for each command.

`support.forked` starts it with the number of a socket and asks it for processes. A process that
was forked goes on as Python does that was started with a script or a module: it runs that in
`__main__`, and ends as it does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

# What the commands import, most of it when they first need it.
_IMPORTS = (
    *(f"ct2_triton.{area}.cli" for area in ("bench", "gateway", "live", "models", "prepare")),
    *(f"ct2_triton.{area}.cli" for area in ("serve", "translate")),
    *("ct2_triton.client", "ct2_triton.live", "ct2_triton.gateway", "ct2_triton.serve"),
    *("aiohttp", "numpy", "regex", "sentencepiece", "tokenizers", "tritonclient.grpc.aio", "yaml"),
)
HEAD = struct.Struct("!Q")  # bytes of a request; a process id is answered


@dataclass
class Request:
    """A process to make. Its standard streams come beside it, as descriptors."""

    arguments: list[str]  # those after Python's own: `-m MODULE` or a script, and what it is given
    environment: dict[str, str]
    folder: str
    umask: int
    new_session: bool


def send(connection: socket.socket, request: Request, streams: list[int]) -> int:
    """Asks for a process, and gives its id."""
    body = json.dumps(astuple(request)).encode()
    socket.send_fds(connection, [HEAD.pack(len(body))], streams)
    connection.sendall(body)
    return int(HEAD.unpack(_received(connection, HEAD.size))[0])


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def _fork(request: Request, streams: list[int], connection: socket.socket) -> int:
    """The id of a new process, whose parent has ended; 0 in the new process.

    The process that asked takes such processes over: it is their parent then, and waits for them.
    """
    told, tell = os.pipe()
    if between := os.fork():
        os.close(tell)
        [process] = HEAD.unpack(os.read(told, HEAD.size))
        os.close(told)
        os.waitpid(between, 0)
        return int(process)
    if request.new_session:
        os.setsid()
    if process := os.fork():
        os.write(tell, HEAD.pack(process))
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(*streams, told, tell, connection.detach()) + 1)
    return 0


def _become(request: Request) -> None:
    """Sets what a new process has of its own."""
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)
    os.umask(request.umask)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = (
        os.fdopen(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False),
        os.fdopen(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False),
        os.fdopen(2, "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors, closefd=False),
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _run(arguments: list[str]) -> None:
    """Runs `-m MODULE` or a script, as Python does with these arguments."""
    if arguments[0] == "-m":
        _, module, *rest = arguments
        sys.argv = [module, *rest]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).parent)
        runpy.run_path(arguments[0], run_name="__main__")


def _is_here(module: object) -> bool:
    """Whether it comes from this folder, and is not this file."""
    if module is sys.modules["__main__"]:
        return False
    return str(getattr(module, "__file__", None)).startswith(str(Path(__file__).parent))


def main() -> None:
    """Makes processes until the other end is closed; in one that was made, runs its command."""
    # Of an interrupt of the terminal only the commands know.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    connection = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = str(Path(sys.executable).parent)  # not this folder, whose modules hide others
    for name in _IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    here = [name for name, module in sys.modules.items() if _is_here(module)]
    assert not here, f"imported from {Path(__file__).parent}: {here}"
    gc.freeze()
    while True:
        head, streams, _, _ = socket.recv_fds(connection, HEAD.size, 3)
        if not head:
            return
        request = Request(*json.loads(_received(connection, HEAD.unpack(head)[0])))
        assert len(os.listdir("/proc/self/task")) == 1, "a thread runs, which a fork would lose"
        process = _fork(request, streams, connection)
        if process == 0:
            break
        for stream in streams:
            os.close(stream)
        connection.sendall(HEAD.pack(process))
    _become(request)
    _run(request.arguments)


if __name__ == "__main__":
    main()
