"""`AsyncClient`: `Client` on asyncio streams."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from surehook.client import calls
from surehook.client.base import PAGE_ENTRIES, BaseClient, Collection
from surehook.client.calls import Sent, ServerUrl
from surehook.client.errors import Refused
from surehook.client.streams import Streams
from surehook.core import effects

_Collection: TypeAlias = Collection[Awaitable[Any], AsyncIterator[Any]]


class AsyncClient(BaseClient):
    """A publisher's line to one server, for programs on an event loop. Arguments as for `Client`;
    `connections` bounds how many requests are under way at once, the others wait their turn."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_s: float = 30.0,
        patience_s: float = 10.0,
        connections: int = 64,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
        chance: Callable[[int], bytes] = os.urandom,
    ) -> None:
        server = ServerUrl.of(url)
        super().__init__(
            server,
            Streams(server, timeout_s, connections),
            key,
            patience_s=patience_s,
            sleep=sleep,
            monotonic=monotonic,
            clock=clock,
            chance=chance,
        )
        self.tenants = _Collection(self, "/v1/tenants")
        self.event_types = _Collection(self, "/v1/event-types")
        self.endpoints = _Collection(self, "/v1/endpoints")
        self.events = _Collection(self, "/v1/events")
        self.deliveries = _Collection(self, "/v1/deliveries")
        self.dead_letters = _Collection(self, "/v1/dead-letters")
        self.replays = _Collection(self, "/v1/replays")
        self.notices = _Collection(self, "/v1/notices")

    async def send(
        self, type: str, data: object, *, tenant: str, key: str | None = None, **fields: object
    ) -> Sent:
        """Publish an event; as `Client.send`."""
        return await effects.run_async(self._send(type, data, tenant, key, fields))

    async def send_many(self, events: Iterable[Mapping[str, object]]) -> list[Sent | Refused]:
        """Publish events in order, up to 1,000 a request; as `Client.send_many`."""
        return await effects.run_async(self._send_many(events))

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        json: object = None,
        type: object = Any,
    ) -> Any:
        """Any request of the API; the answer decoded as `type`, None where it is empty."""
        return await effects.run_async(
            self._exchange(calls.request(method, path, query=query, json=json), type)
        )

    async def pages(self, path: str, query: Mapping[str, object] | None = None) -> AsyncIterator[Any]:
        """Every entry of a list, newest first, fetched a page at a time."""
        given = {"limit": PAGE_ENTRIES, **(query or {})}
        while True:
            page = await self.call("GET", path, query=given)
            for entry in page["data"]:
                yield entry
            if page["next"] is None:
                return
            given["cursor"] = page["next"]

    async def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._connections.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
