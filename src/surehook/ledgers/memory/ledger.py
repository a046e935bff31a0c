"""All parts together: one object for the three ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surehook.ledgers.memory.accept import Accepting
from surehook.ledgers.memory.claim import Claiming
from surehook.ledgers.memory.endings import Endings
from surehook.ledgers.memory.handing import Handing
from surehook.ledgers.memory.nodes import Nodes
from surehook.ledgers.memory.prune import Pruning
from surehook.ledgers.memory.reading import Reads
from surehook.ledgers.memory.receipts import Receiving
from surehook.ledgers.memory.record import Recording
from surehook.ledgers.memory.registry import Registering
from surehook.ledgers.memory.replays import Replaying

if TYPE_CHECKING:
    from surehook.ports.handoff import Handing as HandingPort
    from surehook.ports.ledger import Ledger
    from surehook.ports.reading import Reading
    from surehook.ports.registry import Registry


class MemoryLedger(
    Nodes, Accepting, Claiming, Recording, Endings, Handing, Pruning, Receiving, Registering, Reads, Replaying
):
    """`Ledger`, `Registry`, `Reading` and `Handing` in dictionaries. `faults` and `checkpoint`: see `hooks.py`."""


if TYPE_CHECKING:

    def _keeps_the_ports(ledger: MemoryLedger) -> tuple[Ledger, Registry, Reading, HandingPort]:
        """The type checker compares the class with the ports here."""
        return ledger, ledger, ledger, ledger
