"""Breakers that no probe closes: their last endpoint is gone, no policy heeds them any more, or a person says so.

What the configuration closes every node closes that knew it, as it reads the change; to close twice is to close once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.core.model import BreakerRow
from surehook.delivery.breakers import UrlBreaker
from surehook.delivery.record import Record
from surehook.delivery.routes import Directory
from surehook.delivery.share import Share
from surehook.ports.clock import Clock


class Closing:
    """`changed` is told of one that other endpoints still have; `share` is None where each node decides alone."""

    def __init__(
        self,
        *,
        clock: Clock,
        directory: Directory,
        record: Record,
        share: Share | None,
        changed: Callable[[UrlBreaker, bytes], None],
    ) -> None:
        self._clock = clock
        self._breakers = directory.breakers
        self._record = record
        self._share = share
        self._changed = changed

    def restore(self, stood: Sequence[BreakerRow]) -> None:
        """Go on where the ledger said that breakers stood, before the configuration was read."""
        for row in stood:
            breaker = self._breakers.get((row.tenant, row.key))
            if breaker is None:
                orphan = UrlBreaker(row.tenant, row.key, None)
                orphan.restore(row)
                orphan.close(self._clock.now())
                self._gone(orphan)
            else:
                breaker.restore(row)
                self._breakers.unsettle(breaker)
        self.settle()

    def settle(self) -> None:
        """The configuration in memory has changed."""
        for breaker, is_known in self._breakers.settle(self._clock.now()):
            if breaker.routes:
                self._tell(breaker)
            elif is_known:
                self._gone(breaker)

    def close(self, breaker: UrlBreaker) -> None:
        """It is open by the word of a node that does not know yet that no policy heeds it."""
        breaker.close(self._clock.now())
        self._tell(breaker)

    def by_hand(self, breaker: UrlBreaker) -> None:
        """A person says that its receiver is well. The backlog begins slowly, as behind a probe."""
        if breaker.close(self._clock.now()) is None:
            return
        for route in breaker.routes:
            for limit in route.limits:
                limit.ramp()
        self._tell(breaker)

    def _tell(self, breaker: UrlBreaker) -> None:
        endpoint = breaker.oldest.endpoint.id
        turned = self._record.breaker_told if self._share is None else self._share.turned
        turned(breaker, "closed", endpoint)
        self._changed(breaker, endpoint)

    def _gone(self, breaker: UrlBreaker) -> None:
        self._record.breaker_gone(breaker)
        if self._share is not None:
            self._share.gone(breaker)
