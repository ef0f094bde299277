# SPDX-License-Identifier: Apache-2.0
"""A preparation in a process of its own, so that a process that serves keeps nothing of it."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from typing import TYPE_CHECKING, TypeAlias, cast

from ct2_triton.errors import Ct2TritonError, PrepareError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from ct2_triton.prepare.options import PrepareOptions

# A line of text of a step, or how it ended: the folder, or what failed.
_Message: TypeAlias = "str | Path | Ct2TritonError"


def prepare_in_child(options: PrepareOptions, report: Callable[[str], None]) -> Path:
    """Prepare a model; PyTorch and the weights are loaded in a child process only.

    Args:
        options: What to prepare, and where.
        report: Gets a line of text for each step.

    Returns:
        Folder of the prepared model.

    Raises:
        Ct2TritonError: It failed; a PrepareError if its process was ended. Nothing was written.
    """
    fresh = multiprocessing.get_context("spawn")
    receiver, sender = fresh.Pipe(duplex=False)
    child = fresh.Process(target=_prepare, args=(options, sender), name="ct2-prepare")
    child.start()
    sender.close()
    try:
        while isinstance(message := receiver.recv(), str):
            report(message)
    except EOFError:
        child.join()
        raise PrepareError(
            f"the process that prepared {options.source} {_how_it_ended(child.exitcode)}"
        ) from None
    except BaseException:  # this process is to end
        child.terminate()
        raise
    finally:
        child.join()
    if isinstance(message, Ct2TritonError):
        raise message
    return cast("Path", message)


def _how_it_ended(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        hint = ": memory may have run out" if exit_code == -signal.SIGKILL else ""
        return f"was ended by {signal.Signals(-exit_code).name}{hint}"
    return f"ended with status {exit_code}"


def _prepare(options: PrepareOptions, sender: Connection[_Message, None]) -> None:
    from ct2_triton.prepare.pipeline import prepare

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent has it, too, and ends this process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which removes what is half written
    try:
        sender.send(prepare(options, sender.send).directory)
    except Ct2TritonError as error:
        sender.send(error)
