"""`Client`: publish and manage, for programs without an event loop. Threads may share one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, Unpack

from surehook.client import resources
from surehook.client.base import BaseClient, following
from surehook.client.calls import Sent, ServerUrl
from surehook.client.errors import Refused
from surehook.client.fields import SendFields
from surehook.client.resources import Noun
from surehook.client.sockets import Sockets
from surehook.core import answers, effects
from surehook.core.json_value import JsonObject


class BlockingClient(BaseClient):
    """Requests over blocking sockets. `Client` adds the nouns of the API."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_s: float = 30.0,
        patience_s: float = 10.0,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
        chance: Callable[[int], bytes] = os.urandom,
    ) -> None:
        server = ServerUrl.of(url)
        super().__init__(
            server,
            Sockets(server, timeout_s),
            key,
            patience_s=patience_s,
            sleep=sleep,
            monotonic=monotonic,
            clock=clock,
            chance=chance,
        )

    def send(
        self, type: str, data: object, *, tenant: str, key: str | None = None, **fields: Unpack[SendFields]
    ) -> Sent:
        """Publish an event; when this returns, the event and its deliveries are on disk.

        data    any JSON value, or bytes that are JSON already and travel as they are; ValueError for NaN and infinities
        key     idempotency key, visible ASCII: a repeat with the same key and content is the same event
        fields  `SendFields`
        """
        return effects.run(self._send(type, data, tenant, key, fields))

    def send_batch(self, events: Iterable[Mapping[str, object]]) -> list[Sent | Refused]:
        """Publish events (the fields of the API, `idempotency_key` included), up to 1,000 a request.

        The answers are in the order of the events; a refused event does not stop its neighbours.
        """
        return effects.run(self._send_batch(events))

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        json: object = None,
        type: object = Any,
    ) -> Any:
        """Any request of the API; the answer decoded as `type`, None where it is empty."""
        return effects.run(self._answer(method, path, query, json, type))

    def pages(
        self, path: str, query: Mapping[str, object] | None = None, *, type: object = Any
    ) -> Iterator[Any]:
        """Every entry of a list as `type`, newest first, fetched a page at a time."""
        given = dict(query or {})
        while True:
            page = effects.run(self._page(path, given, type))
            yield from page.data
            if page.next is None:
                return
            given["cursor"] = following(given, page.next)

    def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client(BlockingClient):
    """A publisher's line to one server.

    url         where the server is
    key         API key, or None for a server that asks for none
    timeout_s   longest wait for one answer
    patience_s  how long a request that did not get through is repeated; `send` is always safe to repeat,
                because every event leaves with an id or an idempotency key

    Raises Refused (the server said no) and Unreachable (no answer); ValueError for an unusable url.
    """

    tenants = Noun(resources.TenantCalls[answers.TenantOut, Iterator[answers.TenantOut], None])
    event_types = Noun(resources.EventTypeCalls[answers.EventTypeOut, Iterator[answers.EventTypeOut]])
    endpoints = Noun(
        resources.EndpointCalls[
            answers.EndpointOut,
            Iterator[answers.EndpointOut],
            None,
            answers.AttemptOut,
            Iterator[answers.SecretOut],
        ]
    )
    events = Noun(
        resources.EventCalls[answers.EventOut, Iterator[answers.EventOut], Iterator[answers.DeliveryOut]]
    )
    deliveries = Noun(
        resources.DeliveryCalls[
            answers.DeliveryOut, Iterator[answers.DeliveryOut], Iterator[answers.AttemptOut]
        ]
    )
    dead_letters = Noun(resources.DeadLetterCalls[answers.DeliveryOut, Iterator[answers.DeliveryOut]])
    replays = Noun(resources.ReplayCalls[answers.ReplayOut])
    policies = Noun(resources.PolicyCalls[JsonObject, Iterator[JsonObject], answers.PreviewOut])
    breakers = Noun(resources.BreakerCalls[answers.BreakerOut, Iterator[answers.BreakerOut]])
    lanes = Noun(resources.LaneCalls[Iterator[answers.LaneOut]])
    notices = Noun(resources.NoticeCalls[Iterator[answers.NoticeOut]])
