"""A relay in the foreground of a process, until it is told to stop: for `surehook outbox` and `manage.py surehook_outbox`."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

from surehook.client.aio import AsyncClient
from surehook.outbox.over_http import OverHttp
from surehook.outbox.relay import FlushGivenUp, Relay
from surehook.outbox.stores import RowsInDatabase, RowsInThread
from surehook.ports.outbox import RowsAway

LOOK_S = 5.0  # for the first look at the table
PATIENCE_S = 30.0  # of a flush, in which nothing can be published


class FlushStopped(FlushGivenUp):
    """A flush was told to stop before all was published."""


async def publish(
    rows: RowsInDatabase,
    url: str,
    key: str | None,
    *,
    until_empty: bool,
    tell: Callable[[str], None],
    begun: Callable[[Relay], None] = lambda relay: None,
    counts: bool = False,
    unreadable: Callable[[RowsAway], None] = lambda error: None,
) -> Relay:
    """Publish rows to the server at `url`, until SIGTERM or Ctrl-C, or until nothing waits. `tell` gets sentences for the
    operator, `begun` the relay before its first row; `counts` as the relay has it; `unreadable` gets the error of the first
    look, and may raise another one to end it all. Raises FlushGivenUp, and FlushStopped where a signal came first."""
    loop = asyncio.get_running_loop()
    async with AsyncClient(url, key, patience_s=0) as client:
        store = RowsInThread(rows)
        relay = Relay(
            store, OverHttp(client), sleep=asyncio.sleep, monotonic=loop.time, tell=tell, counts=counts
        )
        await _first_look(store, unreadable)
        begun(relay)
        work = asyncio.ensure_future(relay.flush(patience_s=PATIENCE_S) if until_empty else relay.run())
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, work.cancel)
        if not until_empty:
            keyless = "" if key is not None else " without a key"
            tell(f"publishing to {url}{keyless}, until SIGTERM or Ctrl-C")
        try:
            await work
        except asyncio.CancelledError:
            if until_empty:
                raise FlushStopped("it was told to stop") from None
        finally:
            tell(f"{relay.published:,} published, {relay.refused:,} put aside")
    return relay


async def _first_look(store: RowsInThread, unreadable: Callable[[RowsAway], None]) -> None:
    try:
        async with asyncio.timeout(LOOK_S):
            await store.look()
    except TimeoutError:
        return  # somebody holds the table, or the database is frozen: that may pass
    except RowsAway as error:
        try:
            unreadable(error)
        except BaseException:
            await store.close()
            raise
