"""Clients for an application's tests: nothing is sent, and everything that was to be sent is there to be looked at.

    hooks = RecordingClient()
    sign(document, hooks)                          # the application's own code
    assert [one.type for one in hooks.sent] == ["document.signed"]

They are the clients themselves over connections that lead nowhere, so an event is checked and repeats are told as a server does
it: `Refused` comes with the same codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from surehook.client.aio import AsyncClient
from surehook.client.calls import ApiCall
from surehook.client.errors import ClientError
from surehook.client.http1 import HttpAnswer
from surehook.client.sync import Client
from surehook.core import idempotency, ids
from surehook.core.envelope import digest_of
from surehook.core.errors import Problem
from surehook.core.instants import DAY_MS, render_optional
from surehook.core.published import EventIn, check_tenant, decode_event, decode_item, split_batch

URL = "http://recording.invalid"
RETENTION_MS = 30 * DAY_MS  # of a server with nothing set


class RecordedEvent(Struct, frozen=True):
    """An event as a server would have taken it; `key` is its idempotency key."""

    id: str
    tenant: str
    type: str
    data: Any
    subject: str | None
    sequence: int | None
    schema_version: str | None
    workflow_version: str | None
    correlation_id: str | None
    causation_id: str | None
    source: str | None
    occurred_at: str | None
    key: str | None


class Recording:
    """A server's part, as far as a publisher sees it: it takes events, and knows repeats.

    `answers` are those of other calls, by `"METHOD /path"`; what is not there is refused with `not_recorded`.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.events: list[RecordedEvent] = []
        self.answers: dict[str, object] = {}
        self._failures: list[ClientError] = []
        # Id, or tenant and key → digest of the event, and its id.
        self._known: dict[str, tuple[bytes, str]] = {}

    def fail(self, error: ClientError, times: int) -> None:
        if not isinstance(error, ClientError):
            raise TypeError(
                f"clients raise a ClientError, such as Unreachable(…), and no {type(error).__name__}"
            )
        self._failures += [error] * times

    def answer(self, call: ApiCall) -> HttpAnswer:
        """The answer to a request. Raises an error that is to be raised."""
        if self._failures:
            raise self._failures.pop(0)
        path = call.path.partition("?")[0]
        try:
            if (call.method, path) == ("POST", "/v1/events"):
                return _answer(202, self._take(decode_event(call.body), call.headers.get("idempotency-key")))
            if (call.method, path) == ("POST", "/v1/events/batch"):
                return _answer(202, [self._take_item(item) for item in split_batch(call.body)])
        except Problem as problem:
            return _answer(400 if problem.code == "invalid_json" else problem.status, _problem(problem))
        asked = f"{call.method} {path}"
        if asked not in self.answers:
            hint = f"give the answer first: client.answers[{asked!r}] = …"
            return _answer(404, {"code": "not_recorded", "detail": f"nothing answers {asked}", "hint": hint})
        return _answer(200, self.answers[asked])

    def _take_item(self, item: bytes) -> Mapping[str, object]:
        event = decode_item(item)
        try:
            return _problem(event) if isinstance(event, Problem) else self._take(event, event.idempotency_key)
        except Problem as problem:
            return _problem(problem)

    def _take(self, event: EventIn, key: str | None) -> Mapping[str, object]:
        """Record an event, once. Raises Problem where a server would, as far as it needs no endpoints and schemas for that."""
        digest, given = digest_of(event), None if event.id is None else ids.text(ids.EVENT, event.id)
        check_tenant(event.tenant)
        if event.id is not None:
            idempotency.check_event_id(event.id, now_ms=self._now_ms(), retention_ms=RETENTION_MS)
        names = [name for name in (given, key and f"{event.tenant} {key}") if name is not None]
        for name in names:
            known, id = self._known.get(name, (None, ""))
            judgement = idempotency.judge(known, digest)
            if judgement == "conflict":
                raise idempotency.conflict(key) if name != given and key else idempotency.id_conflict()
            if judgement == "repeat":
                return {"id": id, "deliveries": 0}
        number = len(self.events) + 1
        id = given or ids.text(ids.EVENT, ids.uuid7(self._now_ms(), number.to_bytes(10, "big")))
        self.events.append(_recorded(event, id, key))
        self._known |= dict.fromkeys([*names, id], (digest, id))
        return {"id": id, "deliveries": 0}


class _BlockingRecording(Recording):
    def exchange(self, call: ApiCall, headers: Mapping[str, str]) -> HttpAnswer:
        return self.answer(call)

    def close(self) -> None:
        """Nothing is open."""


class _AwaitedRecording(Recording):
    async def exchange(self, call: ApiCall, headers: Mapping[str, str]) -> HttpAnswer:
        return self.answer(call)

    def close(self) -> None:
        """Nothing is open."""


class RecordingClient(Client):
    """A `Client` for tests.

    sent     the events that a server would have taken, oldest first (RecordedEvent)
    answers  what other calls are answered with: `client.answers["GET /v1/endpoints/ep_1"] = {…}`
    """

    def __init__(self) -> None:
        super().__init__(URL, patience_s=0)
        self._connections = self._recording = _BlockingRecording(self._now_ms)
        self.sent, self.answers = self._recording.events, self._recording.answers

    def fail(self, error: ClientError, times: int = 1) -> None:
        """Raise this error instead of answering: `client.fail(Unreachable(URL, "it is away", maybe_done=True))`."""
        self._recording.fail(error, times)


class RecordingAsyncClient(AsyncClient):
    """An `AsyncClient` for tests; as `RecordingClient`."""

    def __init__(self) -> None:
        super().__init__(URL, patience_s=0)
        self._connections = self._recording = _AwaitedRecording(self._now_ms)
        self.sent, self.answers = self._recording.events, self._recording.answers

    def fail(self, error: ClientError, times: int = 1) -> None:
        """Raise this error instead of answering; as `RecordingClient.fail`."""
        self._recording.fail(error, times)


def _recorded(event: EventIn, id: str, key: str | None) -> RecordedEvent:
    fields = msgspec.structs.asdict(event)
    del fields["idempotency_key"]
    return RecordedEvent(
        **fields
        | {
            "id": id,
            "data": msgspec.json.decode(event.data),
            "occurred_at": render_optional(event.occurred_at),
            "key": key,
        }
    )


def _problem(problem: Problem) -> Mapping[str, object]:
    return {
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "field": problem.field,
        "hint": problem.hint,
    }


def _answer(status: int, value: object) -> HttpAnswer:
    return HttpAnswer(status, {}, msgspec.json.encode(value), keep=True)
