"""Notes of changes to the configuration: the rows they name, and the versions they do not explain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from surehook.core.model import Configuration
from surehook.ports.ledger import Incoming
from surehook.ports.registry import Changes

TENANT, EVENT_TYPE, ENDPOINT, API_KEY = "tenant", "event_type", "endpoint", "api_key"
# The order of a walk through everything.
ORDER = (TENANT, EVENT_TYPE, ENDPOINT)
# Versions that a batch under way is compared with; an older batch is made anew.
MEETINGS_MOST = 1_000

# The version to which a change raised the configuration, and the row's kind and key.
Note = tuple[int, str, bytes]


class ChangedRows(Struct):
    """The rows that notes up to `version` name, each once and sorted."""

    version: int
    tenants: list[str]
    event_types: list[str]
    endpoints: list[bytes]
    more: bool


def read(notes: Sequence[Note], *, since: int, newest: int, limit: int) -> ChangedRows | None:
    """Read the first notes after `since`; None if a version has none: an older program raised it, or it was dropped.

    `notes` are at most `limit` + 1, in order; one too many means that there are more. A version of which only some notes were
    read is left to the next reading, since memory moves by whole versions.
    """
    more = len(notes) > limit
    whole = [note for note in notes if note[0] < notes[-1][0]] if more else notes
    version = since
    for noted, _, _ in whole:
        if noted > version + 1:
            return None
        version = noted
    if version != newest and not (more and whole):
        return None
    named: dict[str, set[bytes]] = {}
    for _, kind, key in whole:
        named.setdefault(kind, set()).add(key)
    return ChangedRows(
        version,
        _texts(named.get(TENANT, ())),
        _texts(named.get(EVENT_TYPE, ())),
        sorted(named.get(ENDPOINT, ())),
        more,
    )


def concern(notes: Iterable[Sequence[Any]], batch: Sequence[Incoming], *, since: int, newest: int) -> bool:
    """Return True if changes after version `since` may concern events of a batch, by their tenants and types.

    Each note comes with the tenant of its endpoint; None: the endpoint is gone, and may have been anybody's. Versions without
    a note concern everybody.
    """
    tenants = {item.event.tenant for item in batch}
    named = {TENANT: tenants, EVENT_TYPE: {item.event.type for item in batch}}
    explained = set()
    for version, kind, key, tenant in notes:
        explained.add(version)
        if kind == ENDPOINT and (tenant is None or tenant in tenants):
            return True
        if kind in named and key.decode() in named[kind]:
            return True
    return len(explained) != newest - since


def found(noted: ChangedRows, rows: Configuration) -> Changes:
    """Combine noted changes with the rows that were found for them. Those not found are gone."""
    tenants = {one.id for one in rows.tenants}
    event_types = {one.name for one in rows.event_types}
    endpoints = {one.id for one in rows.endpoints}
    return Changes(
        noted.version,
        rows,
        gone_tenants=tuple(id for id in noted.tenants if id not in tenants),
        gone_event_types=tuple(name for name in noted.event_types if name not in event_types),
        gone_endpoints=tuple(id for id in noted.endpoints if id not in endpoints),
        more=noted.more,
    )


def place(after: bytes | None) -> tuple[str, bytes]:
    """Return the start of a page: the kind of its rows, and the key that they come after."""
    return (ORDER[0], b"") if after is None else (ORDER[after[0]], after[1:])


def next_place(kind: str, keys: Sequence[bytes], limit: int) -> bytes | None:
    """Return the start of the next page; None after the last one."""
    number = ORDER.index(kind)
    if len(keys) == limit:
        return bytes([number]) + keys[-1]
    return bytes([number + 1]) if number + 1 < len(ORDER) else None


def _texts(keys: Iterable[bytes]) -> list[str]:
    return sorted(key.decode() for key in keys)
