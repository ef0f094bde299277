# SPDX-License-Identifier: Apache-2.0
"""Running coroutines together so that none outlives the call that started it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
    from typing import Any

Item = TypeVar("Item")
Result = TypeVar("Result")


async def run_all(
    coroutines: Iterable[Coroutine[Any, Any, Result]], *, cancels: bool = True
) -> list[Result]:
    """Run coroutines at the same time.

    Unlike `asyncio.gather`, the first failure, or a cancellation from outside, ends the others
    before it is raised. (`asyncio.TaskGroup` needs Python 3.11.)

    Args:
        coroutines: What to run.
        cancels: Whether the first failure ends the others; if not, it is raised at their end.

    Returns:
        Their results, in order.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        if tasks:
            end = asyncio.FIRST_EXCEPTION if cancels else asyncio.ALL_COMPLETED
            await asyncio.wait(tasks, return_when=end)
        for task in tasks:
            if task.done():
                task.result()  # raises the failure, before the tasks it left undone
        return [task.result() for task in tasks]
    finally:
        await cancel_all(tasks)


async def cancel_all(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; what they raise is dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def map_bounded(
    function: Callable[[Item], Awaitable[Result]], items: Sequence[Item], limit: int
) -> list[Result]:
    """Apply an asynchronous function to every item, at most `limit` at a time.

    Args:
        function: What to apply.
        items: The items; nothing is started for an item before its turn.
        limit: At least 1.

    Returns:
        The results, in the order of the items.
    """
    positions = iter(range(len(items)))
    results: dict[int, Result] = {}

    async def work() -> None:
        for position in positions:
            results[position] = await function(items[position])

    await run_all(work() for _ in range(min(limit, len(items))))
    return [results[position] for position in range(len(items))]
