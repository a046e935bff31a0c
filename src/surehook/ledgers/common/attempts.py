"""The history of a delivery, read from its rows. In plain text, without SQLAlchemy."""

from __future__ import annotations

from surehook.core.model import Attempt
from surehook.ledgers import history
from surehook.ledgers.common.statements import Reading, Row, Statement

COLUMNS = (
    "delivery, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us, "
    "first_byte_us, total_us, headers, body, truncated, next_at"
)


def attempts(delivery: bytes) -> Reading[list[Attempt]]:
    """Read the whole history of a delivery, oldest first."""
    found = yield Statement(f"select {COLUMNS} from attempt where delivery = ? order by seq", (delivery,))
    return [attempt(row) for row in found]


def attempt(row: Row) -> Attempt:
    """Return the history row whose columns are `COLUMNS`."""
    (
        delivery, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us,
        first_byte_us, total_us, headers, body, truncated, next_at,
    ) = row  # fmt: skip
    kind = history.kind(seq)
    if kind != "attempt":
        # The row carries the outcome of the last request, for lists.
        outcome, unknown = None, 0
    return Attempt(
        delivery=delivery, number=history.number(seq), kind=kind, lane=lane, started_at=started_at,
        outcome=outcome, unknown=unknown != 0, status=status, error=error, address=address, dns_us=dns_us,
        connect_us=connect_us, tls_us=tls_us, first_byte_us=first_byte_us, total_us=total_us,
        headers=headers, body=body, truncated=truncated != 0, next_at=next_at,
    )  # fmt: skip
