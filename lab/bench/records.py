"""Logs of the generator and of the sink, and their way to the process that joins the two.

Instants are nanoseconds of the machine's monotonic clock, in arrays of eight bytes; ids are kept as
they stood on the wire and travel as one block of lines. A million arrivals are about 90 MB.
"""

from __future__ import annotations

from array import array
from typing import Literal

import msgspec


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Order to a generator."""

    port: int
    key: str
    tenant: str
    types: tuple[str, ...]  # event types, dealt in turn
    mode: Literal["single", "batch"] = "single"
    batch: int = 50  # events per POST in mode `batch`
    # Events/s in open loop; None is closed loop: the next leaves when one is answered.
    rate: float | None = None
    connections: int = 64
    seconds: float = 10.0
    events: int | None = None  # stop after so many, if that comes first
    payload_bytes: int = 600  # of one event in the request, ids included
    own_ids: bool = False  # the publisher makes the event ids
    insist: bool = False  # what got no 202 is posted again, unchanged, until it does (needs own_ids)
    patience_s: float = 10.0  # how long to wait for answers after the last request


class Sent(msgspec.Struct, kw_only=True):
    """Log of a generator. Row i of the arrays is event i that was answered 202."""

    ids: bytes  # event ids, one a line
    sent: bytes  # array('q'): when the request was meant to leave
    accepted: bytes  # array('q'): when its 202 was complete
    deliveries: int  # sum of the `deliveries` of all answers
    attempted: int  # events made: each was put on the wire, or was waiting for a connection at the end
    refused: int  # events answered with anything but 202, or with a problem inside a batch
    unanswered: int  # events whose connection ended without an answer, or whose patience did
    statuses: dict[str, int]  # answers by status, in requests
    bare_503: int = 0  # of these, 503 without `Retry-After`
    started_ns: int
    ended_ns: int  # when the last request was answered
    lag_ms: float  # p95 of how late the generator itself put requests on the wire (open loop)
    cpu_us: float  # of the generator per event

    def rows(self) -> tuple[list[bytes], array[int], array[int]]:
        """Ids, meant instants and accepted instants, row by row."""
        sent, accepted = array("q"), array("q")
        sent.frombytes(self.sent)
        accepted.frombytes(self.accepted)
        return self.ids.split(b"\n") if self.ids else [], sent, accepted


class Arrivals(msgspec.Struct, kw_only=True):
    """Every request that reached the sink, in order of arrival."""

    paths: list[str]  # by number
    deliveries: bytes  # `webhook-delivery-id`, one a line
    events: bytes  # `webhook-id`, one a line
    at: bytes  # array('q')
    path: bytes  # array('H'): index into `paths`
    answered: int  # deliveries answered with 2xx, each once
    unanswered: bytes  # deliveries that came and were never answered with 2xx, one a line
    duplicated: int  # requests for a delivery that had been answered with 2xx before they came
    cpu_us: float  # of the sink per request

    def rows(self) -> tuple[list[bytes], list[bytes], array[int], array[int]]:
        """Delivery ids, event ids, instants and path numbers, row by row."""
        at, path = array("q"), array("H")
        at.frombytes(self.at)
        path.frombytes(self.path)
        if not at:
            return [], [], at, path
        return self.deliveries.split(b"\n"), self.events.split(b"\n"), at, path

    def without_success(self) -> set[bytes]:
        """Deliveries that came and were never answered with 2xx: not delivered yet."""
        return set(self.unanswered.split(b"\n")) if self.unanswered else set()


class Count(msgspec.Struct, kw_only=True):
    """The sink's running totals."""

    requests: int
    answered: int
    duplicated: int
    last_ns: int  # the latest arrival, 0 before the first
    connections: int  # open now, with the one that asks
    by_path: dict[str, int]
