"""Who publishes beside whom: what is large, or much, makes room for others only while there are some.

A tenant rushes that publishes, or has tried again, more than a part of what the machine takes, told by what that costs and
not by how long anything took: a bucket that leaks at a steady pace runs over. Everybody else is calm, and their publishes
need not stand behind what those who rush have brought.
"""

from __future__ import annotations

import asyncio

from surehook.delivery.dispatch import Dispatch

COST_S = 0.000005  # that one unit of cost takes the writer: a row, or a KiB of a body
PAUSE_TURNS = 8  # of the event loop, between two slices of something large
NEAR_S = 1.0  # whoever has published within so long may do so again at any moment
CALM_COST = 2_000  # a second; a thousand events for one endpoint each, a fifth of what a process takes
CALM_BURST = 256  # … and at once
RETRY_COST = 3  # its row twice, leased and recorded, and a line of history
MET_PART = 40  # of publishes, one in so many may …
MET_COST = 2_000  # … wait for longer than the writing of so much, which is 10 ms
BUCKETS = 1_000  # beyond so many, those that have run out are forgotten


class TenantActivity:
    """Remembers the tenant that published last, when somebody else did, and who rushes. Times are the event loop's.

    part  while there are others, one part of the time in so many, at most, is for what is large
    """

    __slots__ = ("_at", "_before", "_buckets", "_part", "_rush_at", "_tenant")

    def __init__(self, *, part: int) -> None:
        self._part = part
        self._tenant = ""
        self._at = self._before = self._rush_at = float("-inf")
        self._buckets: dict[str, float] = {}  # by tenant, when its bucket will have run out

    def seen(self, tenant: str, cost: int, now: float) -> bool:
        """This tenant publishes something of this cost; whether it is calm."""
        if tenant != self._tenant:
            self._before, self._tenant = self._at, tenant
        self._at = now
        return self._brings(tenant, cost, now)

    def tried_again(self, tenant: str, count: int, now: float) -> None:
        """So many deliveries of this tenant are tried again. Few events may bring very many: a policy says how often, and
        how soon."""
        self._brings(tenant, count * RETRY_COST, now)

    def _brings(self, tenant: str, cost: int, now: float) -> bool:
        """Tell whether the tenant is calm with this as well."""
        if len(self._buckets) > BUCKETS:
            self._buckets = {name: empty for name, empty in self._buckets.items() if empty > now}
        empty = self._buckets[tenant] = max(self._buckets.get(tenant, now), now) + cost / CALM_COST
        if empty - now <= CALM_BURST / CALM_COST:
            return True
        self._buckets[tenant] = min(empty, now + NEAR_S)
        self._rush_at = now
        return False

    def is_near(self, now: float) -> bool:
        """Tell whether more than one tenant has published of late."""
        return now - self._before < NEAR_S

    def is_rushed(self, now: float) -> bool:
        """Tell whether somebody has rushed of late."""
        return now - self._rush_at < NEAR_S

    def rest(self, cost: int) -> float:
        """Seconds that somebody rests now, after something large of this cost, which held up whoever came meanwhile.

        Nobody waits for longer than its time. So few may come that one publish in `MET_PART` waits for more than
        `MET_COST`.
        """
        if not self.is_near(asyncio.get_running_loop().time()):
            return 0.0
        return max(self._part * cost, MET_PART * (cost - MET_COST)) * COST_S


async def pause(dispatch: Dispatch, *, is_large: bool) -> None:
    """Others have their turn of the event loop. In the middle of something large, those who wait for an answer have a few:
    it takes them half a dozen to get one."""
    turns = PAUSE_TURNS if is_large else 1
    while turns:
        await asyncio.sleep(0)
        turns = turns - 1 if dispatch.waited_for else 0
    if is_large:
        await dispatch.way.passed()
