"""Whose turn it is: tenants one after another, and within a tenant its endpoints one after another.

A tenant with a thousand endpoints gets as many turns as one with a single endpoint. Both steps take the same time,
whatever waits.
"""

from __future__ import annotations

from collections import deque

from surehook.delivery.endpoint_state import EndpointState


class Turns:
    """Endpoints that wait for a turn; each stands here once at most, which is its owner's care. `tenants` are those with
    somebody in line, and empty where nobody is: for a loop that asks at each step."""

    __slots__ = ("_lines", "_spare", "aside", "tenants")

    def __init__(self) -> None:
        self.tenants: deque[str] = deque()  # those with somebody in line
        self.aside: list[str] = []  # … and no turn for now
        self._lines: dict[str, deque[EndpointState]] = {}
        self._spare: deque[EndpointState] | None = None  # an empty line, to be used again

    def __bool__(self) -> bool:
        return bool(self.tenants)

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def lines(self) -> dict[str, deque[EndpointState]]:
        """Each tenant that has somebody in line, and whom."""
        return self._lines

    def set_aside(self) -> None:
        """The tenant whose turn it is has none until `bring_back`."""
        self.aside.append(self.tenants.popleft())

    def bring_back(self) -> None:
        """All who were set aside have turns again."""
        self.tenants.extend(self.aside)
        self.aside.clear()

    def add(self, route: EndpointState) -> None:
        """Stand at the end of the tenant's line."""
        tenant = route.endpoint.tenant
        line = self._lines.get(tenant)
        if line is None:
            line, self._spare = self._spare, None
            if line is None:
                line = deque()
            self._lines[tenant] = line
            self.tenants.append(tenant)
        line.append(route)

    def add_first(self, route: EndpointState) -> None:
        """It is this one's turn."""
        tenant = route.endpoint.tenant
        line = self._lines.get(tenant)
        if line is None:
            self._lines[tenant] = deque((route,))
        else:
            line.appendleft(route)
            self.tenants.remove(tenant)
        self.tenants.appendleft(tenant)

    def take(self) -> EndpointState:
        """Take out whose turn it is."""
        tenant = self.tenants.popleft()
        line = self._lines[tenant]
        route = line.popleft()
        if line:
            self.tenants.append(tenant)
        else:
            del self._lines[tenant]
            self._spare = line
        return route


class Line:
    """Turns where somebody who stands in line already is not added again."""

    __slots__ = ("_in_line", "_turns")

    def __init__(self) -> None:
        self._turns = Turns()
        self._in_line: set[EndpointState] = set()

    def __len__(self) -> int:
        return len(self._in_line)

    def add(self, route: EndpointState) -> None:
        if route not in self._in_line:
            self._in_line.add(route)
            self._turns.add(route)

    def take(self) -> EndpointState:
        """Take out whose turn it is."""
        route = self._turns.take()
        self._in_line.discard(route)
        return route
