"""Writes notices, in the transaction of what they tell."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.core.model import Notice
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query


def keep_notices(session: SqliteSession, notices: Iterable[Notice]) -> None:
    for one in notices:
        values = (one.id, one.at, one.kind, one.tenant, one.endpoint, one.delivery, one.detail)
        session.run(query("notice"), values)
