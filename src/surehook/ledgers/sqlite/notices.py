"""Notices: durable rows, written in the transaction of what they tell."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.core.model import Notice
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query


def keep_notices(session: Session, notices: Iterable[Notice]) -> None:
    for one in notices:
        values = (one.id, one.at, one.kind, one.tenant, one.endpoint, one.delivery, one.detail)
        session.run(query("notice"), values)


def keep_true_notices(
    session: Session, notices: Iterable[Notice], *, asked: Iterable[bytes], done: Iterable[bytes]
) -> None:
    """Keep the notices, but none about a delivery that was asked for and skipped: it would not be true."""
    skipped = set(asked).difference(done)
    keep_notices(session, (one for one in notices if one.delivery not in skipped))
