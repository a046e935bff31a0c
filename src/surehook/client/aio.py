"""`AsyncClient`: the twin of `Client` on asyncio streams, with the same names and the same rules."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from surehook.client import calls
from surehook.client.calls import ApiCall, Sent, ServerUrl
from surehook.client.errors import Refused, Unreachable
from surehook.client.streams import Streams


class AsyncCollection:
    """One noun of the API: `await client.endpoints.create(tenant="acme", url="https://…")`."""

    def __init__(self, client: AsyncClient, path: str) -> None:
        self._client = client
        self._path = path

    async def create(self, **fields: Any) -> Any:
        return await self._client.call("POST", self._path, json=fields)

    async def get(self, name: str) -> Any:
        return await self._client.call("GET", f"{self._path}/{calls.segment(name)}")

    async def update(self, name: str, /, **fields: Any) -> Any:
        return await self._client.call("PATCH", f"{self._path}/{calls.segment(name)}", json=fields)

    async def delete(self, name: str) -> None:
        await self._client.call("DELETE", f"{self._path}/{calls.segment(name)}")

    async def act(self, name: str, verb: str, /, **fields: Any) -> Any:
        """`POST …/{name}/{verb}`, such as `act(delivery_id, "resend")`."""
        return await self._client.call(
            "POST", f"{self._path}/{calls.segment(name)}/{verb}", json=fields or None
        )

    def iter(self, **filters: Any) -> AsyncIterator[Any]:
        """All entries, newest first, a page at a time."""
        return self._client.pages(self._path, filters)


class AsyncClient:
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
        self._server = ServerUrl.of(url)
        self._key = key
        self._wire = Streams(self._server, timeout_s, connections)
        self._patience_s = patience_s
        self._sleep = sleep
        self._monotonic = monotonic
        self._clock = clock
        self._chance = chance
        self.tenants = AsyncCollection(self, "/v1/tenants")
        self.event_types = AsyncCollection(self, "/v1/event-types")
        self.endpoints = AsyncCollection(self, "/v1/endpoints")
        self.events = AsyncCollection(self, "/v1/events")
        self.deliveries = AsyncCollection(self, "/v1/deliveries")
        self.dead_letters = AsyncCollection(self, "/v1/dead-letters")
        self.replays = AsyncCollection(self, "/v1/replays")
        self.notices = AsyncCollection(self, "/v1/notices")

    async def send(self, type: str, data: Any, *, tenant: str, key: str | None = None, **fields: Any) -> Sent:
        """Publish an event; as `Client.send`."""
        given = {"tenant": tenant, "type": type, **fields}
        now_ms = int(self._clock() * 1000)
        call = calls.send(given, data, key=key, now_ms=now_ms, chance=self._chance(10))
        return calls.sent(await self._do(call))

    async def send_many(self, events: Iterable[Mapping[str, Any]]) -> list[Sent | Refused]:
        """Publish events in order, up to 1,000 a request; as `Client.send_many`."""
        answers: list[Sent | Refused] = []
        chances = iter(lambda: self._chance(10), b"")
        for call in calls.batches(events, now_ms=int(self._clock() * 1000), chances=chances):
            answers += calls.sent_each(await self._do(call))
        return answers

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        json: Any = None,
        type: Any = Any,
    ) -> Any:
        """Any request of the API; the answer decoded as `type`, None where it is empty."""
        return await self._do(calls.request(method, path, query=query, json=json), type)

    async def pages(self, path: str, query: Mapping[str, Any] | None = None) -> AsyncIterator[Any]:
        """Every entry of a list, newest first, fetched a page at a time."""
        given = {"limit": 200, **(query or {})}
        while True:
            page = await self.call("GET", path, query=given)
            for entry in page["data"]:
                yield entry
            if page["next"] is None:
                return
            given["cursor"] = page["next"]

    async def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._wire.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _do(self, call: ApiCall, type: Any = Any) -> Any:
        headers = calls.headers_of(self._server, self._key, call)
        until = self._monotonic() + self._patience_s
        repeat, doubt = 0, None
        while True:
            wish = None
            try:
                answer = await self._wire.exchange(call, headers)
                wish = calls.retry_after_s(answer)
                return calls.read(answer, type)
            except (Refused, Unreachable) as error:
                repeat += 1
                if doubt is None and calls.is_doubtful(error):
                    doubt = error
                wait = calls.wait_before_repeat(
                    call,
                    error,
                    repeat=repeat,
                    retry_after_s=wish,
                    fraction=self._chance(1)[0] / 256,
                )
                if wait is None:
                    raise
                # The last refusal says nothing about what an earlier try may have done.
                if self._monotonic() + wait > until:
                    raise doubt or error from None
            await self._sleep(wait)
