"""Runs from the queue to the server until told to stop: connect, take, and connect again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from surehook.ingest.intake import Delivered, Intake
from surehook.ingest.rabbit import NoSuchQueue, RabbitSource, SourceAway

RECONNECT_FIRST_S, RECONNECT_MOST_S = 0.2, 10.0
GRACE_S = 10.0  # at the end, for what is under way; what is left over stays in the queue


class QueueAddress(Struct, frozen=True):
    """The queue that messages come from, and the one for those that no server would accept."""

    url: str
    queue: str
    dead_letters: str
    prefetch: int


class MessageSource(Protocol):
    """The interface of `rabbit.RabbitSource`."""

    async def take(self, took: Callable[[Delivered], None], *, prefetch: int) -> None: ...
    async def pause(self) -> None: ...
    async def lost(self) -> str: ...
    async def close(self) -> None: ...


Connect = Callable[[str, str, str], Awaitable[MessageSource]]


async def run(
    place: QueueAddress,
    intake: Intake,
    *,
    stop: asyncio.Event,
    tell: Callable[[str], None],
    connect: Connect = RabbitSource.open,
) -> None:
    """Ingest until `stop`. Raises NoSuchQueue where the queue is not there at the start; a broker that is away is
    waited for."""
    now = asyncio.get_running_loop().time
    pause_s = RECONNECT_FIRST_S
    was_there = is_told = False

    def taking() -> None:
        nonlocal was_there, is_told
        tell("the broker is back" if was_there else f"taking from {place.queue}")
        was_there, is_told = True, False

    while not stop.is_set():
        settled, began = intake.settled, now()
        try:
            source = await connect(place.url, place.queue, place.dead_letters)
            why = await _one_line(source, place, intake, stop=stop, taking=taking)
        except SourceAway as error:
            if isinstance(error, NoSuchQueue) and not was_there:
                raise
            why = str(error)
        if stop.is_set():
            return
        if not is_told:
            tell(f"the broker is away: {why}")
            is_told = True
        # A connection that breaks at once without having brought anything may do so each time: a message may be one
        # that the library cannot read.
        if intake.settled > settled or now() - began > RECONNECT_MOST_S:
            pause_s = RECONNECT_FIRST_S
        await _or(stop, asyncio.sleep(pause_s))
        pause_s = min(pause_s * 2, RECONNECT_MOST_S)


async def _one_line(
    source: MessageSource,
    place: QueueAddress,
    intake: Intake,
    *,
    stop: asyncio.Event,
    taking: Callable[[], None],
) -> str:
    """Take from a connection until it ends, or until `stop`; returns why it ended. Raises SourceAway."""
    try:
        await source.take(intake.take, prefetch=place.prefetch)
        taking()
        await _or(stop, source.lost())
        if stop.is_set():
            await _finish(source, intake)
            return "stopped"
        return await source.lost()
    finally:
        await source.close()


async def _finish(source: MessageSource, intake: Intake) -> None:
    try:
        async with asyncio.timeout(GRACE_S):
            await source.pause()
            await intake.drained()
    except TimeoutError:
        return


async def _or(stop: asyncio.Event, work: object) -> None:
    """Wait for either."""
    tasks = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(work)]  # type: ignore[call-overload]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
