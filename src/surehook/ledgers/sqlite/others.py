"""Claims past those who have enough: the rows of everybody else, however many of theirs lie in front.

A look is at a bounded number of rows (`LOOK_ROWS`), since the one writer does nothing else meanwhile. `Passes` says
where it looks. One process has the file, so whatever makes rows ready out of order says so here, on the writer's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import json

from surehook.core.model import Delivery, Lane
from surehook.ledgers.passes import FRESH_MS, Key, Part, Passes
from surehook.ledgers.sqlite.claim import claim, decode, lease, up_to
from surehook.ledgers.sqlite.fence import fence
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import Skip, is_full

LOOK_ROWS = 4_000  # a millisecond of walking
LOOKS = 40  # transactions of a call, while it catches up with what fell due and nobody looked at

LONG_AGO = -(1 << 62)  # rows of any instant may have become ready

P = ParamSpec("P")
R = TypeVar("R")


class Others:
    """Where these claims stand."""

    def __init__(self) -> None:
        self._passes = Passes()

    def claim(
        self,
        session: Session,
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
        """Rows, and whether another look may find some that were missed: one that `goes_on`."""
        with session.writing():
            number = fence(session, node).number
            parts = (
                self._passes.missed(lane, now=now, looks=1)
                if goes_on
                else self._passes.parts(lane, due_by=due_by, now=now, looks=1, fresh=fresh)
            )
            for part in parts:
                chosen = _look(session, lane, part, limit=limit, skip=skip)
                if chosen:  # what was found is not kept waiting for another look
                    ids = up_to(session, [id for _, id in chosen], size)
                    if len(ids) < len(chosen):
                        part.reached(chosen[len(ids) - 1])
                    return lease(session, ids, number), False
            return [], not fresh and self._passes.is_behind(lane, now=now)

    def claim_all(
        self, session: Session, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int
    ) -> list[Delivery]:
        """A claim that passes nobody over."""
        leased = claim(session, lane, node=node, limit=limit, due_by=due_by, now=now, size=size)
        if not is_full(leased, limit=limit, size=size):
            self._passes.taken(lane, min(due_by, now) - FRESH_MS)
        elif leased:
            self._passes.taken(lane, leased[-1].due_at)
        return leased

    def failed(self) -> None:
        """Nobody knows whether what a look found is leased."""
        self._passes.lower(LONG_AGO)

    def lowering(
        self, work: Callable[Concatenate[Session, P], R], due_at: int | None
    ) -> Callable[Concatenate[Session, P], R]:
        """Work by which rows that are due from this instant on become ready."""

        def lower(session: Session, /, *args: P.args, **kwargs: P.kwargs) -> R:
            self._passes.lower(due_at)
            return work(session, *args, **kwargs)

        return lower


def _look(session: Session, lane: Lane, part: Part, *, limit: int, skip: Skip) -> list[Key]:
    """Up to `limit` rows of a part."""
    endpoints = json.encode([endpoint.hex().upper() for endpoint in skip.endpoints]).decode()
    tenants = json.encode(skip.tenants).decode()
    stretch = (lane, *part.begin, part.end)
    asked = (*stretch, LOOK_ROWS - 1, *stretch, LOOK_ROWS, tenants, endpoints, limit)
    last, found = decode(session.value(query("others"), asked))
    rows = sorted([_key(row) for row in found])
    if len(rows) == limit:
        part.reached(rows[-1])
    else:
        part.reached(None if last is None else _key(last))
    return rows


def _key(row: tuple[int, str]) -> Key:
    return row[0], bytes.fromhex(row[1])
