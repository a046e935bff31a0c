"""Looks within bounds: other bodies of an event, how far a list may go, what has been due for longest."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlalchemy import Connection, func, select

from surehook.inbox.sql import documenting
from surehook.inbox.sql.finding import standing_still
from surehook.inbox.sql.tables import STOPPED, conflicts, events, requests, runs
from surehook.ports.inbox_reading import OldestDue, Other
from surehook.ports.inbox_runs import DocumentKey, Filter, Run


class Reading(ABC):
    """`ports.inbox_reading.ReadingTransaction` on a connection inside a transaction."""

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """To say something with."""

    def others(self, event: bytes) -> list[Other]:
        found = self.connection.execute(
            select(conflicts.c.received_at, conflicts.c.body_sha256, requests.c.body)
            .select_from(conflicts.outerjoin(requests, requests.c.id == conflicts.c.request))
            .where(conflicts.c.event == event)
            .order_by(conflicts.c.id)
        )
        return [
            Other(received_at=at, body_sha256=bytes(sha256), body=None if body is None else bytes(body))
            for at, sha256, body in found
        ]

    def reach(self, wanted: Filter, *, looks: int) -> int | None:
        if self._is_found_by_index(wanted, looks):
            return None
        came = select(events.c.received_at).order_by(events.c.received_at.desc()).offset(looks - 1).limit(1)
        if wanted.until is not None:
            came = came.where(events.c.received_at < wanted.until)
        if wanted.since is not None:
            came = came.where(events.c.received_at >= wanted.since)
        found = self.connection.execute(came).scalar()
        return None if found is None else int(found)

    def _is_found_by_index(self, wanted: Filter, looks: int) -> bool:
        """Tell whether an index of its own gives what fits, and little beside it."""
        if wanted.event is not None or wanted.document is not None:
            return True
        if None not in (wanted.source, wanted.tenant, wanted.event_id):
            return True
        if wanted.state not in STOPPED:
            return False
        some = standing_still(wanted.state).limit(looks + 1).subquery()
        count = self.connection.execute(select(func.count()).select_from(some)).scalar()
        return count is not None and count <= looks

    def oldest_due(self, *, now: int) -> OldestDue | None:
        found = self.connection.execute(
            select(runs.c.id, events.c.source, runs.c.due_at)
            .select_from(runs.join(events, events.c.id == runs.c.event))
            .where(runs.c.due_at <= now)
            .order_by(runs.c.due_at, runs.c.id)
            .limit(1)
        ).first()
        return (
            None if found is None else OldestDue(run=bytes(found[0]), source=found[1], due_at=int(found[2]))
        )

    def moved_by(self, key: DocumentKey, event_id: str, source: str) -> Run | None:
        return documenting.moved_by(self.connection, key, event_id, source)
