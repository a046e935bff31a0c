"""Tenants whose rows wait because the server asks for it, while the rows of others go on.

Rows are read in the order of their positions. So tenants that rested, and of which nothing was published since, are left out
of three readings in four, whether their rest is over or not: behind any number of them others get their turn. A rest is twice as
long as the one before it, since reading and sending again costs both sides.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from surehook.core.outbox_answers import TenantRest

RESTING_MOST = 1_000  # tenants at one time; beyond, everybody rests for a moment
REST_MOST_S = 15.0
TURNS = 4


class _Slow(Struct, frozen=True):
    """Why a tenant rested the last time, and for how long."""

    code: str
    seconds: float


class TenantRests:
    """Times are seconds of any clock that does not step."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._slow: dict[str, _Slow] = {}
        self._turn = 0  # of TURNS; in the first one all are read whose rest is over

    def left_out(self, now: float) -> tuple[str, ...] | None:
        """Tenants whose rows are not to be read this time; None: so many rest that nothing is."""
        self._until = {tenant: until for tenant, until in self._until.items() if until > now}
        if len(self._until) > RESTING_MOST:
            return None
        self._turn = (self._turn + 1) % TURNS
        return tuple(self._until.keys() | (self._slow.keys() if self._turn else ()))

    def is_all_read(self) -> bool:
        """Nothing was found: True if that is true of all whose rest is over. Else the next reading is of these, too."""
        read, self._turn = self._turn == 0, TURNS - 1
        return read

    def rest(self, tenants: Mapping[str, TenantRest], *, goes_on: set[str], now: float) -> list[str]:
        """Let these tenants rest; of those in `goes_on` something was published. Returns what an operator has not heard yet."""
        news = []
        for tenant in goes_on - tenants.keys():
            self._slow.pop(tenant, None)
        for tenant, rest in tenants.items():
            before = self._slow.get(tenant)
            seconds = (
                rest.seconds if before is None else max(rest.seconds, min(2 * before.seconds, REST_MOST_S))
            )
            self._until[tenant] = now + seconds
            if before is None or before.code != rest.code:
                news.append(f"rows of tenant {tenant} wait, {rest.code}: {rest.reason}")
            if before is not None or len(self._slow) < RESTING_MOST:
                self._slow[tenant] = _Slow(rest.code, seconds)
        return news
