"""Ending runs, and beginning further ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, insert, select, update

from surehook.inbox.sql.bulk import Row, update_rows
from surehook.inbox.sql.finding import fits, newest
from surehook.inbox.sql.tables import ERROR_CHARS, TEXT_CHARS, events, runs
from surehook.ports.inbox import Settlement, StoreError
from surehook.ports.inbox_runs import Filter, State

NOT_MARKED = (
    "{} of {} runs were found to be marked, so nothing of their transaction is kept: has a handler changed how this session "
    "reads statements (sql_mode, a search_path, row level security), or removed rows of the inbox?"
)
_SETTLED = (
    "lease", "state", "attempts", "due_at", "processed_at", "finalized_at", "handler", "handler_version",
    "result_sha256", "changed", "error_code", "error",
)  # fmt: skip
# For code here, or for a predecessor: not due, and not finished either.
WAITING: tuple[State, ...] = ("parked", "held")
# A run that is open would do the same work once more; what was finalized may be asked for again.
_FINISHED: tuple[State, ...] = ("processed", "finalized", "rejected", "ignored", "dead")


def settle(connection: Connection, settlements: Sequence[Settlement]) -> None:
    marked = update_rows(connection, runs, _SETTLED, ("id",), [_settled(one) for one in settlements])
    if marked != len(settlements):  # what handlers did would stand, and be done again
        raise StoreError(NOT_MARKED.format(marked, len(settlements)))


def _settled(one: Settlement) -> Row:
    error = None if one.error is None else one.error[-ERROR_CHARS:]
    return (
        None, one.state, one.attempts, one.due_at, one.processed_at, one.finalized_at, one.handler, one.handler_version,
        one.result_sha256, one.changed, one.error_code, error, one.run,
    )  # fmt: skip


def last_results(connection: Connection, ids: Sequence[bytes]) -> dict[bytes, bytes]:
    found = connection.execute(
        select(runs.c.event, runs.c.result_sha256)
        .where(runs.c.event.in_(ids), runs.c.result_sha256.is_not(None))
        .order_by(runs.c.number)
    )
    return {bytes(event): bytes(result) for event, result in found}


def replay(
    connection: Connection, wanted: Filter, *, reason: str, now: int, ids: Callable[[], bytes], limit: int
) -> int:
    fitting = (
        select(events.c.id, runs.c.number)
        .select_from(events.join(runs, runs.c.event == events.c.id))
        .where(newest(), runs.c.state.in_(_FINISHED), *fits(wanted))
        .order_by(events.c.id)
        .limit(limit)
    )
    found = [bytes(event) for event, _ in connection.execute(fitting)]
    # Retention locks what it removes: what stands here stands until the commit, and its new run with it.
    standing = select(events.c.id).where(events.c.id.in_(found)).order_by(events.c.id)
    held = [bytes(event) for (event,) in connection.execute(standing.with_for_update(skip_locked=True))]
    numbers = _finished(connection, held)
    rows = [
        {
            "id": ids(),
            "event": event,
            "number": number + 1,
            "reason": reason[:TEXT_CHARS],
            "state": "accepted",
            "attempts": 0,
            "due_at": now,
            "changed": False,
            "accepted_at": now,
        }
        for event, number in numbers.items()
    ]
    if rows:
        connection.execute(insert(runs), rows)
    return len(rows)


def _finished(connection: Connection, held: Sequence[bytes]) -> dict[bytes, int]:
    """Find the numbers of the newest runs of events that are held, where these are finished still: another replay may have begun
    one meanwhile. Locked, since only such a read is of now in each isolation."""
    newest_runs: dict[bytes, tuple[int, str]] = {}
    wanted = select(runs.c.event, runs.c.number, runs.c.state).where(runs.c.event.in_(held))
    for event, number, state in connection.execute(wanted.order_by(runs.c.number).with_for_update()):
        newest_runs[bytes(event)] = (number, state)
    return {event: number for event, (number, state) in newest_runs.items() if state in _FINISHED}


def decide(
    connection: Connection, event: bytes, *, state: State, code: str | None, note: str | None, now: int
) -> bool:
    last = select(runs.c.id, runs.c.state).where(runs.c.event == event).order_by(runs.c.number.desc())
    found = connection.execute(last.limit(1).with_for_update()).first()
    if found is None or found[1] != "processed":
        return False
    values: dict[str, object] = {"state": state, "error_code": code, "error": note}
    if state == "finalized":
        values["finalized_at"] = now
    connection.execute(update(runs).where(runs.c.id == bytes(found[0])).values(**values))
    return True
