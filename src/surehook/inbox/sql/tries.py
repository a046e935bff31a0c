"""Attempts that failed, the last few of each event; and how an event came."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, func, select

from surehook.inbox.sql import versions
from surehook.inbox.sql.bulk import Row, Rows, insert_rows
from surehook.inbox.sql.reading import Reading
from surehook.inbox.sql.tables import MESSAGE_CHARS, TEXT_CHARS, TRIES, events, requests, tries
from surehook.ports.inbox import Settlement
from surehook.ports.inbox_tries import Original, Try

_COLUMNS = Try.__struct_fields__


class Tries(Reading):
    """`ports.inbox_tries.TryTransaction` on a connection inside a transaction."""

    def tries(self, event: bytes) -> list[Try]:
        found = self.connection.execute(
            select(*(tries.c[name] for name in _COLUMNS)).where(tries.c.event == event).order_by(tries.c.at)
        )
        return [Try(**{**row._mapping, "event": bytes(row.event)}) for row in found]

    def original(self, event: bytes) -> Original | None:
        found = self.connection.execute(
            select(requests.c.url, requests.c.headers, requests.c.body)
            .select_from(events.join(requests, requests.c.id == events.c.request))
            .where(events.c.id == event)
        ).first()
        return None if found is None else Original(url=found[0], headers=found[1], body=bytes(found[2]))

    def outdated(self) -> str | None:
        if versions.is_current(self.connection):
            return None
        found = versions.of(self.connection)
        # Without any, the first statement says what is missing.
        return None if found in (0, versions.CURRENT) else versions.outdated(found)

    def keep_tries(self, settlements: Sequence[Settlement]) -> None:
        """Write down the attempts that failed, and let go of the oldest ones beyond the bound."""
        failed = [one.tried for one in settlements if one.tried is not None]
        if not failed:
            return
        insert_rows(self.connection, Rows(tries, _COLUMNS, [_row(one) for one in failed]))
        many = (
            select(tries.c.event)
            .where(tries.c.event.in_([one.event for one in failed]))
            .group_by(tries.c.event)
            .having(func.count() > TRIES)
        )
        for (event,) in self.connection.execute(many).all():
            self._forget(bytes(event))

    def _forget(self, event: bytes) -> None:
        newest = select(tries.c.at).where(tries.c.event == event).order_by(tries.c.at.desc())
        last = self.connection.execute(newest.offset(TRIES - 1).limit(1)).scalar()
        self.connection.execute(delete(tries).where(tries.c.event == event, tries.c.at < last))


def _row(one: Try) -> Row:
    name = None if one.name is None else one.name[:TEXT_CHARS]
    message = None if one.message is None else one.message[:MESSAGE_CHARS]
    return (one.event, one.at, one.number, one.attempt, one.code, one.handler, name, message)
