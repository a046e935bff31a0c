"""How many tokens are fetched at once: one for each credential, so many for a tenant and for the process.

Whoever makes an endpoint chooses its token server, which may take all of a fetch's time. What cannot be fetched now stands in
line, by tenant and in turns; its endpoints start nothing meanwhile, as during the fetch. The last places are for tenants that
fetch nothing, so that many who fetch at length hold up nobody's first one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surehook.delivery.tokens import Grant

OF_TENANT = 16
OF_PROCESS = 128
LAST = 32  # places of the process that only who has none may take


class Fetches:
    """`begin` starts a fetch; `over` is said once it has ended."""

    def __init__(self, begin: Callable[[Grant], None]) -> None:
        self._begin = begin
        self._lines: dict[str, deque[Grant]] = {}  # by tenant; whose turn is next, first
        self._of_tenant: Counter[str] = Counter()
        self.under_way = 0

    def ask(self, grant: Grant) -> None:
        """Fetch now, or as soon as there is a place."""
        if self._has_place(grant.tenant):
            self._take(grant)
        else:
            self._lines.setdefault(grant.tenant, deque()).append(grant)

    def over(self, tenant: str) -> None:
        """One of the tenant's has ended: who is next begins."""
        self._leave(tenant)
        while (found := next(filter(self._has_place, self._lines), None)) is not None:
            line = self._lines.pop(found)
            grant = line.popleft()
            if line:
                self._lines[found] = line
            self._take(grant)

    def _has_place(self, tenant: str) -> bool:
        used, free = self._of_tenant[tenant], OF_PROCESS - self.under_way
        return free > 0 and used < (OF_TENANT if free > LAST else 1)

    def _take(self, grant: Grant) -> None:
        self.under_way += 1
        self._of_tenant[grant.tenant] += 1
        try:
            self._begin(grant)
        except BaseException:  # a defect in sending must not keep a place
            self._leave(grant.tenant)
            raise

    def _leave(self, tenant: str) -> None:
        self.under_way -= 1
        self._of_tenant[tenant] -= 1
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]
