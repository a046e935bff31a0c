"""Lines of history out of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surehook.core.model import Attempt
from surehook.ledgers import history

COLUMNS = (
    "delivery, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us, "
    "first_byte_us, total_us, headers, body, truncated, next_at"
)


def attempt(row: Iterable[Any]) -> Attempt:
    """A line of history out of `COLUMNS`."""
    (
        delivery, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us,
        first_byte_us, total_us, headers, body, truncated, next_at,
    ) = row  # fmt: skip
    kind = history.kind(seq)
    if kind != "attempt":  # what it carries is the last request's, for lists
        outcome, unknown = None, 0
    return Attempt(
        delivery=delivery, number=history.number(seq), kind=kind, lane=lane, started_at=started_at,
        outcome=outcome, unknown=unknown != 0, status=status, error=error, address=address, dns_us=dns_us,
        connect_us=connect_us, tls_us=tls_us, first_byte_us=first_byte_us, total_us=total_us,
        headers=headers, body=body, truncated=truncated != 0, next_at=next_at,
    )  # fmt: skip
