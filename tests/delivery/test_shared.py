"""Who asks while a piece of work is under way has the next one, together with all others who ask meanwhile."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from lab.sim.loop import run
from surehook.delivery.shared import Shared


class Told:
    """Work that ends when it is told to, and may fail."""

    def __init__(self) -> None:
        self.begun = 0
        self.breaks = 0  # which time
        self.go_on = asyncio.Event()

    async def work(self) -> int:
        self.begun += 1
        number = self.begun
        await self.go_on.wait()
        if number == self.breaks:
            raise OSError("broken")
        return number


def test_who_asks_later_has_a_later_doing_and_shares_it() -> None:
    async def main() -> None:
        told = Told()
        shared = Shared(told.work)
        first = asyncio.ensure_future(shared())
        await asyncio.sleep(0)
        later = [asyncio.ensure_future(shared()) for _ in range(5)]
        await asyncio.sleep(0)
        told.go_on.set()
        assert await first == 1
        assert await asyncio.gather(*later) == [2] * 5
        assert await shared() == 3

    asyncio.run(main())


def test_where_it_fails_the_next_who_waits_tries_again() -> None:
    async def main() -> None:
        told = Told()
        shared = Shared(told.work)
        first = asyncio.ensure_future(shared())
        second = asyncio.ensure_future(shared())
        await asyncio.sleep(0)
        told.breaks = 1
        told.go_on.set()
        with pytest.raises(OSError, match="broken"):
            await first
        assert await second == 2

    asyncio.run(main())


def test_those_who_share_a_doing_share_its_failure() -> None:
    """Fifty who waited for a ledger that stood still asked it one after another: the last heard after 250 seconds."""

    async def main() -> None:
        loop, begun = asyncio.get_running_loop(), 0
        since = loop.time()

        async def work() -> None:
            nonlocal begun
            begun += 1
            await asyncio.sleep(5)
            raise OSError("away")

        shared = Shared(work)
        heard = await asyncio.gather(*(shared() for _ in range(50)), return_exceptions=True)
        assert [str(each) for each in heard] == ["away"] * 50
        assert sum(1 for _ in traceback.walk_tb(heard[-1].__traceback__)) <= 3, "not the frames of all"  # type: ignore[union-attr]
        assert (begun, round(loop.time() - since, 3)) == (2, 10.0)

    run(main())


def test_where_who_does_it_is_cancelled_the_next_who_waits_does_it_anew() -> None:
    async def main() -> None:
        told = Told()
        shared = Shared(told.work)
        first, second, third = [asyncio.ensure_future(shared()) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        told.go_on.set()
        assert await third == 3

    asyncio.run(main())
