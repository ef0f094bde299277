# SPDX-License-Identifier: Apache-2.0
"""Translate blocks with Ray Data: one actor for each worker, restarted if it dies."""

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

_STORE_BYTES = 80 << 20  # Ray's minimum; only the names of blocks are sent
# Silence messages for Ray's developers, and disable Ray's usage statistics.
_QUIET = {
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# Ray listens on all addresses, unless clusters are disabled: then on 127.0.0.1.
_ON_THIS_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@contextmanager
def cluster(address: str | None, workers: int) -> Iterator[None]:
    """Start Ray for this machine only, or join a cluster; its processes end with the block.

    Each of the `workers` translates one block at a time.
    """
    settings = _QUIET | (_ON_THIS_MACHINE if address is None else {})
    for name, value in settings.items():  # read when Ray is imported
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ClientError(
            f"Ray cannot be imported ({error}): pip install 'ct2-triton-client[bulk]'"
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
    """Discard standard error, where Ray's core reports that its logging is disabled."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def translate(blocks: Sequence[Block], task: Task, workers: int) -> Iterator[dict[str, Any]]:
    """Translate one or more blocks, in any order. Must be called in a `cluster`.

    Yields what `Translator` returns, for each block.
    """
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    rows = ray.data.from_items(list(map(asdict, blocks)), override_num_blocks=len(blocks))
    translator: Any = Translator  # Ray's type hints allow only functions
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
