"""Leases: the right of one worker to process a run, for a while.

A claim moves `due_at` to the end of the lease and writes the worker's token, so a lapsed lease is simply due again and
needs nobody who watches. The token is the fence: work is kept only by a transaction that found the row with its own token
and locked it, and nobody can take a locked row. Attempts are counted when claimed: what kills its process is counted too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Integer,
    LargeBinary,
    Select,
    Text,
    Update,
    and_,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)

from surehook.inbox.safe_log import log
from surehook.inbox.sql import waking
from surehook.inbox.sql.bulk import ARRAYS, WRITTEN, byte_array
from surehook.inbox.sql.idle_timeout import BY_THE_WAY
from surehook.inbox.sql.tables import ATTEMPTS_MOST, ID_BYTES, LEASES, events, requests, runs
from surehook.ports.inbox import LINE_FULL
from surehook.ports.inbox_runs import Run

S = TypeVar("S", Select[bytes], Update)

_COLUMNS = (  # in the order of the fields of `Run`
    runs.c.id, runs.c.event, runs.c.number, runs.c.attempts, runs.c.error_code, events.c.source, events.c.tenant,
    events.c.event_id, events.c.type, events.c.item, events.c.received_at, events.c.occurred_at, events.c.proven,
    events.c.schema_version, events.c.correlation_id, requests.c.url, requests.c.headers, requests.c.body,
)  # fmt: skip
LOADED = select(*_COLUMNS).select_from(
    runs.join(events, events.c.id == runs.c.event).outerjoin(requests, requests.c.id == events.c.request)
)

# The token of runs that were put off for a document that another worker has. It is nobody's, and so is no lease that lapses; but
# whoever lets time pass for the document sees that somebody has had the run and that it is not done.
PUT_OFF = bytes(ID_BYTES)

# Made once: a worker that finds nothing to do would spend most of its time on making them.
_DUE = (
    select(runs.c.id, runs.c.lease, runs.c.due_at)
    .where(runs.c.due_at <= bindparam("now"))
    .order_by(runs.c.due_at, runs.c.id)
    .limit(bindparam("most", type_=Integer))
    .with_for_update(skip_locked=True)
)
# One that counted too far would keep all others from being claimed.
_ONE_MORE = case((runs.c.attempts < ATTEMPTS_MOST, runs.c.attempts + 1), else_=runs.c.attempts)
_DUE_BOUND = _DUE.add_columns(BY_THE_WAY)


def _place() -> ColumnElement[int]:
    """The place in the line of a run that was not tried. One that never failed is due since it came, whoever had it meanwhile:
    waits of its document reckon with that; so is one that had no room. Where a retry stood its row does not say any more."""
    is_in_time = or_(runs.c.error_code.is_(None), runs.c.error_code == LINE_FULL)
    return case((is_in_time, runs.c.accepted_at), else_=bindparam("retries_at"))


def _untried(lease: bytes | None, due_at: ColumnElement[int]) -> tuple[tuple[Column[object], object], ...]:
    """The values of a claimed run whose attempt is not counted. In this order: MySQL sees what stands before."""
    return ((runs.c.lease, lease), (runs.c.due_at, due_at), (runs.c.attempts, runs.c.attempts - 1))


def _by_id(statement: S) -> S:
    """Lock what is asked for and nothing else: MySQL and MariaDB read a small table whole, and so wait for each row that a
    handler at work has locked, and keep others from storing what comes."""
    for dialect in ("mysql", "mariadb"):
        statement = statement.with_hint(text="FORCE INDEX (PRIMARY)", selectable=runs, dialect_name=dialect)
    return statement


class _OfRuns:
    """Statements about the runs of a batch, whose ids are the value `ids`, as `given` writes them."""

    def __init__(
        self, theirs: ColumnElement[bool], given: Callable[[Sequence[bytes]], object] = list
    ) -> None:
        self.given = given
        self.found = LOADED.where(theirs)
        theirs_by_id = _by_id(update(runs).where(theirs))
        self.take = theirs_by_id.values(
            lease=bindparam("token"), due_at=bindparam("until"), attempts=_ONE_MORE
        )
        self.taken = self.found.order_by(runs.c.id)
        # As things stand now, also on MariaDB, where a transaction goes on seeing what there was as it first looked.
        self.taken_now = self.taken.with_for_update(read=True, of=events)
        still = (theirs, runs.c.lease == bindparam("token"))
        self.release = _by_id(update(runs).where(*still)).ordered_values(*_untried(None, _place()))
        self.put_off = _by_id(update(runs).where(*still)).ordered_values(
            *_untried(PUT_OFF, bindparam("until"))
        )
        put_off = _by_id(select(runs.c.id).where(theirs, runs.c.lease == PUT_OFF))
        due = (runs.c.lease.is_(None), runs.c.due_at <= bindparam("now"))
        self.in_line = select(runs.c.id).where(theirs, or_(runs.c.lease == PUT_OFF, and_(*due)))
        self.waiting = put_off.order_by(runs.c.id).with_for_update(skip_locked=True)
        self.call_back = theirs_by_id.values(lease=None, due_at=_place())
        mine = _by_id(select(runs.c.id).where(*still))
        self.mine = mine.order_by(runs.c.id).with_for_update()
        self.mine_bound = self.mine.add_columns(BY_THE_WAY)


# One parameter for each id is written into the statement anew each time, which costs more than a row does. SQLite has no arrays:
# it takes the ids one after another in one value.
_IDS = bindparam("ids", type_=LargeBinary)
_at = select(literal(1).label("at")).cte("places", recursive=True)
_at = _at.union_all(select(_at.c.at + ID_BYTES).where(_at.c.at + ID_BYTES < func.length(_IDS)))
_IN_BYTES = _OfRuns(runs.c.id.in_(select(func.substr(_IDS, _at.c.at, ID_BYTES))), b"".join)
_IN_LIST = _OfRuns(runs.c.id.in_(bindparam("ids", expanding=True)))
_IN_ARRAY = _OfRuns(runs.c.id == any_(bindparam("ids", type_=ARRAY(LargeBinary))))
# As a subquery it is read once. A cast of a text is read anew for each row that the server looks at: 5.8 s for 2,300 ids and as
# many rows of a table that was never analysed.
_once = select(cast(bindparam("ids", type_=Text), ARRAY(LargeBinary))).scalar_subquery()
_IN_TEXT = _OfRuns(runs.c.id == any_(cast(_once, ARRAY(LargeBinary))), byte_array)


def _of_runs(connection: Connection) -> _OfRuns:
    if connection.dialect.driver == WRITTEN:
        return _IN_TEXT
    if connection.dialect.name == "sqlite":
        return _IN_BYTES
    return _IN_ARRAY if connection.dialect.driver in ARRAYS else _IN_LIST


_NEXT = (
    select(runs.c.due_at, runs.c.accepted_at, runs.c.lease)
    .where(runs.c.due_at.is_not(None))
    .order_by(runs.c.due_at, runs.c.id)
    .limit(1)
)
_FIRST = select(func.min(runs.c.due_at)).where(runs.c.due_at.is_not(None))


def claim(
    connection: Connection, *, now: int, lease_ms: int, token: bytes, limit: int, idle_ms: int | None = None
) -> list[Run]:
    """Claim runs; `idle_ms` is told to PostgreSQL in the same statement, where rows are found."""
    due, bound = (_DUE, {}) if idle_ms is None else (_DUE_BOUND, {"idle": str(idle_ms)})
    found = connection.execute(due, {"now": now, "most": limit, **bound}).all()
    if not found and (ahead := _ahead(connection, now, lease_ms)) is not None:
        found = connection.execute(due, {"now": ahead, "most": limit, **bound}).all()
    if not found:
        return []
    stood = {bytes(row[0]): int(row[2]) for row in found}
    lapsed = [bytes(row[0]) for row in found if row[1] is not None and bytes(row[1]) != PUT_OFF]
    ids = lapsed[:1] or list(stood)
    of_runs = _of_runs(connection)
    given = of_runs.given(ids)
    connection.execute(of_runs.take, {"ids": given, "token": token, "until": now + lease_ms})
    rows = connection.execute(of_runs.taken, {"ids": given}).all()
    if len(rows) < len(ids):
        rows = connection.execute(of_runs.taken_now, {"ids": given}).all()
        _sweep(connection, set(ids) - {bytes(row.id) for row in rows})
    claimed = [loaded(row) for row in rows]
    for run in claimed:
        # Where one stood whose lease lapsed nobody knows: perhaps as far ahead as it can have stood.
        run.due_at = run.received_at if lapsed else stood[run.id]
    return claimed


def _ahead(connection: Connection, now: int, lease_ms: int) -> int | None:
    """Find when the first run is due, where that is later than now and nobody put it off: it was accepted before the clock was
    set back, or by another's that is ahead, and would wait for as long. So would one whose lease ends later than any does that
    was given since: whoever had it may be gone."""
    first = connection.execute(_NEXT).first()
    if first is None:
        return None
    is_accepted = first.lease is None and now < first.due_at == first.accepted_at
    is_leased = first.lease is not None and first.due_at > now + LEASES * lease_ms
    return int(first.due_at) if is_accepted or is_leased else None


def _sweep(connection: Connection, gone: set[bytes]) -> None:
    """Remove claimed runs that have no event: no count shows them, and they would be due again at each lapse, for ever."""
    if gone:
        connection.execute(delete(runs).where(runs.c.id.in_(gone)))
        log.warning("%d runs were removed: their events are gone", len(gone))


def loaded(row: Any) -> Run:
    run = Run(*row)
    if not type(run.id) is type(run.event) is bytes:
        run.id, run.event = bytes(run.id), bytes(run.event)
    if run.body is not None and type(run.body) is not bytes:
        run.body = bytes(run.body)
    return run


def found(connection: Connection, ids: Sequence[bytes]) -> list[Run]:
    of_runs = _of_runs(connection)
    return [loaded(row) for row in connection.execute(of_runs.found, {"ids": of_runs.given(ids)})]


def hold(
    connection: Connection, ids: Sequence[bytes], token: bytes, *, idle_ms: int | None = None
) -> set[bytes]:
    """Lock claimed runs; `idle_ms` as for `claim`."""
    of_runs = _of_runs(connection)
    mine, bound = (of_runs.mine, {}) if idle_ms is None else (of_runs.mine_bound, {"idle": str(idle_ms)})
    found = connection.execute(mine, {"ids": of_runs.given(ids), "token": token, **bound})
    return {bytes(row[0]) for row in found}


def release(connection: Connection, ids: Sequence[bytes], token: bytes, *, due_at: int) -> None:
    of_runs = _of_runs(connection)
    connection.execute(of_runs.release, {"ids": of_runs.given(ids), "token": token, "retries_at": due_at})


def put_off(connection: Connection, ids: Sequence[bytes], token: bytes, *, until: int) -> None:
    of_runs = _of_runs(connection)
    connection.execute(of_runs.put_off, {"ids": of_runs.given(ids), "token": token, "until": until})


def call_back(
    connection: Connection, ids: Sequence[bytes], *, now: int
) -> tuple[Collection[bytes], Collection[bytes]]:
    of_runs = _of_runs(connection)
    given = of_runs.given(ids)
    # One that another process has by now is not waited for.
    found = [bytes(run) for (run,) in connection.execute(of_runs.waiting, {"ids": given})]
    if found:
        connection.execute(of_runs.call_back, {"ids": of_runs.given(found), "retries_at": now})
    called = set(found)
    if len(called) == len(ids):
        return called, ()
    # InnoDB locks rows that a claim only looks at, so a locked one may be nobody's; nor is one that is due since it was called.
    still = {bytes(run) for (run,) in connection.execute(of_runs.in_line, {"ids": given, "now": now})}
    return called, still - called


def next_due(connection: Connection, types: Sequence[str]) -> int | None:
    found = [connection.execute(_FIRST).scalar(), waking.first(connection, types)]
    return min((int(one) for one in found if one is not None), default=None)
