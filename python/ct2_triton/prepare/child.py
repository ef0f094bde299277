# SPDX-License-Identifier: Apache-2.0
"""A preparation in a child process, so that a serving process keeps none of its memory."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, TypeAlias

from ct2_triton.errors import Ct2TritonError, PrepareError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ct2_triton.prepare.options import PrepareOptions

# A line of text of a step, or the result: the folder, or the error.
_Message: TypeAlias = "str | Path | Ct2TritonError"


def prepare_in_child(options: PrepareOptions, report: Callable[[str], None]) -> Path:
    """Prepare a model; PyTorch and the weights are loaded in a child process only.

    If it fails, nothing is written.
    """
    end, child_end = os.pipe()
    command = [sys.executable, "-m", __name__, str(child_end)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[child_end])
    os.close(child_end)
    receiver: Connection[None, _Message] = Connection(end, writable=False)
    try:
        assert child.stdin is not None  # noqa: S101 - it was asked for
        with child.stdin as options_to_child:
            pickle.dump(options, options_to_child)
        while isinstance(message := receiver.recv(), str):
            report(message)
    except EOFError:
        raise PrepareError(
            f"the process that prepared {options.source} {_how_it_ended(child.wait())}"
        ) from None
    except BaseException:  # this process is being ended
        child.terminate()
        raise
    finally:
        receiver.close()
        child.wait()
    if isinstance(message, Ct2TritonError):
        raise message
    return message


def _how_it_ended(exit_code: int) -> str:
    if exit_code < 0:
        hint = ": memory may have run out" if exit_code == -signal.SIGKILL else ""
        return f"was ended by {signal.Signals(-exit_code).name}{hint}"
    return f"ended with status {exit_code}"


def _main() -> None:
    from ct2_triton.prepare.pipeline import prepare

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which removes incomplete files
    sender: Connection[_Message, None] = Connection(int(sys.argv[1]), readable=False)
    options: PrepareOptions = pickle.load(sys.stdin.buffer)  # noqa: S301 - the parent wrote it
    try:
        sender.send(prepare(options, sender.send).directory)
    except Ct2TritonError as error:
        sender.send(error)


if __name__ == "__main__":
    _main()
