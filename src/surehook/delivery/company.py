"""Whether somebody else publishes as well: what is large makes room for others only while there are some."""

from __future__ import annotations

import asyncio

from surehook.delivery.dispatch import Dispatch

COST_S = 0.00001  # that one unit of cost takes: a row, or a KiB of a body
PAUSE_TURNS = 8  # of the event loop, between two slices of something large
NEAR_S = 1.0  # whoever has published within so long may do so again at any moment


class Company:
    """Remembers the tenant that published last, and when somebody else did. Times are the event loop's.

    part  while there are others, one part of the time in so many is for what is large
    """

    __slots__ = ("_at", "_before", "_part", "_tenant")

    def __init__(self, *, part: int) -> None:
        self._part = part
        self._tenant = ""
        self._at = self._before = float("-inf")

    def seen(self, tenant: str, now: float) -> None:
        """This tenant publishes."""
        if tenant != self._tenant:
            self._before, self._tenant = self._at, tenant
        self._at = now

    def is_near(self, now: float) -> bool:
        """Whether more than one tenant has published of late."""
        return now - self._before < NEAR_S

    def rest(self, cost: int) -> float:
        """Seconds that somebody rests now, after something large of this cost."""
        is_near = self.is_near(asyncio.get_running_loop().time())
        return cost * COST_S * self._part if is_near else 0.0


async def pause(dispatch: Dispatch, *, is_large: bool) -> None:
    """Others have their turn of the event loop. In the middle of something large, those who wait for an answer have a few:
    it takes them half a dozen to get one."""
    turns = PAUSE_TURNS if is_large else 1
    while turns:
        await asyncio.sleep(0)
        turns = turns - 1 if dispatch.waited_for else 0
