"""An error that stays inside the ledgers."""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable


class Unstorable(LedgerUnavailable):
    """The database refuses the data of a statement. The caller splits the batch, or reports a Problem."""
