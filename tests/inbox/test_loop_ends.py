"""The end of a loop takes no connection from who is giving it back."""

import asyncio

from sqlalchemy.ext.asyncio import create_async_engine

from tests.inbox.loop_ends import cancel_others


def test_a_connection_on_its_way_back_is_waited_for_and_others_are_cancelled():
    async def story():
        engine = create_async_engine("sqlite+aiosqlite:///:memory:")
        connection = await engine.connect()
        others = asyncio.create_task(asyncio.Event().wait())
        closing = asyncio.create_task(connection.close())  # has not begun
        assert await cancel_others(timeout_s=5) == set()
        assert others.cancelled() and not closing.cancelled()
        assert connection.closed
        await engine.dispose()

    asyncio.run(story())


def test_who_does_not_end_is_told():
    async def stays():
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async def story():
        task = asyncio.create_task(stays())
        await asyncio.sleep(0)
        assert await cancel_others(timeout_s=0.01) == {task}
        over.set()
        await task

    over = asyncio.Event()
    asyncio.run(story())
