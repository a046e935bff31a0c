"""What the hot path keeps in memory, read in one snapshot. Hand-written: every start needs it at once."""

from __future__ import annotations

from surehook.core.model import Configuration
from surehook.ledgers.common import values
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.registry import ApiKey


async def version(session: Session) -> int:
    number: int = await session.value(query("version"))
    return number


async def configuration(session: Session) -> Configuration:
    async with session.snapshot():
        return Configuration(
            version=await version(session),
            tenants=tuple(values.tenant(row) for row in await session.rows(query("tenants"))),
            endpoints=tuple(values.endpoint(row) for row in await session.rows(query("endpoints"))),
            event_types=tuple(values.event_type(row) for row in await session.rows(query("event_types"))),
            secrets=tuple(values.secret(row) for row in await session.rows(query("secrets"))),
        )


async def keys(session: Session) -> list[ApiKey]:
    return [ApiKey(*row) for row in await session.rows(query("keys"))]
