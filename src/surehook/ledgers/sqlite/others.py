"""Claims that skip some endpoints and tenants, however many of their rows are due first.

Each look reads a bounded number of rows (`LOOK_ROWS`), since the one writer does nothing else meanwhile; `Passes` chooses
which. A transaction has one look, and up to eleven where more rows have just fallen due than it reads. Only one process has
the file, so whatever makes rows ready out of order reports it here, on the writer's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import json

from surehook.core.model import Delivery, Lane
from surehook.ledgers.passes import FRESH_MS, DueRange, Key, Passes
from surehook.ledgers.sqlite.claim import claim, decode, lease, up_to
from surehook.ledgers.sqlite.nodes import fence
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import Skip, is_full

# A millisecond of reading.
LOOK_ROWS = 4_000
# Transactions of one call while it catches up with rows that fell due unseen.
LOOKS = 40
# Looks of one transaction at such rows although others come.
OWED_LOOKS = 2
# Rows due at any instant may have become ready.
LONG_AGO = -(1 << 62)

P = ParamSpec("P")
R = TypeVar("R")


class SqliteOthers:
    """The positions of these claims."""

    def __init__(self) -> None:
        self._passes = Passes(owed_looks=OWED_LOOKS)

    def claim(
        self,
        session: SqliteSession,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        now: int,
        size: int,
        skip: Skip,
        fresh: bool = False,
        goes_on: bool = False,
    ) -> tuple[list[Delivery], bool]:
        """Claim rows; also return True if another look, one that `goes_on`, may find rows that were missed."""
        with session.writing():
            number = fence(session, node).number
            parts = (
                self._passes.missed(lane, now=now, looks=1)
                if goes_on
                else self._passes.parts(lane, due_by=due_by, now=now, looks=1, fresh=fresh)
            )
            endpoints = json.encode([endpoint.hex().upper() for endpoint in skip.endpoints]).decode()
            passed_over = (json.encode(skip.tenants).decode(), endpoints)
            for part in parts:
                chosen = _look(session, lane, part, limit=limit, passed_over=passed_over)
                # Rows that were found do not wait for another look.
                if chosen:
                    ids = up_to(session, [id for _, id in chosen], size)
                    if len(ids) < len(chosen):
                        part.reached(chosen[len(ids) - 1])
                    return lease(session, ids, number), False
            return [], not fresh and self._passes.is_behind(lane, now=now)

    def claim_all(
        self, session: SqliteSession, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int
    ) -> list[Delivery]:
        """Claim rows of every endpoint and tenant."""
        leased = claim(session, lane, node=node, limit=limit, due_by=due_by, now=now, size=size)
        if not is_full(leased, limit=limit, size=size):
            self._passes.taken(lane, min(due_by, now) - FRESH_MS)
        elif leased:
            self._passes.taken(lane, leased[-1].due_at)
        return leased

    def failed(self) -> None:
        """Look at everything again: nobody knows if the rows of the last look are leased."""
        self._passes.lower(LONG_AGO)

    def lowering(
        self, work: Callable[Concatenate[SqliteSession, P], R], due_at: int | None
    ) -> Callable[Concatenate[SqliteSession, P], R]:
        """Wrap work that makes rows ready that are due from this instant on."""

        def lower(session: SqliteSession, /, *args: P.args, **kwargs: P.kwargs) -> R:
            self._passes.lower(due_at)
            return work(session, *args, **kwargs)

        return lower


def _look(
    session: SqliteSession, lane: Lane, part: DueRange, *, limit: int, passed_over: tuple[str, str]
) -> list[Key]:
    """Read up to `limit` rows of a part, but none of the tenants and endpoints that are `passed_over` (JSON)."""
    stretch = (lane, *part.begin, part.end)
    asked = (*stretch, LOOK_ROWS - 1, *stretch, LOOK_ROWS, *passed_over, limit)
    last, found = decode(session.value(query("others"), asked))
    rows = sorted([_key(row) for row in found])
    if len(rows) == limit:
        part.reached(rows[-1])
    else:
        part.reached(None if last is None else _key(last))
    return rows


def _key(row: tuple[int, str]) -> Key:
    return row[0], bytes.fromhex(row[1])
