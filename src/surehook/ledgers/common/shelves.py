"""Where a ledger keeps events and histories, newest first.

One table each, or several with the same columns: a ledger that drops old rows by the partition first
moves what is still needed to a table of its own. A row may be in two of them for a moment; it is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Table

from surehook.ledgers import schema


class Shelves(NamedTuple):
    """`walked`: columns of a history's last line that an index leads along, in the order of ids."""

    events: Sequence[Table] = (schema.event,)
    histories: Sequence[Table] = (schema.attempt,)
    walked: frozenset[str] = frozenset()


ONE_TABLE = Shelves()
