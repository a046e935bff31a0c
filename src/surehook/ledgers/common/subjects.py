"""Events of a subject for all tenants, by an index that begins with the tenant.

That index is maintained with every event, and one without the tenant would be a second one. So the tenants that have events
with a subject are found by stepping from one to the next, one index entry each, and each tenant's events are read.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, exists, func, select

from surehook.ledgers import schema
from surehook.ledgers.common.paging import Span
from surehook.ledgers.common.steps import Again, Row, Steps

# Some 20 ms; with more tenants, lists walk.
TENANTS_MAX = 5_000
_event = schema.event
_TENANT = bindparam("one_tenant", "", Text)


def of_every_tenant(subject: str, listing: Select[Any], span: Span, *, limit: int) -> Steps[list[Row] | None]:
    """Read the newest rows of `listing` of a subject's events in a span; None: there are too many tenants.

    The first column of `listing` is the id.
    """
    having = yield _having(subject)
    if len(having) > TENANTS_MAX:
        return None
    of_one = listing.where(
        _event.c.tenant == _TENANT, _event.c.subject == subject, *span.of(_event.c.id)
    ).order_by(_event.c.id.desc())
    found: list[Row] = []
    for tenant, has in having:
        if has:
            found += yield Again(of_one.limit(limit), {"one_tenant": tenant})
    return sorted(found, key=lambda row: bytes(row[0]), reverse=True)[:limit]


def _having(subject: str) -> Select[Any]:
    """Select the tenants that have events with a subject, and if they have some with this one."""
    with_subject = _event.c.subject.is_not(None)
    first = select(func.min(_event.c.tenant).label("tenant")).where(with_subject)
    tenants = first.cte("tenants", recursive=True)
    following = select(func.min(_event.c.tenant)).where(with_subject, _event.c.tenant > tenants.c.tenant)
    tenants = tenants.union_all(select(following.scalar_subquery()).where(tenants.c.tenant.is_not(None)))
    has: ColumnElement[bool] = exists().where(
        and_(_event.c.tenant == tenants.c.tenant, _event.c.subject == subject)
    )
    return select(tenants.c.tenant, has).where(tenants.c.tenant.is_not(None)).limit(TENANTS_MAX + 1)
