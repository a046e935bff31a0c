"""What other nodes found out of breakers, and the one place that judges it, wherever it is read.

While nodes can ask what they share, it comes with each exchange (`delivery/share.py`); else from the ledger, at each look:
every opening, reopening and closing is written there with the results that caused it. Both say the same: a state and the
generation of the decision, and `Breaker.hear` says which of two is newer. A node that delivers only the first lane never
probes: this is how it learns that a probe went well.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.core.model import BreakerRow
from surehook.delivery.breakers import UrlBreaker
from surehook.delivery.routes import Directory
from surehook.ports.clock import Clock
from surehook.ports.health import View
from surehook.ports.ledger import Ledger


class ClusterHealth:
    """`changed` is told of what opened or closed here by the word of others, or may be probed sooner."""

    def __init__(
        self, *, ledger: Ledger, clock: Clock, directory: Directory, changed: Callable[[UrlBreaker], None]
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._breakers = directory.breakers
        self._changed = changed

    def hear(self, view: View) -> None:
        """Somebody says that a breaker stands so."""
        breaker = self._breakers.get((view.tenant, view.key))
        if breaker is None:
            self._breakers.hear(view, self._clock.now())
        elif breaker.hear_view(view):
            self._changed(breaker)

    async def look(self) -> None:
        """Hear what the ledger says, while the others cannot be asked."""
        known = [breaker.place for breaker in self._breakers.unclosed]
        self._breakers.forget_heard(self._clock.now())
        for row in await self._ledger.breakers(known):
            self.hear(_view(row))


def _view(row: BreakerRow) -> View:
    return View(
        tenant=row.tenant, key=row.key, state="closed" if row.state == "closed" else "open", reason=row.reason or None,
        opened_at=row.opened_at, probe_at=row.probe_at, generation=row.generation,
    )  # fmt: skip
