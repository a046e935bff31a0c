"""What nodes that serve know of the configuration, and of breakers, beside what the ledger keeps."""

from __future__ import annotations

from collections.abc import Iterable

from lab.sim.loop import ProcessDied
from lab.sim.node import Machine
from surehook.core.errors import LedgerError
from surehook.core.model import BreakerRow, Configuration
from surehook.delivery.breakers import Breakers
from surehook.delivery.loading import read_all


async def known_configuration(machines: Iterable[Machine]) -> Configuration | None:
    """Read the configuration as a serving machine knows it."""
    for machine in machines:
        try:
            found: Configuration = await machine.call(lambda server: read_all(server.ledger))
        except (ProcessDied, LedgerError):
            continue
        return found
    return None


def breakers_behind(rows: Iterable[BreakerRow], machines: Iterable[Machine]) -> list[str]:
    """Find breakers that the ledger keeps open, and every node that serves knows to be closed since: a sentence each."""
    serving = [machine.server.engine.directory.breakers for machine in machines if machine.server is not None]
    return [
        f"the ledger keeps the breaker of {row.key} open, and every node knows that it has closed since"
        for row in rows
        if serving and all(_knows_closed(known, row) for known in serving)
    ]


def _knows_closed(known: Breakers, row: BreakerRow) -> bool:
    breaker = known.get((row.tenant, row.key))
    return breaker is not None and breaker.is_closed and row.generation < breaker.generation
