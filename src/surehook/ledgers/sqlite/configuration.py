"""What the hot path keeps in memory, read in one snapshot. Hand-written: every start needs it at once."""

from __future__ import annotations

from surehook.core.model import Configuration
from surehook.ledgers.common import values
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query
from surehook.ports.registry import ApiKey


def version(session: Session) -> int:
    number: int = session.value(query("version"))
    return number


def configuration(session: Session) -> Configuration:
    with session.snapshot():
        return Configuration(
            version=version(session),
            tenants=tuple(values.tenant(row) for row in session.rows(query("tenants"))),
            endpoints=tuple(values.endpoint(row) for row in session.rows(query("endpoints"))),
            event_types=tuple(values.event_type(row) for row in session.rows(query("event_types"))),
            secrets=tuple(values.secret(row) for row in session.rows(query("secrets"))),
        )


def keys(session: Session) -> list[ApiKey]:
    return [ApiKey(*row) for row in session.rows(query("keys"))]
