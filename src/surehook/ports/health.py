"""Health of endpoints as all nodes see it together: breaker windows and states, one probe, slots.

Health is advice, never authority: deliveries do not wait for it. Whatever goes wrong with it raises
`HealthAway`, and the node decides on what it has seen itself until the next exchange succeeds. A store that
has lost everything (flushed, failed over) is filled again by what the nodes remember.

Two rules make exchanges simple. Counts are only added up, so a batch of them can be reported at any time. And every
change of a breaker's state carries a *generation*: the greater one wins (core/breaker.py). It is set where the change
is decided. The store never goes back: it raises the generation of a change that met others on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct


class HealthAway(Exception):
    """The shared health cannot be asked now; decide alone."""


class Counted(Struct, frozen=True):
    """Calls of one breaker that this node has not reported yet."""

    tenant: str
    key: str  # scheme://host:port/path
    window_ms: int
    buckets: tuple[tuple[int, int, int], ...]  # (number, calls, failures); a number is sixtieths of windows


class Turn(Struct, frozen=True):
    """A breaker's state as this node has just decided it.

    `again`: nothing new was decided; the store is told because it knows nothing, or something older.
    `hastened`: the breaker that is open for all may be probed from `probe_at` on, if that is sooner, since its receiver may
    be mended, or its policy now waits for less.
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
    """A breaker as all nodes see it. `generation` 0: the store knows no state of it (closed, if ever open).

    `author` is the node whose turn this state is, in hex; "" where nobody's. `calls` and `failures` are those of
    every node within the window, where the breaker was reported in this exchange; else None.
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


class Word(Struct, frozen=True):
    """The answer to one exchange.

    views     the breakers that were reported, and those whose state changed after `since`
    sharers   by endpoint: how many nodes, this one included, want more slots than their part of it
    since     what to ask with next time
    """

    views: list[View]
    sharers: dict[bytes, int]
    since: int


class Health(Protocol):
    async def open(self) -> None:
        """Connect. Raises HealthAway; an exchange tries again."""
        ...

    async def exchange(
        self,
        *,
        node: bytes,
        counted: Sequence[Counted],
        turns: Sequence[Turn],
        busy: Sequence[bytes],
        since: int,
        now: int,
    ) -> Word:
        """Report and learn, in one round trip and all or nothing.

        `turns` are applied before views are read:

        1. Opening takes effect where the breaker is closed, half-open by this node's probe, or open for another reason.
           Otherwise it only raises the generation, above the one that the reporting node knows.
        2. Closing always takes effect and forgets the window; of several nodes that close it the first is the author.
        3. A turn that is told `again` takes effect where it is newer than what is known, and keeps its generation.
        4. Hastening raises the generation of an open breaker, so that all nodes learn of it; a probe under way stays valid.

        `busy` are endpoints that this node could use more slots of: it counts as a sharer for `BUSY_MS` after that.
        """
        ...

    async def take_probe(self, tenant: str, key: str, *, node: bytes, until: int, now: int) -> bool:
        """Become the one probe of an open breaker, by compare-and-set. False: another node is it, the breaker is
        closed, or its probe is not due. The right ends with the turn that follows, or at `until`. A breaker that
        the store does not know may be probed, since the store may have lost it; so may one that opened in the future. A
        right that ends later than the one asked for is void."""
        ...

    async def close(self) -> None: ...


BUSY_MS = 3_000  # three exchanges
# Clocks of two nodes differ by at most this. Changes that much older than the newest are reported again; what lies
# further ahead was reported by a clock that has been set back since, and is ignored.
OVERLAP_MS = 5_000
