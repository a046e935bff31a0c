"""Work of `ledgers/common` on one session: each step is run and answered with its rows.

Work is handed in as a function that begins it, since it may have to run again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.common.statements import (
    Changing,
    ChangingStep,
    DataRefused,
    Note,
    Query,
    Reading,
    ReadingStep,
    Row,
    Statement,
)
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import batch, query
from surehook.ports.registry import NOTES_KEPT

R = TypeVar("R")
S = TypeVar("S")
# Notes that are too old are dropped together every so many versions, since every statement takes time.
DROP_EVERY = 100


def read(session: SqliteSession, begin: Callable[[], Reading[R]]) -> R:
    return follow(session, begin(), _read)


def read_page(session: SqliteSession, begin: Callable[[], Reading[R]]) -> R:
    """Read with all statements in one snapshot."""
    with session.snapshot():
        return follow(session, begin(), _read)


def follow(
    session: SqliteSession,
    steps: Generator[S, Sequence[Row], R],
    run: Callable[[SqliteSession, S], Sequence[Row]],
    *,
    begun: S | None = None,
    refusals: tuple[type[Exception], ...] = (),
) -> R:
    """Run the steps of some work, and return its answer.

    begun     the first step, if it was taken already
    refusals  errors that are thrown into the work as `DataRefused`
    """
    try:
        step = next(steps) if begun is None else begun
        while True:
            try:
                rows = run(session, step)
            except refusals as error:
                step = steps.throw(DataRefused(str(error)))
            else:
                step = steps.send(rows)
    except StopIteration as end:
        answer: R = end.value
        return answer


def _read(session: SqliteSession, step: ReadingStep) -> Sequence[Row]:
    if isinstance(step, Statement):
        return session.rows(step.sql, step.parameters)
    if isinstance(step, Query):
        return session.rows(query(step.name), step.parameters)
    return [row for piece in batch(step.name).pieces(list(step.keys)) for row in session.rows(*piece)]


def change(session: SqliteSession, begin: Callable[[], Changing[R]]) -> R:
    """Change the configuration in one transaction. The one writer runs no other change beside it."""
    with session.writing():
        return follow(session, begin(), _change, refusals=(Unstorable,))


def _change(session: SqliteSession, step: ChangingStep) -> Sequence[Row]:
    if isinstance(step, Statement):
        return session.rows(step.sql, step.parameters)
    if isinstance(step, Note):
        _note(session, step)
        return []
    changed = session.rows(f"{step.sql} returning {step.returning}", step.parameters)
    if changed:
        _note(session, step.note)
    return changed


def _note(session: SqliteSession, note: Note) -> None:
    version: int = session.value(query("raise_version"))
    session.run(query("note"), (note.kind, note.key))
    if version % DROP_EVERY == 0:
        session.run(query("drop_notes"), (version - NOTES_KEPT,))
