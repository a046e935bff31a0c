"""The end of a loop in a test: every task is cancelled, but those that only give a connection back."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel_others(timeout_s: float) -> set[asyncio.Task[Any]]:
    """Cancel all tasks but this one, as `asyncio.run` does at its end; those that have not ended within `timeout_s`.

    SQLAlchemy closes an AsyncConnection in a task of its own. Cancelled before its first step (as `asyncio.run` would, too),
    this one gives nothing back, and the connection is the collector's, who warns of it: so it is waited for instead.
    """
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        if task.get_coro().__qualname__ != "AsyncConnection.close":
            task.cancel()
    return (await asyncio.wait(tasks, timeout=timeout_s))[1] if tasks else set()
