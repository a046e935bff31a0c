"""Events of a subject, whoever's they are, where the one index by subject begins with the tenant.

That index is kept up with every event, and one without the tenant would be a second one. So the tenants that have events
with a subject are found by steps from one to the next, each an entry of the index, and each tenant is asked.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, exists, func, select

from surehook.ledgers import schema
from surehook.ledgers.common.paging import Span
from surehook.ledgers.common.steps import Again, Row, Steps

TENANTS_MAX = 5_000  # some 20 ms; where there are more, lists walk
_event = schema.event
_TENANT = bindparam("one_tenant", "", Text)


def of_every_tenant(subject: str, listing: Select[Any], span: Span, *, limit: int) -> Steps[list[Row] | None]:
    """The first so many rows, newest first, that `listing` has of a subject's events in a span. Their ids come first in each.
    None: there are more tenants than are asked."""
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
    """Tenants that have events with a subject, and whether they have some with this one."""
    with_subject = _event.c.subject.is_not(None)
    first = select(func.min(_event.c.tenant).label("tenant")).where(with_subject)
    tenants = first.cte("tenants", recursive=True)
    following = select(func.min(_event.c.tenant)).where(with_subject, _event.c.tenant > tenants.c.tenant)
    tenants = tenants.union_all(select(following.scalar_subquery()).where(tenants.c.tenant.is_not(None)))
    has: ColumnElement[bool] = exists().where(
        and_(_event.c.tenant == tenants.c.tenant, _event.c.subject == subject)
    )
    return select(tenants.c.tenant, has).where(tenants.c.tenant.is_not(None)).limit(TENANTS_MAX + 1)
