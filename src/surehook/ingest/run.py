"""From the queue to the server until it is told to stop: connect, take, and connect again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from surehook.ingest.intake import Intake
from surehook.ingest.rabbit import NoSuchQueue, RabbitSource, SourceAway

RECONNECT_FIRST_S, RECONNECT_MOST_S = 0.2, 10.0
GRACE_S = 10.0  # at the end, for what is under way; what is left over stays in the queue


class Place(Struct, frozen=True):
    """Where messages come from, and where those go that no server would take."""

    url: str
    queue: str
    dead_letters: str
    prefetch: int


async def run(place: Place, intake: Intake, *, stop: asyncio.Event, tell: Callable[[str], None]) -> None:
    """Ingest until `stop`. Raises NoSuchQueue where the queue is not there at the start; a broker that is away is
    waited for."""
    pause_s = RECONNECT_FIRST_S
    was_there = False
    while not stop.is_set():
        try:
            source = await RabbitSource.open(place.url, place.queue, place.dead_letters)
        except SourceAway as error:
            if isinstance(error, NoSuchQueue) and not was_there:
                raise
            if pause_s == RECONNECT_FIRST_S:
                tell(f"the broker is away: {error}")
            await _or(stop, asyncio.sleep(pause_s))
            pause_s = min(pause_s * 2, RECONNECT_MOST_S)
            continue
        try:
            await source.take(intake.take, prefetch=place.prefetch)
            tell(f"taking from {place.queue}" if not was_there else "the broker is back")
            was_there, pause_s = True, RECONNECT_FIRST_S
            await _or(stop, source.lost())
            if stop.is_set():
                await _finish(source, intake)
        except SourceAway as error:
            tell(f"the broker is away: {error}")
            await _or(stop, asyncio.sleep(pause_s))
            pause_s = min(pause_s * 2, RECONNECT_MOST_S)
        finally:
            await source.close()


async def _finish(source: RabbitSource, intake: Intake) -> None:
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
