"""Priority of calm publishes that wait for their answer over sending, while somebody rushes.

A publish takes a commit, and the thread that commits needs the interpreter, and a processor, which the event loop keeps
busy as long as there is something to send. So from when a publish waits, each tenant begins `STARTS` more requests, and the
others when it has its answer: the loop falls idle and the commit goes through. Whoever sends little does not notice.

Publishes that go on without a gap hold sending up for half of the time: `GIVEN_S`, and as long not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

STARTS = 4  # of a tenant and lane while a publish waits; a thousand short publishes a second leave it four thousand
GIVEN_S = 0.010  # two or three commits on a quick disk


class GivingWay:
    """Knows whether way is given now, and to whom it costs a turn. `over` is called when it is given no more."""

    __slots__ = ("_begun", "_over", "_timer", "_waiters")

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over
        self._begun: dict[str, int] | None = None  # requests by tenant since way is given; None: it is not
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        """A publish waits."""
        if self._timer is None:
            self._give()

    def end(self) -> None:
        """No publish waits any more."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        if self._begun is not None:
            self._leave_off()

    async def passed(self) -> None:
        """Wait until way is given no more, where it is."""
        if self._begun is not None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def may_start(self, tenant: str) -> bool:
        """Tell whether the tenant may begin one more request now; it is counted."""
        begun = self._begun
        if begun is None:
            return True
        count = begun.get(tenant, 0)
        begun[tenant] = count + 1
        return count < STARTS

    def _give(self) -> None:
        self._begun = {}
        self._timer = asyncio.get_running_loop().call_later(GIVEN_S, self._pass)

    def _pass(self) -> None:
        """Way was given for long enough; those who wait still have it again after as long."""
        self._timer = asyncio.get_running_loop().call_later(GIVEN_S, self._give)
        self._leave_off()

    def _leave_off(self) -> None:
        self._begun = None
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._over()
