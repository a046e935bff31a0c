"""Ending what waits in parking past its age, until nothing of it is left.

A lap begins with the groups of the last look whose oldest row may be too old: ids carry their time, so most groups
are told from their first row alone. Then it walks (`parked_walk.py`) until every group has come to its end.

Rows that only seem old (a replay, a time that stood still, a type with a longer `max_age`) are walked over anew each
time. Their group rests in proportion to how many they were, and no other group does; how long one has rested counts as
lateness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from surehook.core.delivery import is_too_old
from surehook.core.ids import floor
from surehook.core.limits import EVENT_ID_AHEAD_S
from surehook.core.model import STANDING_REASONS, Delivery
from surehook.delivery.delivery_notices import DeliveryNotices
from surehook.delivery.directory import Directory
from surehook.delivery.endings import Endings
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.loading import Loader
from surehook.delivery.managing import WholeLedger
from surehook.delivery.parked_walk import walk
from surehook.delivery.unpark import Unpark
from surehook.ports.clock import Clock
from surehook.ports.ledger import AgedGroup

VAIN_ROW_S = 0.0005  # a group's rest for each row that was looked at in vain: twenty times what it costs
JUDGEMENTS = 3  # of one step's rows, while the configuration changes under them
GROUPS_A_TURN = 2_000  # told apart before others have the event loop: a few milliseconds
AHEAD_MS = EVENT_ID_AHEAD_S * 1_000

Group = tuple[bytes, str | None]  # endpoint and reason


class Rest(NamedTuple):
    """On the boot clock."""

    since: float
    until: float


class Ageing:
    """Laps over what the last look found parked."""

    def __init__(
        self,
        *,
        ledger: WholeLedger,
        clock: Clock,
        directory: Directory,
        loader: Loader,
        endings: Endings,
        unpark: Unpark,
        telling: DeliveryNotices,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._directory = directory
        self._endings = endings
        self._loader = loader
        self._unpark = unpark
        self._telling = telling
        self._rests: dict[Group, Rest] = {}  # groups that rest
        # Groups of this lap, and how many of their rows were not to be ended.
        self._vain: dict[Group, int] = {}

    async def lap(self) -> None:
        """End everything that is past its age now."""
        self._vain = {}
        await walk(self._ledger, self._clock, await self._others(), self._end, self._others)
        boot = self._clock.boot()
        rests = {group: rest for group, rest in self._rests.items() if rest.until > boot}
        rests.update(
            (group, Rest(boot, boot + rows * VAIN_ROW_S)) for group, rows in self._vain.items() if rows
        )
        self._rests = rests

    def rests_since(self) -> float | None:
        """Since when, on the boot clock, the group that has rested longest has not been looked at."""
        return min((rest.since for rest in self._rests.values()), default=None)

    async def _others(self) -> list[AgedGroup]:
        """Candidates that do not rest and are not of this lap yet; they are now."""
        boot, vain = self._clock.boot(), self._vain
        found = [
            group
            for group in await self._candidates()
            if (group.endpoint, group.reason) not in vain
            and not self._is_resting((group.endpoint, group.reason), boot)
        ]
        vain.update(((group.endpoint, group.reason), 0) for group in found)
        return found

    def _is_resting(self, group: Group, boot: float) -> bool:
        rest = self._rests.get(group)
        return rest is not None and rest.until > boot

    async def _candidates(self) -> list[AgedGroup]:
        """Groups whose first row may be past its age. What stands does not age."""
        now, found = self._clock.now(), []
        common_s = self._directory.youngest_age(None)
        for number, group in enumerate(self._unpark.groups, 1):
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

    async def _end(self, rows: Sequence[Delivery]) -> None:
        old = await self._too_old(rows)
        for group, count in Counter((row.endpoint, row.parked) for row in rows).items():
            self._vain[group] = self._vain.get(group, 0) + count
        for _, row in old:
            self._vain[row.endpoint, row.parked] -= 1
        if not old:
            return
        notices = [self._telling.of_age(delivery) for _, delivery in old]
        dead = [delivery for _, delivery in old]
        await self._endings.end(dead, state="dead", reason=None, notices=notices, now=self._clock.now())

    async def _too_old(self, rows: Sequence[Delivery]) -> list[tuple[EndpointState, Delivery]]:
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
            await self._loader.reload()
        return []  # it changes faster than it is read: the next lap has them
