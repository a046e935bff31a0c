"""Configuration and its management. Every change notes what it changed (`Book.note_change`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct, structs

from lab.ledger.hooks import Hooked, reads, writes
from lab.ledger.pages import named, page
from surehook.core.errors import Problem
from surehook.core.model import Configuration, Endpoint, EventType, Secret, Tenant
from surehook.ledgers import changes as notes
from surehook.ports.registry import FOR_PEOPLE, ApiKey, Changes, ConfigurationPage, Page

T = TypeVar("T", bound=Struct)


class Registering(Hooked):
    @reads
    def version(self) -> int:
        return self.book.version

    @reads
    def changes(self, since: int, *, limit: int) -> Changes | None:
        book = self.book
        noted = notes.read(
            [note for note in book.changes if note[0] > since][: limit + 1],
            since=since,
            newest=book.version,
            limit=limit,
        )
        if noted is None:
            return None
        rows = Configuration(
            tenants=tuple(book.tenants[id] for id in noted.tenants if id in book.tenants),
            endpoints=tuple(book.endpoints[id] for id in noted.endpoints if id in book.endpoints),
            event_types=tuple(
                book.event_types[name] for name in noted.event_types if name in book.event_types
            ),
            secrets=self._secrets(set(noted.endpoints)),
        )
        return notes.found(noted, rows)

    @reads
    def configuration(self, after: bytes | None, *, limit: int) -> ConfigurationPage:
        kind, last = notes.place(after)
        if kind == notes.ENDPOINT:
            ids = sorted(id for id in self.book.endpoints if id > last)[:limit]
            rows = Configuration(
                endpoints=tuple(self.book.endpoints[id] for id in ids), secrets=self._secrets(set(ids))
            )
            return ConfigurationPage(rows, notes.next_place(kind, ids, limit))
        kept: Mapping[str, Any] = self.book.tenants if kind == notes.TENANT else self.book.event_types
        names = sorted(name for name in kept if name.encode() > last)[:limit]
        found = tuple(kept[name] for name in names)
        rows = Configuration(tenants=found) if kind == notes.TENANT else Configuration(event_types=found)
        return ConfigurationPage(rows, notes.next_place(kind, [name.encode() for name in names], limit))

    @reads
    def secrets(self, endpoint: bytes) -> Sequence[Secret]:
        return self._secrets({endpoint})

    def _secrets(self, endpoints: set[bytes]) -> tuple[Secret, ...]:
        found = (secret for secret in self.book.secrets.values() if secret.endpoint in endpoints)
        return tuple(sorted(found, key=lambda secret: secret.id))

    # -- tenants ----------------------------------------------------------------------------------------

    @writes
    def add_tenant(self, tenant: Tenant) -> None:
        if tenant.id in self.book.tenants:
            raise Problem("tenant_exists", f"there is a tenant {tenant.id!r} already", field="id", status=409)
        self.book.tenants[tenant.id] = tenant
        self.book.note_change(notes.TENANT, tenant.id.encode())

    @writes
    def change_tenant(self, tenant: str, changes: Mapping[str, Any]) -> Tenant | None:
        return self._change(notes.TENANT, self.book.tenants, tenant, changes)

    @writes
    def remove_tenant(self, tenant: str) -> bool:
        if tenant not in self.book.tenants:
            return False
        has_endpoints = any(endpoint.tenant == tenant for endpoint in self.book.endpoints.values())
        if has_endpoints or self.book.of_tenant[tenant]:
            raise Problem("tenant_in_use", "it still has endpoints or unfinished deliveries", status=409)
        del self.book.tenants[tenant]
        self.book.note_change(notes.TENANT, tenant.encode())
        return True

    @reads
    def tenant(self, tenant: str) -> Tenant | None:
        return self.book.tenants.get(tenant)

    @reads
    def tenants(self, *, limit: int, after: bytes | None) -> Page:
        return named(self.book.tenants, limit=limit, after=after)

    # -- event types ------------------------------------------------------------------------------------

    @writes
    def add_event_type(self, event_type: EventType) -> None:
        if event_type.name in self.book.event_types:
            detail = f"there is an event type {event_type.name!r} already"
            raise Problem("event_type_exists", detail, field="name", status=409)
        self.book.event_types[event_type.name] = event_type
        self.book.note_change(notes.EVENT_TYPE, event_type.name.encode())

    @writes
    def change_event_type(self, name: str, changes: Mapping[str, Any]) -> EventType | None:
        return self._change(notes.EVENT_TYPE, self.book.event_types, name, changes)

    @reads
    def event_type(self, name: str) -> EventType | None:
        return self.book.event_types.get(name)

    @reads
    def event_types(self, *, limit: int, after: bytes | None) -> Page:
        return named(self.book.event_types, limit=limit, after=after)

    # -- endpoints and their secrets --------------------------------------------------------------------

    @writes
    def add_endpoint(self, endpoint: Endpoint, secret: Secret) -> None:
        if endpoint.tenant not in self.book.tenants:
            raise Problem("unknown_tenant", f"there is no tenant {endpoint.tenant!r}", field="tenant")
        self.book.endpoints[endpoint.id] = endpoint
        self.book.secrets[secret.id] = secret
        self.book.note_change(notes.ENDPOINT, endpoint.id)

    @writes
    def change_endpoint(self, endpoint: bytes, changes: Mapping[str, Any], *, now: int) -> Endpoint | None:
        return self._change(notes.ENDPOINT, self.book.endpoints, endpoint, {**changes, "updated_at": now})

    @writes
    def remove_endpoint(self, endpoint: bytes) -> Endpoint | None:
        removed = self.book.endpoints.pop(endpoint, None)
        if removed is not None:
            for secret in [one for one in self.book.secrets.values() if one.endpoint == endpoint]:
                del self.book.secrets[secret.id]
            self.book.note_change(notes.ENDPOINT, endpoint)
        return removed

    @reads
    def endpoint(self, endpoint: bytes) -> Endpoint | None:
        return self.book.endpoints.get(endpoint)

    @reads
    def endpoints(self, *, tenant: str | None, status: str | None, limit: int, after: bytes | None) -> Page:
        def shown(key: bytes) -> Endpoint | None:
            endpoint = self.book.endpoints[key]
            fits = tenant in (None, endpoint.tenant) and status in (None, endpoint.status)
            return endpoint if fits else None

        keys = sorted(self.book.endpoints, reverse=True)
        return page((key for key in keys if after is None or key < after), shown, limit=limit)

    @writes
    def rotate_secret(self, secret: Secret, *, old_expires_at: int) -> None:
        if secret.endpoint not in self.book.endpoints:
            return
        for old in list(self.book.secrets.values()):
            at_once = old_expires_at <= secret.created_at  # those whose overlap has not ended as well
            ends = old.expires_at is None or (at_once and old.expires_at > old_expires_at)
            if old.endpoint == secret.endpoint and ends:
                self.book.secrets[old.id] = structs.replace(old, expires_at=old_expires_at)
        self.book.secrets[secret.id] = secret
        self.book.note_change(notes.ENDPOINT, secret.endpoint)

    # -- keys -------------------------------------------------------------------------------------------

    @reads
    def keys(self) -> Sequence[ApiKey]:
        return [self.book.api_keys[key] for key in sorted(self.book.api_keys)]

    @writes
    def add_key(self, key: ApiKey) -> None:
        self.book.api_keys[key.id] = key
        self.book.note_change(notes.API_KEY, key.id)

    def _change(
        self, kind: str, kept: dict[Any, T], key: str | bytes, changes: Mapping[str, Any]
    ) -> T | None:
        before = kept.get(key)
        if before is None:
            return None
        kept[key] = after = structs.replace(before, **changes)
        if not changes.keys() <= FOR_PEOPLE[kind]:
            self.book.note_change(kind, key.encode() if isinstance(key, str) else key)
        return after
