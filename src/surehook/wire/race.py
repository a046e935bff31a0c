"""One connection out of several judged addresses (RFC 8305 without its DNS part).

The families take turns, and the next address is tried when the one before failed or has not answered for
250 ms. The first connection wins and the others are closed. Results that come in the same turn of the loop
are taken in the order of the addresses, so a simulated loop always tells the same story.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

STAGGER_S = 0.25  # RFC 8305 section 8

Won = TypeVar("Won")


def take_turns(addresses: Sequence[str]) -> list[str]:
    """The same addresses with families alternating, beginning with the first one's."""
    first_is_six = ":" in addresses[0]
    first = [found for found in addresses if (":" in found) == first_is_six]
    other = [found for found in addresses if (":" in found) != first_is_six]
    return [found for found in chain.from_iterable(zip_longest(first, other)) if found is not None]


async def race(
    addresses: Sequence[str],
    connect: Callable[[str], Coroutine[object, None, Won]],
    discard: Callable[[Won], None],
) -> Won:
    """The first connection to come up. Raises the first address's error where none does."""
    if len(addresses) == 1:
        return await connect(addresses[0])
    loop = asyncio.get_running_loop()
    runners: list[asyncio.Task[Won]] = []
    winner: asyncio.Task[Won] | None = None
    waiting = take_turns(addresses)
    try:
        while winner is None:
            if waiting:
                runners.append(loop.create_task(connect(waiting.pop(0))))
            running = [task for task in runners if not task.done()]
            if not running:
                return runners[0].result()  # raises: all failed
            await asyncio.wait(
                running, timeout=STAGGER_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            winner = next((task for task in runners if task.done() and task.exception() is None), None)
        return winner.result()
    finally:
        losers = [task for task in runners if task is not winner]
        for task in losers:
            task.cancel()
        for result in await asyncio.gather(*losers, return_exceptions=True):
            if not isinstance(result, BaseException):
                discard(result)
