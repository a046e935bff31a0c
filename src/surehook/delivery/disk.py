"""Whether results could fill what is left of the ledger's disk."""

from __future__ import annotations

from surehook.ports.reading import Reading


def is_short(ledger: Reading) -> bool:
    """Asked with every beat, and before sending goes on: below half of the floor nothing starts."""
    room = ledger.room()
    return room is not None and room.is_short
