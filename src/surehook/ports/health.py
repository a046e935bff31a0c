"""The health of endpoints as all nodes see it together: breaker windows and states, the one probe, slots.

Health is advice, never authority: deliveries do not wait for it. Any failure raises `HealthAway`, and the node decides by
its own observations until the next exchange succeeds. A store that has lost everything (flushed, failed over) is filled
again from what the nodes remember.

Two rules keep exchanges simple. Counts are only ever added, so a batch of them can be reported at any time. And every
change of a breaker's state carries a *generation*, of which the greater one wins (core/breaker.py). The node that decides
the change assigns it. If other changes reached the store first, the store raises it, so that what the store knows is never
older than what it was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct


class HealthAway(Exception):
    """The shared health cannot be reached now: decide alone."""


class Counted(Struct, frozen=True):
    """The calls of one breaker that this node has not reported yet."""

    tenant: str
    # scheme://host:port/path
    key: str
    window_ms: int
    # (number, calls, failures). A bucket is one sixtieth of the window; its number counts them from the epoch.
    buckets: tuple[tuple[int, int, int], ...]


class BreakerUpdate(Struct, frozen=True):
    """A breaker's state as this node has decided it.

    again     nothing new was decided: the store is told because it knows nothing, or something older
    hastened  the open breaker may be probed from `probe_at` on, if that is sooner than planned: its receiver may have
              recovered, or its policy now waits less
    """

    tenant: str
    key: str
    state: Literal["open", "closed"]
    reason: str | None
    opened_at: int
    probe_at: int
    generation: int
    again: bool = False
    hastened: bool = False


class View(Struct, frozen=True):
    """A breaker as all nodes see it.

    generation  0 if the store knows no state of it (closed, if ever open)
    author      the node that brought about this state, in hex; "" if no node did
    calls, failures  of all nodes within the window, if the breaker was reported in this exchange; else None
    """

    tenant: str
    key: str
    state: Literal["open", "closed"]
    reason: str | None
    opened_at: int
    probe_at: int
    generation: int
    author: str = ""
    calls: int | None = None
    failures: int | None = None


class HealthReply(Struct, frozen=True):
    """The answer to one exchange.

    views    the breakers that were reported, and those whose state changed after `since`
    sharers  by endpoint, the number of nodes, this one included, that want more slots than their part
    since    to be passed to the next exchange
    """

    views: list[View]
    sharers: dict[bytes, int]
    since: int


class Health(Protocol):
    async def open(self) -> None:
        """Connect. Raises HealthAway; the next exchange tries again."""
        ...

    async def exchange(
        self,
        *,
        node: bytes,
        counted: Sequence[Counted],
        updates: Sequence[BreakerUpdate],
        busy: Sequence[bytes],
        since: int,
        now: int,
    ) -> HealthReply:
        """Report and learn. After HealthAway any part may have been done: updates may be told again, counts may not.

        `updates` are applied before counts are added and views are read. Of one breaker there are one decision (told anew or
        `again`) and one hastening at most, in whichever order:

        1. Opening takes effect if the breaker is closed, or half-open with this node's probe, or open for another reason.
           Otherwise it only raises the generation above the one that was told.
        2. Closing always takes effect and clears the window. If several nodes close it, the first one is the author.
        3. An update that is told `again` takes effect if it is newer than what is known, and keeps its generation.
        4. Hastening raises the generation of an open breaker, so that every node learns of it. A probe that is under way
           stays the one probe.

        `busy` are the endpoints of which this node could use more slots: it counts as a sharer for `BUSY_MS` from then on.
        """
        ...

    async def take_probe(self, tenant: str, key: str, *, node: bytes, until: int, now: int) -> bool:
        """Try to become the one probe of an open breaker, by compare-and-set.

        False: another node is the probe, the breaker is closed, or no probe is due. The right ends with the next update of
        the breaker, or at `until`. A breaker that the store does not know may be probed, since the store has forgotten it;
        so may one that opened in the future. A right that lasts beyond `until` counts for nothing: a clock was set back.
        """
        ...

    async def close(self) -> None: ...


# Three exchanges.
BUSY_MS = 3_000
# No two nodes' clocks are further apart than this. Changes that are less than this older than the newest are read again;
# what lies further ahead was told by a clock that has been set back since, and counts for nothing.
OVERLAP_MS = 5_000
