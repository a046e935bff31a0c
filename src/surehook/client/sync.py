"""`Client`: publish and manage, for programs without an event loop. Threads may share one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from surehook.client import calls
from surehook.client.calls import ApiCall, Sent, ServerUrl
from surehook.client.errors import Refused, Unreachable
from surehook.client.sockets import Sockets


class Collection:
    """One noun of the API: `client.endpoints.create(tenant="acme", url="https://…")`."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path

    def create(self, **fields: Any) -> Any:
        return self._client.call("POST", self._path, json=fields)

    def get(self, name: str) -> Any:
        return self._client.call("GET", f"{self._path}/{calls.segment(name)}")

    def update(self, name: str, /, **fields: Any) -> Any:
        return self._client.call("PATCH", f"{self._path}/{calls.segment(name)}", json=fields)

    def delete(self, name: str) -> None:
        self._client.call("DELETE", f"{self._path}/{calls.segment(name)}")

    def act(self, name: str, verb: str, /, **fields: Any) -> Any:
        """`POST …/{name}/{verb}`, such as `act(delivery_id, "resend")`."""
        return self._client.call("POST", f"{self._path}/{calls.segment(name)}/{verb}", json=fields or None)

    def iter(self, **filters: Any) -> Iterator[Any]:
        """All entries, newest first, a page at a time."""
        return self._client.pages(self._path, filters)


class Client:
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
        self._server = ServerUrl.of(url)
        self._key = key
        self._wire = Sockets(self._server, timeout_s)
        self._patience_s = patience_s
        self._sleep = sleep
        self._monotonic = monotonic
        self._clock = clock
        self._chance = chance
        self.tenants = Collection(self, "/v1/tenants")
        self.event_types = Collection(self, "/v1/event-types")
        self.endpoints = Collection(self, "/v1/endpoints")
        self.events = Collection(self, "/v1/events")
        self.deliveries = Collection(self, "/v1/deliveries")
        self.dead_letters = Collection(self, "/v1/dead-letters")
        self.replays = Collection(self, "/v1/replays")
        self.notices = Collection(self, "/v1/notices")

    def send(self, type: str, data: Any, *, tenant: str, key: str | None = None, **fields: Any) -> Sent:
        """Publish an event; when this returns, the event and its deliveries are on disk.

        data    any JSON value, or bytes that are JSON already and travel as they are; ValueError for NaN and infinities
        key     idempotency key, visible ASCII: a repeat with the same key and content is the same event
        fields  id, subject, sequence, schema_version, workflow_version, correlation_id, causation_id,
                source, occurred_at
        """
        given = {"tenant": tenant, "type": type, **fields}
        now_ms = int(self._clock() * 1000)
        call = calls.send(given, data, key=key, now_ms=now_ms, chance=self._chance(10))
        return calls.sent(self._do(call))

    def send_many(self, events: Iterable[Mapping[str, Any]]) -> list[Sent | Refused]:
        """Publish events (the fields of the API, `idempotency_key` included), up to 1,000 a request.

        The answers are in the order of the events; a refused event does not stop its neighbours.
        """
        answers: list[Sent | Refused] = []
        chances = iter(lambda: self._chance(10), b"")
        for call in calls.batches(events, now_ms=int(self._clock() * 1000), chances=chances):
            answers += calls.sent_each(self._do(call))
        return answers

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        json: Any = None,
        type: Any = Any,
    ) -> Any:
        """Any request of the API; the answer decoded as `type`, None where it is empty."""
        return self._do(calls.request(method, path, query=query, json=json), type)

    def pages(self, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Every entry of a list, newest first, fetched a page at a time."""
        given = {"limit": 200, **(query or {})}
        while True:
            page = self.call("GET", path, query=given)
            yield from page["data"]
            if page["next"] is None:
                return
            given["cursor"] = page["next"]

    def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._wire.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, call: ApiCall, type: Any = Any) -> Any:
        headers = calls.headers_of(self._server, self._key, call)
        until = self._monotonic() + self._patience_s
        repeat, doubt = 0, None
        while True:
            wish = None
            try:
                answer = self._wire.exchange(call, headers)
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
            self._sleep(wait)
