"""All parts together: one object for the three ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.ledger.accept import Accepting
from lab.ledger.claim import Claiming
from lab.ledger.endings import Endings
from lab.ledger.handing import Handing
from lab.ledger.nodes import Nodes
from lab.ledger.prune import Pruning
from lab.ledger.reading import Reads
from lab.ledger.receipts import Receiving
from lab.ledger.record import Recording
from lab.ledger.registry import Registering
from lab.ledger.replays import Replaying

if TYPE_CHECKING:
    from surehook.ports.handoff import Handing as HandingPort
    from surehook.ports.ledger import Ledger
    from surehook.ports.reading import LedgerReading
    from surehook.ports.registry import Registry


class MemoryLedger(
    Nodes, Accepting, Claiming, Recording, Endings, Handing, Pruning, Receiving, Registering, Reads, Replaying
):
    """`Ledger`, `Registry`, `LedgerReading` and `Handing` in dictionaries. `faults` and `checkpoint`: see `hooks.py`."""


if TYPE_CHECKING:

    def _keeps_the_ports(ledger: MemoryLedger) -> tuple[Ledger, Registry, LedgerReading, HandingPort]:
        """The type checker compares the class with the ports here."""
        return ledger, ledger, ledger, ledger
