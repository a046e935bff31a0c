"""Documents for which time has passed. They are looked for type by type, each time through an index that begins with the type:
however many are due that nobody here follows, and however many sleep, a look reads what it returns.

Types are asked for together, in one statement, and what is found is locked by its keys in a second one, as a union locks nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from sqlalchemy import Connection, Executable, LargeBinary, bindparam, func, literal, select, union_all

from surehook.inbox.sql.bulk import update_rows
from surehook.inbox.sql.keyed import Keyed
from surehook.inbox.sql.tables import LEASES, documents, runs
from surehook.ports.inbox_runs import DocumentKey
from surehook.ports.inbox_waking import DueDocuments

NONE_DUE = DueDocuments({}, {})
TYPES = 100  # of one statement: SQLite takes 500 parts of a union
TYPES_MOST = 10_000  # that are looked at for those that nobody follows

_type, _at = documents.c.document_type, documents.c.wake_at
_KEY = (_type, documents.c.tenant, documents.c.document)
_KEY_NAMES = tuple(column.name for column in _KEY)
_STILL_DUE = Keyed(
    _KEY,
    lambda given: (
        select(*_KEY, _at)
        .where(given, _at <= bindparam("now"))
        .with_for_update(skip_locked=True, of=documents)
    ),
)
_LEASED_UNTIL = Keyed(
    _KEY,
    lambda given: (
        select(*_KEY).where(given, _at == bindparam("until")).with_for_update(skip_locked=True, of=documents)
    ),
)
_NOT_DUE = Keyed(
    _KEY,
    lambda given: (
        select(*_KEY)
        .where(
            given,
            documents.c.body.is_not(None),
            _at.is_(None) | (_at > bindparam("now")),
        )
        .with_for_update(skip_locked=True, of=documents)
    ),
)
_NEXT_TYPE = select(_type).where(_type > bindparam("after")).order_by(_type).limit(1)
_FIRST_OF = (
    select(documents.c.document)
    .where(_type == bindparam("type"), _at <= bindparam("before"))
    .order_by(_at)
    .limit(1)
)

_LEASED = ("wake_at",)
# The first run that is due; of those that were not tried before, the first that somebody has; and the first that somebody had and
# whose process ended long ago: it is due since its lease lapsed, so behind others that came later. A look ends after LOOKS rows.
LOOKS = 100_000
# Those that failed, or had no room, are tried again and again, and there may be thousands of them: who asks is told which ones
# somebody has, and finds out whether they matter. No time passes beside more than that.
TRIED_MOST = 1_000
_WAITS_SINCE = (
    select(runs.c.due_at).where(runs.c.due_at <= bindparam("now")).order_by(runs.c.due_at, runs.c.id).limit(1)
)
_lately = (runs.c.due_at > bindparam("since"), runs.c.due_at <= bindparam("until"), runs.c.number == 0)
_is_anothers = runs.c.lease != bindparam("token")
_BEGUN_SINCE = select(func.min(runs.c.accepted_at)).where(*_lately, _is_anothers, runs.c.error_code.is_(None))
_TRIED = (
    select(runs.c.id, runs.c.accepted_at)
    .where(
        *_lately,
        _is_anothers,
        runs.c.error_code.is_not(None),
        runs.c.accepted_at < bindparam("before"),
    )
    .limit(TRIED_MOST + 1)
)
_due = (
    select(runs.c.accepted_at, runs.c.lease, runs.c.number)
    .where(runs.c.due_at <= bindparam("since"))
    .order_by(runs.c.due_at, runs.c.id)
    .limit(LOOKS)
    .subquery()
)
_LAPSED_SINCE = select(func.min(_due.c.accepted_at)).where(_due.c.lease.is_not(None), _due.c.number == 0)
# As of one moment: a run that changes hands between two statements is in neither. An id of nothing is what is no run's.
_NOBODY = literal(b"", LargeBinary)
_AHEAD = union_all(
    select(literal("due"), _NOBODY, _WAITS_SINCE.scalar_subquery()),
    select(literal("begun"), _NOBODY, _BEGUN_SINCE.scalar_subquery()),
    select(literal("begun"), _NOBODY, _LAPSED_SINCE.scalar_subquery()),
    select(literal("tried"), *_TRIED.subquery().columns),
)


def due(
    connection: Connection, *, types: Sequence[str], now: int, limit: int
) -> list[tuple[DocumentKey, int]]:
    """Find documents for which time has passed, and when it did, and lock them."""
    found: list[tuple[int, DocumentKey]] = []
    for some, values in _portions(types):
        rows = connection.execute(_due_of(some), {**values, "now": now, "most": limit})
        found += [(at, (type_, tenant, document)) for type_, tenant, document, at in rows]
    keys = [key for _, key in sorted(found)[:limit]]
    still = _STILL_DUE.rows(connection, keys, now=now)
    locked = [((type_, tenant, document), at) for type_, tenant, document, at in still]
    return sorted(locked, key=lambda one: one[1])


def free(
    connection: Connection,
    found: Sequence[tuple[DocumentKey, int]],
    *,
    now: int,
    lease_ms: int,
    token: bytes,
) -> DueDocuments:
    """Choose those for which no run matters that came before their instants, as far as is known here."""
    # At first by itself: beside a backlog nothing may wake, and the rest costs more the longer that is.
    waits_since = connection.execute(_WAITS_SINCE, {"now": now}).scalar() if found else None
    found = [one for one in found if waits_since is None or one[1] <= waits_since]
    if not found:
        return NONE_DUE
    # Leases of another process may end later than one of ours would, as long as a claim takes none of them for lapsed: and later
    # than that by what its clock is ahead.
    bounds = {"since": now - lease_ms, "until": now + (LEASES + 1) * lease_ms, "token": token, "now": now}
    ahead = connection.execute(_AHEAD, {**bounds, "before": max(at for _, at in found)}).all()
    first = min((int(at) for what, _, at in ahead if what != "tried" and at is not None), default=now)
    tried = {bytes(run): int(at) for what, run, at in ahead if what == "tried"}
    if len(tried) > TRIED_MOST:
        return NONE_DUE
    return DueDocuments({key: wake_at for key, wake_at in found if wake_at <= first}, tried)


def lease(connection: Connection, keys: Collection[DocumentKey], *, until: int) -> None:
    update_rows(connection, documents, _LEASED, _KEY_NAMES, [(until, *key) for key in keys])


def wake_again(connection: Connection, instants: Mapping[DocumentKey, int], *, leased_until: int) -> None:
    found = [tuple(key) for key in _LEASED_UNTIL.rows(connection, list(instants), until=leased_until)]
    update_rows(connection, documents, _LEASED, _KEY_NAMES, [(instants[key], *key) for key in found])


def wake(connection: Connection, keys: Sequence[DocumentKey], *, now: int) -> None:
    found = _NOT_DUE.rows(connection, keys, now=now)
    update_rows(connection, documents, _LEASED, _KEY_NAMES, [(now, *key) for key in found])


def first(connection: Connection, types: Sequence[str]) -> int | None:
    """Find the instant at which the next document of these types is due, or was."""
    found: list[int | None] = []
    for some, values in _portions(types):
        found += connection.execute(_first_of(some), values).scalars().all()
    return min((int(one) for one in found if one is not None), default=None)


def unfollowed(
    connection: Connection, types: Sequence[str], *, before: int, limit: int
) -> list[tuple[str, str]]:
    """Find, of each type that is none of these, the document that has been due for longest, if since `before`."""
    found: list[tuple[str, str]] = []
    after: str | None = ""
    for _ in range(TYPES_MOST):
        after = connection.execute(_NEXT_TYPE, {"after": after}).scalar()
        if after is None or len(found) == limit:
            break
        if after in types:
            continue
        document = connection.execute(_FIRST_OF, {"type": after, "before": before}).scalar()
        if document is not None:
            found.append((after, document))
    return found


def _portions(types: Sequence[str]) -> Iterator[tuple[int, dict[str, object]]]:
    for at in range(0, len(types), TYPES):
        some = types[at : at + TYPES]
        yield len(some), {f"type_{place}": one for place, one in enumerate(some)}


@cache
def _due_of(types: int) -> Executable:
    parts = (
        select(*_KEY, _at)
        .where(_type == bindparam(f"type_{place}"), _at <= bindparam("now"))
        .order_by(_at)
        .limit(bindparam("most"))
        .subquery()
        for place in range(types)
    )
    return union_all(*map(select, parts))


@cache
def _first_of(types: int) -> Executable:
    return union_all(
        *(
            select(func.min(_at)).where(_type == bindparam(f"type_{place}"), _at.is_not(None))
            for place in range(types)
        )
    )
