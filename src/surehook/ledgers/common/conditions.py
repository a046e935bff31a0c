"""The conditions of a filter of deliveries, on open and finished ones.

The status and error of the last request are in its history row. For an open delivery, and for one that ended without a call,
that row is looked up, by one read of its key: storing both in the delivery as well would cost every attempt.
"""

from __future__ import annotations

from typing import Any

from msgspec import json
from sqlalchemy import Boolean, ColumnElement, LargeBinary, Table, case, exists, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement

from surehook.core.outcome import BY_FAILURE
from surehook.core.receipt import rank
from surehook.ledgers import history, schema
from surehook.ports.reading import DeliveryFilter

_open, _line, _event, _receipt = schema.delivery, schema.attempt, schema.event, schema.receipt
_past, _about = _line.alias("past"), _event.alias("about")
IS_LAST = _line.c.end.is_not(None)


class _Holds(FunctionElement[bool]):
    """A condition that bytes contain other bytes."""

    type = Boolean()
    inherit_cache = True
    name = "holds"


@compiles(_Holds, "sqlite")
def _in_sqlite(element: _Holds, compiler: Any, **more: object) -> str:
    return f"instr({compiler.process(element.clauses, **more)}) > 0"


@compiles(_Holds, "postgresql")
def _in_postgres(element: _Holds, compiler: Any, **more: object) -> str:
    return f"pg_catalog.position({compiler.process(element.clauses, **more)}) > 0"


def told_code(code: str) -> ColumnElement[bool]:
    """Make the condition that a receipt has a code.

    Its state is stored as JSON of one writer, without blanks, and a quotation mark within a text is escaped: so these bytes
    occur in it only as the code.
    """
    return _Holds(_receipt.c.said, literal(b'"code":' + json.encode(code), LargeBinary))


def outcome(where: DeliveryFilter) -> str | None:
    """Return the outcome that is asked for. An error belongs to one outcome (`core/outcome.py`), and those are indexed."""
    return where.outcome or (None if where.error is None else BY_FAILURE.get(where.error))


def is_plain(where: DeliveryFilter) -> bool:
    """Return True if a filter asks for nothing of the delivery itself other than its tenant and time."""
    its = where.state, where.endpoint, where.type, where.outcome, where.status, where.error
    return all(value is None for value in its)


def asks_beside(where: DeliveryFilter) -> bool:
    """Return True if the row is not enough: another table, or the history, must be read for each one."""
    its = where.receipt, where.code, where.subject, where.correlation_id, where.status, where.error
    return any(value is not None for value in its)


def of_open(where: DeliveryFilter) -> list[ColumnElement[bool]]:
    conditions = _shared(_open, where)
    if where.state is not None:
        conditions.append(_state_is(where.state))
    for name in ("status", "error"):
        if getattr(where, name) is not None:
            # Before its first request a delivery has no outcome, and needs no look-up.
            conditions += [
                _open.c.outcome.is_not(None),
                _of_last_request(name, _open.c.id) == getattr(where, name),
            ]
    return conditions


def of_lines(where: DeliveryFilter) -> list[ColumnElement[bool]]:
    conditions = [IS_LAST, *_shared(_line, where)]
    if where.state is not None:
        conditions.append(_line.c.end == where.state)
    is_request = _line.c.seq.bitwise_and(history.PLACES - 1) == history.ATTEMPT
    for name in ("status", "error"):
        if getattr(where, name) is not None:
            its = case((is_request, _line.c[name]), else_=_of_last_request(name, _line.c.delivery))
            conditions.append(its == getattr(where, name))
    return conditions


def _of_last_request(name: str, delivery: ColumnElement[bytes]) -> ColumnElement[Any]:
    is_request = _past.c.seq.bitwise_and(history.PLACES - 1) == history.ATTEMPT
    lines = select(_past.c[name]).where(_past.c.delivery == delivery, is_request)
    return lines.order_by(_past.c.seq.desc()).limit(1).scalar_subquery()


def _shared(table: Table, where: DeliveryFilter) -> list[ColumnElement[bool]]:
    """Make the conditions on columns that both tables have."""
    asked = {name: getattr(where, name) for name in ("tenant", "endpoint", "type", "event")}
    conditions = [table.c[name] == value for name, value in asked.items() if value is not None]
    if outcome(where) is not None:
        conditions.append(table.c.outcome == outcome(where))
    for name in ("subject", "correlation_id"):
        if getattr(where, name) is not None:
            is_its = _about.c.id == table.c.event, _about.c[name] == getattr(where, name)
            conditions.append(exists().where(*is_its))
    if where.receipt is not None:
        conditions.append(_receipt.c.stage == rank(where.receipt))
    if where.code is not None:
        conditions.append(told_code(where.code))
    return conditions


def _state_is(state: str) -> ColumnElement[bool]:
    """Make the condition that an open delivery is shown in a state."""
    unheld = _open.c.holder.is_(None)
    if state == "sending":
        return ~unheld
    if state == "parked":
        return unheld & _open.c.parked.is_not(None)
    tries = _open.c.attempt == 1 if state == "scheduled" else _open.c.attempt > 1
    return unheld & _open.c.parked.is_(None) & tries
