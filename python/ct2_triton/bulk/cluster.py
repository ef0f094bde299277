# SPDX-License-Identifier: Apache-2.0
"""Blocks through Ray Data: one actor for each worker, started again where it dies."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.bulk.worker import Translator
from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ct2_triton.bulk.blocks import Block
    from ct2_triton.bulk.worker import Task

_STORE_BYTES = 80 << 20  # Ray's least; blocks travel as their names alone
# Ray's words are for Ray's developers; and it is not to call home.
_QUIET = {
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# Ray listens on all addresses, except where it knows no clusters: there on 127.0.0.1.
_ON_THIS_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@contextmanager
def cluster(address: str | None, workers: int) -> Iterator[None]:
    """Start Ray on this machine, for it alone, or join a cluster; leave no process behind.

    Each of `workers` workers translates one block at a time.
    """
    settings = _QUIET | (_ON_THIS_MACHINE if address is None else {})
    for name, value in settings.items():  # read where Ray is imported
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ClientError(
            f"ct2-translate bulk needs Ray ({error}): pip install 'ct2-triton-client[bulk]'"
        ) from error
    own: dict[str, Any] = {
        "num_cpus": workers,
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
    }
    try:
        with _no_native_log():
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(own if address is None else {}),
            )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClientError(f"Ray does not start: {error}") from error
    try:
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield
    finally:
        ray.shutdown()


@contextmanager
def _no_native_log() -> Iterator[None]:
    """Discard standard error: Ray's core writes there that it was told to log nothing."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def translate(blocks: Sequence[Block], task: Task, workers: int) -> Iterator[dict[str, Any]]:
    """Translate blocks, at least one, in any order. Must be called in a `cluster`.

    Yields what `Translator` returns, for each block.
    """
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    rows = ray.data.from_items(list(map(asdict, blocks)), override_num_blocks=len(blocks))
    translator: Any = Translator  # Ray's types know functions only
    done = rows.map(
        translator,
        fn_constructor_args=(task,),
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(blocks))),
    )
    try:
        for row in done.iter_rows():
            if row["error"]:
                raise ClientError(row["error"])
            yield row
    except ray.exceptions.RayError as error:
        raise ClientError(f"Ray failed: {str(error).splitlines()[0]}") from error
