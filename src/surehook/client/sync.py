"""`Client`: publish and manage, for programs without an event loop. Threads may share one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from surehook.client import calls
from surehook.client.base import PAGE_ENTRIES, BaseClient, Collection
from surehook.client.calls import Sent, ServerUrl
from surehook.client.errors import Refused
from surehook.client.sockets import Sockets
from surehook.core import effects

_Collection: TypeAlias = Collection[Any, Iterator[Any]]


class Client(BaseClient):
    """A publisher's line to one server.

    url         where the server is
    key         API key, or None for a server that asks for none
    timeout_s   longest wait for one answer
    patience_s  how long a request that did not get through is repeated; `send` is always safe to repeat,
                because every event leaves with an id or an idempotency key

    Raises Refused (the server said no) and Unreachable (no answer); ValueError for an unusable url.
    """

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
        self.tenants = _Collection(self, "/v1/tenants")
        self.event_types = _Collection(self, "/v1/event-types")
        self.endpoints = _Collection(self, "/v1/endpoints")
        self.events = _Collection(self, "/v1/events")
        self.deliveries = _Collection(self, "/v1/deliveries")
        self.dead_letters = _Collection(self, "/v1/dead-letters")
        self.replays = _Collection(self, "/v1/replays")
        self.notices = _Collection(self, "/v1/notices")

    def send(self, type: str, data: object, *, tenant: str, key: str | None = None, **fields: object) -> Sent:
        """Publish an event; when this returns, the event and its deliveries are on disk.

        data    any JSON value, or bytes that are JSON already and travel as they are; ValueError for NaN and infinities
        key     idempotency key, visible ASCII: a repeat with the same key and content is the same event
        fields  id, subject, sequence, schema_version, workflow_version, correlation_id, causation_id,
                source, occurred_at
        """
        return effects.run(self._send(type, data, tenant, key, fields))

    def send_many(self, events: Iterable[Mapping[str, object]]) -> list[Sent | Refused]:
        """Publish events (the fields of the API, `idempotency_key` included), up to 1,000 a request.

        The answers are in the order of the events; a refused event does not stop its neighbours.
        """
        return effects.run(self._send_many(events))

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
        return effects.run(self._exchange(calls.request(method, path, query=query, json=json), type))

    def pages(self, path: str, query: Mapping[str, object] | None = None) -> Iterator[Any]:
        """Every entry of a list, newest first, fetched a page at a time."""
        given = {"limit": PAGE_ENTRIES, **(query or {})}
        while True:
            page = self.call("GET", path, query=given)
            yield from page["data"]
            if page["next"] is None:
                return
            given["cursor"] = page["next"]

    def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
