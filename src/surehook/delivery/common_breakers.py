"""What other processes know of breakers by way of the ledger, while they cannot be asked (delivery/share.py).

Every opening, reopening and closing is written with the results that caused it (`record`), so at each look a
process learns what the others found: a newer opening holds here as well, and a breaker whose row is gone was
closed by somebody's probe. It takes a look's time (10 s) until it is known; meanwhile each decides by what it
has seen itself. A node that delivers only the first lane never probes: this is how it learns that a probe
went well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from surehook.core.model import BreakerRow
from surehook.delivery.breakers import UrlBreaker
from surehook.delivery.routes import Directory


def learn(
    directory: Directory,
    rows: Sequence[BreakerRow],
    *,
    asked_at: int,
    settle_ms: int,
    unwritten: Collection[tuple[str, str]],
    changed: Callable[[UrlBreaker], None],
) -> None:
    """Take over what the book says. `asked_at` is when it was asked, `settle_ms` how long a change of our own may
    take to be seen there, `unwritten` are the breakers whose last change waits to be written."""
    settling = asked_at - settle_ms
    stands = {(row.tenant, row.key): row for row in rows}
    for breaker in directory.breakers:
        place = breaker.place
        row = stands.get(place)
        if place in unwritten or breaker.is_probing:
            continue
        if row is not None and row.opened_at > breaker.opened_at:
            was_closed = breaker.is_closed
            breaker.restore(row)
            if was_closed:
                changed(breaker)
        elif row is None and not breaker.is_closed and not settling <= breaker.opened_at <= asked_at:
            breaker.close()
            changed(breaker)
