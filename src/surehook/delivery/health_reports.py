"""News of breakers that this node has for the others: changes that it decided, and those to be probed sooner.

Gathered until the next exchange (`cluster_health.py`). A change takes effect here at once; it is written into the ledger when
the others have taken it as theirs, so it is kept apart until then.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from surehook.core.breaker import Change
from surehook.core.model import BreakerRow
from surehook.delivery.breakers import Breakers
from surehook.delivery.endpoint_state import Place, UrlBreaker
from surehook.ports.health import BreakerUpdate

REPORTS_MAX = 1_000  # breakers, and changes of them, in one exchange; the others come with the next

T = TypeVar("T")

Decided = tuple[UrlBreaker, Change, bytes]  # what changed, how, and by a call of which endpoint


class Reports(Struct):
    """News that goes out with one exchange."""

    turned: dict[Place, Decided]
    newer: dict[Place, BreakerUpdate]
    hastened: dict[Place, BreakerUpdate]

    def turns(self) -> list[BreakerUpdate]:
        turns = [turn_of(breaker) for breaker, _, _ in self.turned.values()]
        turns += [one for place, one in self.newer.items() if place not in self.turned]
        return [*turns, *self.hastened.values()]


class HealthReports:
    """Told by the parts that decide; `cluster_health.py` takes out what it tells."""

    def __init__(self) -> None:
        self._turned: dict[Place, Decided] = {}  # not known to the others yet
        self._untold: dict[Place, Decided] = {}  # … and not in the ledger either
        self._newer: dict[Place, BreakerUpdate] = {}  # of which we know better than the store
        self._hastened: dict[Place, BreakerUpdate] = {}  # to be probed sooner, which nobody else knows yet
        self.wake = asyncio.Event()
        self.is_away = False  # the others cannot be asked

    # -- by those who decide ----------------------------------------------------------------------------

    def on_breaker_change(self, breaker: UrlBreaker, change: Change, endpoint: bytes) -> None:
        """A breaker changed here, by a call of the endpoint."""
        self._turned[breaker.place] = self._untold[breaker.place] = (breaker, change, endpoint)
        self._hastened.pop(breaker.place, None)
        self.wake.set()

    def hastened(self, breaker: UrlBreaker) -> None:
        """It may be probed sooner, by whichever node delivers the patient lane."""
        self._hastened[breaker.place] = turn_of(breaker, hastened=True)
        self.wake.set()

    def gone(self, breaker: UrlBreaker) -> None:
        """The last endpoint with its URL is gone: the others may forget it, and nobody need be told of its turns."""
        self._untold.pop(breaker.place, None)
        if self.is_away:
            self._turned.pop(breaker.place, None)  # see `forget_gone`
            return
        self._turned[breaker.place] = (breaker, "closed", b"")
        self.wake.set()

    # -- by exchanges -----------------------------------------------------------------------------------

    def take(self) -> Reports:
        """Take out the news for the next exchange."""
        newer, self._newer = self._newer, {}
        return Reports(_taken(self._turned), newer, _taken(self._hastened))

    def put_back(self, reports: Reports, breakers: Breakers) -> None:
        """The others could not be told. What has changed since holds, and what it is about may be gone."""
        self._turned = reports.turned | self._turned
        self._hastened = reports.hastened | self._hastened
        self._forget_gone(breakers)

    def has_turned(self, place: Place) -> bool:
        """Tell whether it changed here, and the others have not been told."""
        return place in self._turned

    def know_better(self, newer: BreakerUpdate) -> None:
        """The store knows something older."""
        self._newer[newer.tenant, newer.key] = newer

    def take_untold(self, place: Place) -> Decided | None:
        """Take out the change of this one that the ledger has not been told of."""
        return self._untold.pop(place, None)

    def take_all_untold(self) -> list[Decided]:
        """Take out all changes that the ledger has not been told of, since nobody has confirmed them."""
        untold, self._untold = self._untold, {}
        return list(untold.values())

    def went_away(self) -> bool:
        """The others cannot be asked; whether that is new."""
        was_away, self.is_away = self.is_away, True
        return not was_away

    def came_back(self) -> bool:
        """They can be asked; whether that is new."""
        was_away, self.is_away = self.is_away, False
        return was_away

    def _forget_gone(self, breakers: Breakers) -> None:
        """After an outage nobody need be told of breakers without an endpoint: the store forgets them by itself, and an
        outage in which URLs change would keep every one of them."""
        self._turned = {
            place: decided for place, decided in self._turned.items() if breakers.get(place) is decided[0]
        }
        self._newer = {place: one for place, one in self._newer.items() if breakers.get(place) is not None}
        self._hastened = {
            place: turn for place, turn in self._hastened.items() if breakers.get(place) is not None
        }


def _taken(kept: dict[Place, T]) -> dict[Place, T]:
    return {place: kept.pop(place) for place in list(islice(kept, REPORTS_MAX))}


def turn_of(breaker: UrlBreaker, *, again: bool = False, hastened: bool = False) -> BreakerUpdate:
    """Its state, as this node has decided it."""
    return BreakerUpdate(
        tenant=breaker.tenant,
        key=breaker.key,
        state="closed" if breaker.is_closed else "open",
        reason=breaker.reason,
        opened_at=breaker.opened_at,
        probe_at=breaker.probe_at,
        generation=breaker.generation,
        again=again,
        hastened=hastened,
    )


def of_row(row: BreakerRow) -> BreakerUpdate:
    """The state that the ledger says, to be told again."""
    return BreakerUpdate(
        tenant=row.tenant, key=row.key, state="closed" if row.state == "closed" else "open", reason=row.reason or None,
        opened_at=row.opened_at, probe_at=row.probe_at, generation=row.generation, again=True,
    )  # fmt: skip
