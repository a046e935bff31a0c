"""Writes notices, in the transaction of what they tell."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.core.model import Notice
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query


async def keep_notices(session: PostgresSession, notices: Iterable[Notice]) -> None:
    rows = [(one.id, one.at, one.kind, one.tenant, one.endpoint, one.delivery, one.detail) for one in notices]
    if rows:
        await session.run(query("notices"), *map(list, zip(*rows, strict=True)))
