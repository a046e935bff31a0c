"""Changes of the configuration, in one transaction each; the one writer sees to it that no other runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from surehook.ledgers.common.changing import Changing, Note, Noted, Refused, Statement
from surehook.ledgers.sqlite.session import Session, Unstorable
from surehook.ledgers.sqlite.statements import query
from surehook.ports.registry import NOTES_KEPT

R = TypeVar("R")
# Versions: the notes that are too old are dropped together, since every statement takes its time.
DROP_EVERY = 100


def change(session: Session, begin: Callable[[], Changing[R]]) -> R:
    with session.writing():
        return _follow(session, begin())


def _follow(session: Session, steps: Changing[R]) -> R:
    try:
        step = next(steps)
        while True:
            try:
                rows = _done(session, step)
            except Unstorable as error:
                step = steps.throw(Refused(str(error)))
            else:
                step = steps.send(rows)
    except StopIteration as end:
        answer: R = end.value
        return answer


def _done(session: Session, step: Statement | Note | Noted) -> list[tuple[object, ...]]:
    if isinstance(step, Statement):
        return session.rows(step.sql, step.parameters)
    if isinstance(step, Note):
        _note(session, step)
        return []
    changed = session.rows(f"{step.sql} returning {step.returning}", step.parameters)
    if changed:
        _note(session, step.note)
    return changed


def _note(session: Session, note: Note) -> None:
    version: int = session.value(query("raise_version"))
    session.run(query("note"), (note.kind, note.key))
    if version % DROP_EVERY == 0:
        session.run(query("drop_notes"), (version - NOTES_KEPT,))
