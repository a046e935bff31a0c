"""Outgoing calls that a request to the API starts, bounded apart from deliveries: test calls, and checks of URLs.

Whoever calls the API chooses how many there are and whom they go to, and each lasts as long as its receiver likes. So
each has a place for its endpoint, its tenant and this process, or is refused at once (429 `too_many_calls`). The bound
of the process is small beside the connections that deliveries may have, and is added to them (`bootstrap`).

A token fetch that a test call began outlives a caller who hangs up, so the call keeps its place until the fetch is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from surehook.core.errors import TooManyCalls

Kind = Literal["test", "check"]


class CallBounds(Struct, frozen=True):
    """Calls of one kind under way at once. `endpoint` None: the kind has no endpoint yet."""

    endpoint: int | None
    tenant: int
    process: int


# A test call holds a connection for as long as the patient timeout; a check holds a look-up for some seconds at most.
BOUNDS: dict[Kind, CallBounds] = {
    "test": CallBounds(endpoint=4, tenant=16, process=64),
    "check": CallBounds(endpoint=None, tenant=32, process=128),
}
RETRY_AFTER_S = 5
_HINTS: dict[Kind, str] = {
    "test": "wait until one of them has its answer; `surehook send` and events are not bounded by this",
    "check": "wait until one of them is done: each asks DNS where a URL leads",
}
_NAMES: dict[Kind, str] = {"test": "test calls", "check": "checks of URLs"}


class CallerCalls:
    """Counts what is under way, and what was refused."""

    def __init__(self) -> None:
        self.under_way: Counter[str] = Counter(dict.fromkeys(BOUNDS, 0))  # by kind
        self.begun: Counter[str] = Counter(dict.fromkeys(BOUNDS, 0))
        self.refused: Counter[tuple[str, str]] = Counter()  # (kind, endpoint | tenant | process)
        self._held: Counter[tuple[str, str | bytes]] = Counter()  # (kind, tenant or endpoint)

    def enter(self, kind: Kind, *, tenant: str, endpoint: bytes = b"") -> Place:
        """A place, which its holder must leave. Raises TooManyCalls, of the narrowest bound that is reached."""
        bounds = BOUNDS[kind]
        for scope, count, bound in (
            ("endpoint", self._held[kind, endpoint], bounds.endpoint),
            ("tenant", self._held[kind, tenant], bounds.tenant),
            ("process", self.under_way[kind], bounds.process),
        ):
            if bound is not None and count >= bound:
                self.refused[kind, scope] += 1
                raise TooManyCalls(
                    f"{bound} {_NAMES[kind]} of this {scope} are under way",
                    hint=_HINTS[kind],
                    retry_after_s=RETRY_AFTER_S,
                )
        self.begun[kind] += 1
        self.count(kind, tenant, endpoint, 1)
        return Place(self, kind, tenant, endpoint)

    @contextmanager
    def during(self, kind: Kind, *, tenant: str) -> Iterator[None]:
        """A place for as long as the block runs. Raises TooManyCalls."""
        place = self.enter(kind, tenant=tenant)
        try:
            yield
        finally:
            place.leave()

    def count(self, kind: Kind, tenant: str, endpoint: bytes, step: int) -> None:
        """So many more under way."""
        self.under_way[kind] += step
        for whose in (tenant, endpoint):
            self._held[kind, whose] += step
            if not self._held[kind, whose]:
                del self._held[kind, whose]


class Place:
    """One call's place. Left once, however often it is said."""

    __slots__ = ("_calls", "_endpoint", "_is_left", "_kind", "_tenant")

    def __init__(self, calls: CallerCalls, kind: Kind, tenant: str, endpoint: bytes) -> None:
        self._calls = calls
        self._kind: Kind = kind
        self._tenant = tenant
        self._endpoint = endpoint
        self._is_left = False

    def leave(self) -> None:
        if not self._is_left:
            self._is_left = True
            self._calls.count(self._kind, self._tenant, self._endpoint, -1)
