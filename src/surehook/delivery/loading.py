"""Configuration into memory: what has changed, or page by page everything, a few milliseconds of the loop at a time.

Memory is at a version when it has taken over every change up to it. What is taken over before that is newer than the
version says, which does no harm: a transaction that compares versions finds memory old, and who waits for `reload`
waits until memory is whole.

Everything is read where the ledger cannot tell the difference: at the start, after a long absence, and when a program
from before there were notes has changed something. The pages are no snapshot. So the version is asked first, and
what changes while they are read is taken over once more by the next reload.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

from surehook.core.model import Configuration, EventType, Secret
from surehook.core.schema import Schema, kept_in_steps
from surehook.core.schema_versions import Versions, unpacked
from surehook.core.steps import SLICE_COST, Steps
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.shared import Shared
from surehook.ports.registry import Changes, Registry

PAGE_ROWS = 500  # rows read at a time: some milliseconds of a driver's work on the loop
WALK_ROWS = 5_000  # endpoints passed by before others have their turn: at most 5 ms at 1 µs each
SLICE_ROWS = 100  # rows taken over before others have their turn: at most 5 ms at 50 µs each

T = TypeVar("T")


class Follower(Protocol):
    """Does what follows from changes of the configuration."""

    def touched(self, route: EndpointState) -> None:
        """An endpoint was put in or changed."""
        ...

    def dropped(self, route: EndpointState) -> None:
        """It is gone."""
        ...

    def settled(self) -> None:
        """All that was read together has been taken over."""
        ...


class Loader:
    """Keeps the directory at the ledger's version."""

    def __init__(self, *, registry: Registry, directory: Directory, follower: Follower) -> None:
        self._registry = registry
        self._directory = directory
        self._follower = follower
        self._heeds_anew: set[str] = set()  # event types whose policy got or lost its breaker
        # Bring memory to the version that the ledger has now, or a newer one.
        self.reload = Shared(self._catch_up)

    async def _catch_up(self) -> None:
        while True:
            changes = await self._registry.changes(self._directory.version, limit=PAGE_ROWS)
            if changes is None:
                await self._read_all()
                return
            if changes.version != self._directory.version:
                await self._take(changes)
                self._directory.is_at(changes.version)
            if not changes.more:
                return

    async def _read_all(self) -> None:
        directory = self._directory
        version = await self._registry.version()
        tenants, event_types, endpoints = set(directory.tenants), set(directory.types), set(directory.routes)
        after: bytes | None = None
        while True:
            page = await self._registry.configuration(after, limit=PAGE_ROWS)
            await self._take(Changes(version, page.rows))
            tenants.difference_update(one.id for one in page.rows.tenants)
            event_types.difference_update(one.name for one in page.rows.event_types)
            endpoints.difference_update(one.id for one in page.rows.endpoints)
            after = page.next
            if after is None:
                break
        gone = Changes(
            version,
            gone_tenants=tuple(sorted(tenants)),
            gone_event_types=tuple(sorted(event_types)),
            gone_endpoints=tuple(sorted(endpoints)),
        )
        await self._take(gone)
        directory.changed.all(version)
        directory.is_at(version)

    async def _take(self, changes: Changes) -> None:
        """Take over rows and what is gone, in slices."""
        directory, version, rows = self._directory, changes.version, changes.rows
        secrets: dict[bytes, list[Secret]] = {}
        for secret in rows.secrets:
            secrets.setdefault(secret.endpoint, []).append(secret)
        for tenant in rows.tenants:
            directory.put_tenant(tenant, version)
        for name in changes.gone_tenants:
            directory.drop_tenant(name, version)
        for event_type in rows.event_types:
            if directory.put_type(event_type, await self._versions(event_type), version):
                self._heeds_anew.add(event_type.name)
        for name in changes.gone_event_types:
            if directory.drop_type(name, version):
                self._heeds_anew.add(name)
        if self._heeds_anew:
            await self._heed_anew()
        for number, endpoint in enumerate(rows.endpoints, 1):
            self._follower.touched(
                directory.put_endpoint(endpoint, tuple(secrets.get(endpoint.id, ())), version)
            )
            if number % SLICE_ROWS == 0:
                await asyncio.sleep(0)
        for number, gone in enumerate(changes.gone_endpoints, 1):
            route = directory.drop_endpoint(gone, version)
            if route is not None:
                self._follower.dropped(route)
            if number % SLICE_ROWS == 0:
                await asyncio.sleep(0)
        self._follower.settled()

    async def _versions(self, event_type: EventType) -> Versions | None:
        own, others = event_type.schema, event_type.schemas
        if own is None and others is None:
            return None
        return Versions(
            event_type.schema_version,
            None if own is None else await self._compiled(own),
            None
            if others is None
            else {name: await self._compiled(one) for name, one in unpacked(others).items()},
        )

    async def _compiled(self, source: bytes) -> Schema:
        """The schema that these bytes are, one slice in a turn of the loop."""
        schema = self._directory.compiled.get(source)
        if schema is None:
            schema = self._directory.compiled[source] = await _in_slices(kept_in_steps(source))
        return schema

    async def _heed_anew(self) -> None:
        """Find the endpoints that may heed another breaker, since event types they name have other policies."""
        for number, route in enumerate(list(self._directory.routes.values()), 1):
            named = route.own_plan is None and not self._heeds_anew.isdisjoint(route.endpoint.event_types)
            if named and not route.gone:
                self._directory.heed(route)
                self._follower.touched(route)
            if number % WALK_ROWS == 0:
                await asyncio.sleep(0)
        self._heeds_anew.clear()


async def _in_slices(work: Steps[T]) -> T:
    done = 0
    while True:
        try:
            while done < SLICE_COST:
                done += next(work)
        except StopIteration as found:
            result: T = found.value
            return result
        done = 0
        await asyncio.sleep(0)


async def read_all(registry: Registry) -> Configuration:
    """Everything at once, for those who look on: nothing may change meanwhile."""
    found = Configuration()
    after: bytes | None = None
    while True:
        page = await registry.configuration(after, limit=PAGE_ROWS)
        found = Configuration(
            found.tenants + page.rows.tenants,
            found.endpoints + page.rows.endpoints,
            found.event_types + page.rows.event_types,
            found.secrets + page.rows.secrets,
        )
        after = page.next
        if after is None:
            return found
