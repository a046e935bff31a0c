"""The requests a generator sends: their bytes, made once and filled in per event."""

from __future__ import annotations

import os
import time

import msgspec

from lab.bench.records import Plan
from surehook.core import ids


class Hand(msgspec.Struct):
    """One request on its way: what was meant when, and the bytes."""

    meant_ns: int
    count: int  # events in it
    request: bytes


class Item(msgspec.Struct):
    """One event's answer. A problem inside a batch has a code and no deliveries."""

    id: str | None = None
    deliveries: int = 0
    code: str | None = None


ONE = msgspec.json.Decoder(Item)
MANY = msgspec.json.Decoder(list[Item])


class Publisher:
    """Makes requests for a plan and reads their answers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.made = 0
        path = "/v1/events" if plan.mode == "single" else "/v1/events/batch"
        self.head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{plan.port}\r\nauthorization: Bearer {plan.key}\r\n"
            "content-type: application/json\r\ncontent-length: "
        ).encode()
        self.per_request = 1 if plan.mode == "single" else plan.batch
        self.fronts = [self._front(name) for name in plan.types]
        self.tail = self._tail()

    def _front(self, type_: str) -> bytes:
        return f'"tenant":"{self.plan.tenant}","type":"{type_}","data":{{"number":'.encode()

    def _tail(self) -> bytes:
        """The rest of an event after its number, padded so that a whole one has the planned size."""
        start = ',"document":"doc_123","signer":{"name":"A","email":"a@b.c"},"pad":"'
        spent = len(self.fronts[0]) + len(start) + 12 + (37 if self.plan.own_ids else 0)
        return f'{start}{"x" * max(0, self.plan.payload_bytes - spent)}"}}}}'.encode()

    def event(self) -> bytes:
        """One event as JSON."""
        number = self.made
        self.made += 1
        front = self.fronts[number % len(self.fronts)]
        if self.plan.own_ids:
            own = ids.text(ids.EVENT, ids.uuid7(time.time_ns() // 1_000_000, os.urandom(10)))
            return b'{"id":"%b",%b%d%b' % (own.encode(), front, number, self.tail)
        return b"{%b%d%b" % (front, number, self.tail)

    def hand(self, meant_ns: int) -> Hand:
        """The next request."""
        if self.plan.mode == "single":
            body = self.event()
        else:
            body = b"[%b]" % b",".join([self.event() for _ in range(self.per_request)])
        return Hand(meant_ns, self.per_request, b"%b%d\r\n\r\n%b" % (self.head, len(body), body))

    def answers(self, body: bytes) -> list[Item]:
        """Deliveries that a 202 promises, event by event."""
        return [ONE.decode(body)] if self.plan.mode == "single" else MANY.decode(body)
