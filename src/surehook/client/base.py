"""One text for both clients: how a request is made, repeated and answered (`core/effects.py`).

`Client` and `AsyncClient` run these scripts over blocking sockets and over asyncio streams.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from surehook.client import calls
from surehook.client.calls import ApiCall, Sent, ServerUrl
from surehook.client.errors import Refused, Unreachable
from surehook.client.fields import SendFields
from surehook.client.http1 import HttpAnswer
from surehook.core.answers import ListOut
from surehook.core.effects import Script

PAGE_ENTRIES = 200


class SenderConnections(Protocol):
    """The connections to one server: blocking sockets, or asyncio streams."""

    def exchange(self, call: ApiCall, headers: Mapping[str, str]) -> HttpAnswer | Awaitable[HttpAnswer]:
        """One request, one answer. Raises Unreachable."""
        ...

    def close(self) -> None: ...


def following(asked: Mapping[str, object], cursor: str) -> str:
    """The cursor of the next page. Raises Refused where it is that of this one: such a list would never end."""
    if cursor == asked.get("cursor"):
        raise calls.foreign(200)
    return cursor


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
        self, type: str, data: object, tenant: str, key: str | None, fields: SendFields
    ) -> Script[Sent]:
        given = {"tenant": tenant, "type": type, **fields}
        call = calls.send(given, data, key=key, now_ms=self._now_ms(), chance=self._chance(10))
        sent = yield from self._exchange(call, Sent)
        assert isinstance(sent, Sent)
        return sent

    def _send_batch(self, events: Iterable[Mapping[str, object]]) -> Script[list[Sent | Refused]]:
        answers: list[Sent | Refused] = []
        chances = iter(lambda: self._chance(10), b"")
        for call in calls.batches(events, now_ms=self._now_ms(), chances=chances):
            answers += calls.sent_each((yield from self._exchange(call)), call.events)
        return answers

    def _answer(
        self, method: str, path: str, query: Mapping[str, object] | None, json: object, type: object
    ) -> Script[object]:
        call = calls.request(method, path, query=query, json=json)
        return (yield from self._exchange(call, type))

    def _page(self, path: str, query: Mapping[str, object], type: object) -> Script[ListOut[Any]]:
        """One page of a list; another one follows where `next` is not None, with that as `cursor`."""
        given = {"limit": PAGE_ENTRIES, **query}
        page = yield from self._answer("GET", path, given, None, ListOut[type])  # type: ignore[valid-type]
        assert isinstance(page, ListOut)
        return page

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
