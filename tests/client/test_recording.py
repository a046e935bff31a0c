"""Clients for an application's tests answer as a server would, and remember."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

import pytest

from surehook.client import Refused, Sent, Unreachable
from surehook.client.calls import event_id
from surehook.client.recording import RecordingAsyncClient, RecordingClient


class Blocking:
    def __init__(self) -> None:
        self.client: Any = RecordingClient()

    def do(self, act: Callable[[Any], Any]) -> Any:
        return act(self.client)


class Awaiting(Blocking):
    def __init__(self) -> None:
        self.client = RecordingAsyncClient()

    def do(self, act: Callable[[Any], Any]) -> Any:
        async def run() -> Any:
            result = act(self.client)
            return [one async for one in result] if inspect.isasyncgen(result) else await result

        return asyncio.run(run())


@pytest.fixture(params=[Blocking, Awaiting])
def twin(request: pytest.FixtureRequest) -> Any:
    return request.param()


def send(client: Any, **fields: Any) -> Any:
    return client.send("document.signed", {"document": "doc_1"}, tenant="acme", **fields)


def test_what_was_sent_is_there_to_be_looked_at(twin: Any) -> None:
    sent = twin.do(lambda c: send(c, subject="doc_1", sequence=3, occurred_at="2026-11-29T10:00:00+01:00"))
    (event,) = twin.client.sent
    assert sent == Sent(event.id, 0)
    assert (event.tenant, event.type, event.data) == ("acme", "document.signed", {"document": "doc_1"})
    assert (event.subject, event.sequence, event.key) == ("doc_1", 3, None)
    assert event.occurred_at == "2026-11-29T09:00:00.000Z"


def test_a_repeat_is_told_and_another_event_under_its_key_is_refused(twin: Any) -> None:
    first = twin.do(lambda c: send(c, key="doc_1:signed"))
    assert twin.do(lambda c: send(c, key="doc_1:signed")) == first
    assert [one.key for one in twin.client.sent] == ["doc_1:signed"]
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: send(c, key="doc_1:signed", subject="doc_2"))
    assert (caught.value.status, caught.value.code) == (409, "idempotency_conflict")
    own = event_id(time.time_ns() // 1_000_000, bytes(10))
    assert twin.do(lambda c: send(c, id=own, key="k")).id == own != first.id
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: c.send("document.voided", {}, tenant="acme", id=own))
    assert caught.value.code == "event_id_conflict"


def test_what_no_server_takes_is_refused_with_the_same_code(twin: Any) -> None:
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: c.send("document signed", {}, tenant="acme"))
    assert caught.value.code == "invalid_event_type"
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: c.send("a", {}, tenant=""))
    assert caught.value.code == "unknown_tenant"
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: c.send("a", b"{", tenant="t"))
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: c.send("a", {}, tenant="t", id=event_id(1_000_000_000_000, bytes(10))))
    assert caught.value.code == "event_id_too_old"
    assert twin.client.sent == []


def test_a_batch_is_taken_event_by_event(twin: Any) -> None:
    good, bad, again = twin.do(
        lambda c: c.send_batch(
            [
                {"type": "a.b", "tenant": "t", "data": 1, "idempotency_key": "k"},
                {"type": "", "tenant": "t", "data": 2},
                {"type": "a.b", "tenant": "t", "data": 1, "idempotency_key": "k"},
            ]
        )
    )
    assert isinstance(bad, Refused) and bad.code == "invalid_event_type"
    assert good == again
    assert [one.data for one in twin.client.sent] == [1]


def test_trouble_can_be_had(twin: Any) -> None:
    twin.client.fail(Unreachable("http://h", "it is away", maybe_done=True))
    with pytest.raises(Unreachable, match="it is away"):
        twin.do(send)
    assert twin.client.sent == []
    twin.do(send)
    assert len(twin.client.sent) == 1


def test_other_calls_are_answered_as_told(twin: Any) -> None:
    tenant = {"id": "acme", "name": "Acme", "strict": False, "created_at": "2026-11-29T10:00:00.000Z"}
    with pytest.raises(Refused) as caught:
        twin.do(lambda c: c.tenants.get("acme"))
    assert caught.value.code == "not_recorded" and "client.answers['GET /v1/tenants/acme']" in str(
        caught.value.hint
    )
    twin.client.answers["GET /v1/tenants/acme"] = tenant
    twin.client.answers["GET /v1/tenants"] = {"data": [tenant], "next": None}
    assert twin.do(lambda c: c.tenants.get("acme")).name == "Acme"
    assert [one.id for one in twin.do(lambda c: c.tenants.list()) or ()] == ["acme"]
