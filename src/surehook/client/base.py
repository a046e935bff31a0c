"""One text for both clients: how a request is made, repeated and answered (`core/effects.py`).

`Client` and `AsyncClient` run these scripts over blocking sockets and over asyncio streams.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from surehook.client import calls
from surehook.client.calls import ApiCall, Sent, ServerUrl
from surehook.client.errors import Refused, Unreachable
from surehook.client.http1 import HttpAnswer
from surehook.core.effects import Script

R = TypeVar("R", covariant=True)
P = TypeVar("P", covariant=True)

PAGE_ENTRIES = 200


class SenderConnections(Protocol):
    """The connections to one server: blocking sockets, or asyncio streams."""

    def exchange(self, call: ApiCall, headers: Mapping[str, str]) -> HttpAnswer | Awaitable[HttpAnswer]:
        """One request, one answer. Raises Unreachable."""
        ...

    def close(self) -> None: ...


class Caller(Protocol[R, P]):
    """A client, as its collections see it."""

    def call(self, method: str, path: str, *, json: object = None) -> R: ...

    def pages(self, path: str, query: Mapping[str, object] | None = None) -> P: ...


class Collection(Generic[R, P]):
    """One noun of the API: `client.endpoints.create(tenant="acme", url="https://…")`; to be awaited with an `AsyncClient`."""

    def __init__(self, client: Caller[R, P], path: str) -> None:
        self._client = client
        self._path = path

    def create(self, **fields: object) -> R:
        return self._client.call("POST", self._path, json=fields)

    def get(self, name: str) -> R:
        return self._client.call("GET", f"{self._path}/{calls.segment(name)}")

    def update(self, name: str, /, **fields: object) -> R:
        return self._client.call("PATCH", f"{self._path}/{calls.segment(name)}", json=fields)

    def delete(self, name: str) -> R:
        return self._client.call("DELETE", f"{self._path}/{calls.segment(name)}")

    def act(self, name: str, verb: str, /, **fields: object) -> R:
        """`POST …/{name}/{verb}`, such as `act(delivery_id, "resend")`."""
        return self._client.call("POST", f"{self._path}/{calls.segment(name)}/{verb}", json=fields or None)

    def iter(self, **filters: object) -> P:
        """All entries, newest first, a page at a time."""
        return self._client.pages(self._path, filters)


class BaseClient:
    """Scripts of requests. Time, waiting and randomness are handed in."""

    def __init__(
        self,
        server: ServerUrl,
        connections: SenderConnections,
        key: str | None,
        *,
        patience_s: float,
        sleep: Callable[[float], object],
        monotonic: Callable[[], float],
        clock: Callable[[], float],
        chance: Callable[[int], bytes],
    ) -> None:
        self._server, self._connections, self._key = server, connections, key
        self._patience_s, self._sleep, self._monotonic = patience_s, sleep, monotonic
        self._clock, self._chance = clock, chance

    def _send(
        self, type: str, data: object, tenant: str, key: str | None, fields: dict[str, object]
    ) -> Script[Sent]:
        given = {"tenant": tenant, "type": type, **fields}
        call = calls.send(given, data, key=key, now_ms=self._now_ms(), chance=self._chance(10))
        return calls.sent((yield from self._exchange(call)))

    def _send_many(self, events: Iterable[Mapping[str, object]]) -> Script[list[Sent | Refused]]:
        answers: list[Sent | Refused] = []
        chances = iter(lambda: self._chance(10), b"")
        for call in calls.batches(events, now_ms=self._now_ms(), chances=chances):
            answers += calls.sent_each((yield from self._exchange(call)))
        return answers

    def _exchange(self, call: ApiCall, type: object = Any) -> Script[object]:
        """The value of an answer, after as many repeats as are right and patience allows."""
        headers = calls.headers_of(self._server, self._key, call)
        until = self._monotonic() + self._patience_s
        repeat, doubt = 0, None
        while True:
            wish = None
            try:
                answer: HttpAnswer = yield self._connections.exchange(call, headers)
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
            yield self._sleep(wait)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
