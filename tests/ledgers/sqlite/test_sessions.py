"""Who waits for whom on one file: a crowd of lists or of changes delays neither retries nor anybody's events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import FIRST
from surehook.ledgers.common.steps import Steps
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ledgers.sqlite.workers import CHANGES_MAX, JOINED_MAX, LINE_MAX, PASSED_MOST
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW

PATIENCE_S = 10.0  # of a test that would wait for ever


@contextmanager
def gate() -> Iterator[threading.Event]:
    """Something that a thread waits for until the block ends, whatever becomes of it."""
    opened = threading.Event()
    try:
        yield opened
    finally:
        opened.set()


async def test_a_list_delays_neither_a_look_for_due_rows_nor_one_at_a_single_row(
    desk: Desk, book: SqliteLedger
) -> None:
    with gate() as opened:

        def long_list() -> Steps[int]:
            opened.wait()
            return 1
            yield  # which makes it a generator

        listing = asyncio.ensure_future(book._list(long_list))
        async with asyncio.timeout(PATIENCE_S):
            await book.next_due(FIRST)
            assert await book.parked_groups() == []
            assert await book.endpoint(desk.endpoint) is not None
        assert not listing.done()
    assert await listing == 1


async def order(
    desk: Desk, book: SqliteLedger, changes: int, other: Callable[[], Awaitable[object]]
) -> list[str]:
    """What is done first: so many changes, or something else that is asked for after them."""
    done: list[str] = []

    async def change(number: int) -> None:
        await book.change_endpoint(desk.endpoint, {"event_types": (f"a{number}",)}, now=NOW)
        done.append("change")

    async def ask() -> None:
        await other()
        done.append("other")

    with gate() as opened:
        waiting: list[asyncio.Future[bool] | asyncio.Future[None]] = [
            asyncio.ensure_future(book._writer.call(opened.wait))
        ]
        waiting += [asyncio.ensure_future(change(number)) for number in range(changes)]
        await asyncio.sleep(0)
        waiting.append(asyncio.ensure_future(ask()))
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    return done


async def test_a_crowd_of_changes_goes_behind_what_events_wait_for(desk: Desk, book: SqliteLedger) -> None:
    done = await order(desk, book, 50, lambda: book.beat(desk.node, 1, now=NOW))
    assert done == ["other", *["change"] * 50]


async def test_a_large_event_has_its_turn_beside_a_crowd_of_changes(desk: Desk, book: SqliteLedger) -> None:
    done = await order(desk, book, 200, lambda: book._later(lambda session: None))
    assert done.index("other") <= PASSED_MOST * JOINED_MAX


async def test_changes_fill_a_part_of_the_line_alone(desk: Desk, book: SqliteLedger) -> None:
    with gate() as opened:
        before = asyncio.ensure_future(book._writer.call(opened.wait))
        changes = [
            asyncio.ensure_future(
                book.change_endpoint(desk.endpoint, {"event_types": (f"a{number}",)}, now=NOW)
            )
            for number in range(CHANGES_MAX + 20)
        ]
        await asyncio.sleep(0)
        beating = asyncio.ensure_future(book.beat(desk.node, 1, now=NOW))
        await asyncio.sleep(0)
    answers = await asyncio.gather(*changes, return_exceptions=True)
    assert [isinstance(answer, LedgerUnavailable) for answer in answers] == [False] * CHANGES_MAX + [
        True
    ] * 20
    await asyncio.gather(before, beating)


async def test_it_closes_however_many_lists_wait(desk: Desk, book: SqliteLedger) -> None:
    with gate() as opened:
        before = asyncio.ensure_future(book._lister.call(opened.wait))
        lists = [asyncio.ensure_future(book._lister.call(lambda: None)) for _ in range(LINE_MAX)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(book.close())
        await asyncio.sleep(0)
    await asyncio.gather(before, *lists, closing, return_exceptions=True)
    assert closing.exception() is None
