"""The client of commands: it gives JSON as it came, and notes each change that it asks for until the answer is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surehook.cli import pending_call
from surehook.client import Refused
from surehook.client.calls import ApiCall, is_doubtful
from surehook.client.resources import (
    BreakerCalls,
    DeadLetterCalls,
    DeliveryCalls,
    EndpointCalls,
    EventCalls,
    EventTypeCalls,
    LaneCalls,
    Noun,
    ReplayCalls,
    ResourceCaller,
    TenantCalls,
)
from surehook.client.sync import BlockingClient
from surehook.core.effects import Script
from surehook.core.json_value import JsonObject

Many = Iterator[JsonObject]


class PlainAnswers:
    """A client for resources that read no types: commands print what a newer server says, too."""

    def __init__(self, client: ResourceCaller) -> None:
        self._client = client

    def call(self, method: str, path: str, *, json: object = None, type: object = None) -> object:
        return self._client.call(method, path, json=json)

    def pages(self, path: str, query: Mapping[str, object] | None = None, *, type: object = None) -> object:
        return self._client.pages(path, query)


class TrackedClient(BlockingClient):
    """A client whose latest change is known to `pending_call`."""

    tenants = Noun(lambda client: TenantCalls[JsonObject, Many, None](PlainAnswers(client)))
    event_types = Noun(lambda client: EventTypeCalls[JsonObject, Many](PlainAnswers(client)))
    endpoints = Noun(
        lambda client: EndpointCalls[JsonObject, Many, None, JsonObject, Many](PlainAnswers(client))
    )
    events = Noun(lambda client: EventCalls[JsonObject, Many, Many](PlainAnswers(client)))
    deliveries = Noun(lambda client: DeliveryCalls[JsonObject, Many, Many](PlainAnswers(client)))
    dead_letters = Noun(lambda client: DeadLetterCalls[JsonObject, Many](PlainAnswers(client)))
    replays = Noun(lambda client: ReplayCalls[JsonObject](PlainAnswers(client)))
    breakers = Noun(lambda client: BreakerCalls[JsonObject, Many](PlainAnswers(client)))
    lanes = Noun(lambda client: LaneCalls[Many](PlainAnswers(client)))

    def _exchange(self, call: ApiCall, type: object = Any) -> Script[object]:
        pending_call.began(call)
        try:
            return (yield from super()._exchange(call, type))
        except Refused as error:
            if not is_doubtful(error):
                pending_call.clear()
            raise
