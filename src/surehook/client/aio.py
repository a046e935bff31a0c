"""`AsyncClient`: `Client` on asyncio streams."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Self, TypeAlias, TypeVar, Unpack

from surehook.client import resources
from surehook.client.base import BaseClient, following
from surehook.client.calls import Sent, ServerUrl
from surehook.client.errors import Refused
from surehook.client.fields import SendFields
from surehook.client.resources import Noun
from surehook.client.streams import Streams
from surehook.core import answers, effects
from surehook.core.json_value import JsonObject

T = TypeVar("T")
Soon: TypeAlias = Coroutine[object, object, T]
Entries: TypeAlias = AsyncGenerator[T, None]


class AsyncClient(BaseClient):
    """A publisher's line to one server, for programs on an event loop. Arguments as for `Client`;
    `connections` bounds how many requests are under way at once, the others wait their turn."""

    tenants = Noun(
        resources.TenantCalls[
            Soon[answers.TenantOut],
            Entries[answers.TenantOut],
            Soon[None],
        ]
    )
    event_types = Noun(resources.EventTypeCalls[Soon[answers.EventTypeOut], Entries[answers.EventTypeOut]])
    endpoints = Noun(
        resources.EndpointCalls[
            Soon[answers.EndpointOut],
            Entries[answers.EndpointOut],
            Soon[None],
            Soon[answers.AttemptOut],
            Entries[answers.SecretOut],
        ]
    )
    events = Noun(
        resources.EventCalls[
            Soon[answers.EventOut],
            Entries[answers.EventOut],
            Entries[answers.DeliveryOut],
        ]
    )
    deliveries = Noun(
        resources.DeliveryCalls[
            Soon[answers.DeliveryOut],
            Entries[answers.DeliveryOut],
            Entries[answers.AttemptOut],
        ]
    )
    dead_letters = Noun(resources.DeadLetterCalls[Soon[answers.DeliveryOut], Entries[answers.DeliveryOut]])
    replays = Noun(resources.ReplayCalls[Soon[answers.ReplayOut]])
    policies = Noun(
        resources.PolicyCalls[
            Soon[JsonObject],
            Entries[JsonObject],
            Soon[answers.PreviewOut],
        ]
    )
    breakers = Noun(resources.BreakerCalls[Soon[answers.BreakerOut], Entries[answers.BreakerOut]])
    lanes = Noun(resources.LaneCalls[Entries[answers.LaneOut]])
    notices = Noun(resources.NoticeCalls[Entries[answers.NoticeOut]])

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

    async def send(
        self, type: str, data: object, *, tenant: str, key: str | None = None, **fields: Unpack[SendFields]
    ) -> Sent:
        """Publish an event; as `Client.send`."""
        return await effects.run_async(self._send(type, data, tenant, key, fields))

    async def send_batch(self, events: Iterable[Mapping[str, object]]) -> list[Sent | Refused]:
        """Publish events in order, up to 1,000 a request; as `Client.send_batch`."""
        return await effects.run_async(self._send_batch(events))

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
        return await effects.run_async(self._answer(method, path, query, json, type))

    async def pages(
        self, path: str, query: Mapping[str, object] | None = None, *, type: object = Any
    ) -> AsyncGenerator[Any, None]:
        """Every entry of a list as `type`, newest first, fetched a page at a time."""
        given = dict(query or {})
        while True:
            page = await effects.run_async(self._page(path, given, type))
            for entry in page.data:
                yield entry
            if page.next is None:
                return
            given["cursor"] = following(given, page.next)

    async def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._connections.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
