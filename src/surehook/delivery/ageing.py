"""Ending what waits in parking past its age, until nothing of it is left.

A lap begins with the groups of the last look whose oldest row may be too old: ids carry their time, so most groups
are told from their first row alone. Then it walks (`parked_walk.py`) until every group has come to its end.

Rows that only seem old (a replay, a time that stood still, a type with a longer `max_age`) are walked over anew in
each lap. The next lap waits in proportion to the time that went by so, in vain.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from surehook.core.delivery import is_too_old
from surehook.core.ids import floor
from surehook.core.limits import EVENT_ID_AHEAD_S
from surehook.core.model import STANDING_REASONS, Delivery, Notice
from surehook.delivery.endings import Endings
from surehook.delivery.managing import Book
from surehook.delivery.parked_walk import walk
from surehook.delivery.routes import Directory, Route
from surehook.ports.clock import Clock
from surehook.ports.ledger import AgedGroup, ParkedGroup

VAIN_SHARE = 20  # the next lap waits so many times as long as this one walked without ending anything
JUDGEMENTS = 3  # of one step's rows, while the configuration changes under them
GROUPS_A_TURN = 2_000  # told apart before others have the event loop: a few milliseconds
AHEAD_MS = EVENT_ID_AHEAD_S * 1_000


class Ageing:
    """`groups` are what the last look found parked; `notice` makes what is told of one ending; `reload` brings memory
    up to the ledger's configuration."""

    def __init__(
        self,
        *,
        ledger: Book,
        clock: Clock,
        directory: Directory,
        endings: Endings,
        groups: Callable[[], Sequence[ParkedGroup]],
        notice: Callable[[Route, Delivery], Notice],
        reload: Callable[[], Awaitable[None]],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._directory = directory
        self._endings = endings
        self._groups = groups
        self._notice = notice
        self._reload = reload
        self._rest_until = 0.0  # on the boot clock

    async def lap(self) -> None:
        """End everything that is past its age now."""
        if self._clock.boot() >= self._rest_until:
            vain_s = await walk(self._ledger, self._clock, await self._candidates(), self._end)
            self._rest_until = self._clock.boot() + vain_s * VAIN_SHARE

    async def _candidates(self) -> list[AgedGroup]:
        """Groups whose first row may be past its age. What stands does not age."""
        now, found = self._clock.now(), []
        common_s = self._directory.youngest_age(None)
        for number, group in enumerate(self._groups(), 1):
            if number % GROUPS_A_TURN == 0:
                await self._clock.sleep(0)
            route = self._directory.routes.get(group.endpoint)
            if route is None or group.reason in STANDING_REASONS:
                continue
            youngest_s = common_s if route.own_plan is None else self._directory.youngest_age(route)
            if youngest_s is None:
                continue
            born_before = now - int(youngest_s * 1000)
            if group.first < floor(born_before + AHEAD_MS):
                found.append(AgedGroup(group.endpoint, group.reason, born_before))
        return found

    async def _end(self, rows: Sequence[Delivery]) -> list[bytes]:
        old = await self._too_old(rows)
        if not old:
            return []
        notices = [self._notice(route, delivery) for route, delivery in old]
        dead = [delivery for _, delivery in old]
        return await self._endings.end(
            dead, state="dead", reason=None, notices=notices, now=self._clock.now()
        )

    async def _too_old(self, rows: Sequence[Delivery]) -> list[tuple[Route, Delivery]]:
        """Those whose policy says so. It must be the ledger's policy: another process may have changed it just now."""
        for _ in range(JUDGEMENTS):
            now, old = self._clock.now(), []
            for delivery in rows:
                route = self._directory.routes.get(delivery.endpoint)
                if route is None:
                    continue
                if is_too_old(delivery, self._directory.plan(route, delivery.type).policy, at=now):
                    old.append((route, delivery))
            if not old or await self._ledger.version() == self._directory.version:
                return old
            await self._reload()
        return []  # it changes faster than it is read: the next lap has them
