"""The nouns of the clients are those of the API: every call, every field, every filter and the type of every answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from surehook.api import examples
from surehook.api.endpoints import EndpointChange, NewEndpoint
from surehook.api.event_types import EventTypeChange, NewEventType
from surehook.api.events import NewEvent
from surehook.api.operations import Operation
from surehook.api.replays import ReplayFilter
from surehook.api.table import OPERATIONS
from surehook.api.tenants import NewTenant, TenantChange
from surehook.client import AsyncClient, Client, Refused, fields, resources
from surehook.client.resources import Noun
from surehook.core import answers
from surehook.core.event_fields import EventFields
from surehook.outbox.outbox import PutFields
from tests.client.stand_in import answer, stand_in

ENDPOINT = {"tenant": "acme", "url": "https://a.example", "event_types": ["*"]}
FILTER: fields.DeliveryFilters = {"state": "dead", "tenant": None}
PLACE = {"tenant": "acme", "url": "https://a.example"}
# What each noun asks for, by the name of the operation: the call, the parts of its path, and what is given with it.
CALLS: dict[str, tuple[Callable[[Any], Any], object]] = {
    "list_events": (lambda c: c.events.list(tenant="acme"), {"tenant": "acme"}),
    "get_event": (lambda c: c.events.get("evt_1"), None),
    "list_event_deliveries": (lambda c: c.events.deliveries("evt_1", state="dead"), {"state": "dead"}),
    "list_deliveries": (lambda c: c.deliveries.list(state="dead", status=500), {"state": "dead", "status": 500}),
    "get_delivery": (lambda c: c.deliveries.get("dlv_1"), None),
    "list_attempts": (lambda c: c.deliveries.attempts("dlv_1"), None),
    "resend_delivery": (lambda c: c.deliveries.resend("dlv_1"), None),
    "cancel_delivery": (lambda c: c.deliveries.cancel("dlv_1"), None),
    "list_dead_letters": (lambda c: c.dead_letters.list(tenant="acme"), {"tenant": "acme"}),
    "dismiss_dead_letter": (lambda c: c.dead_letters.dismiss("dlv_1", note="seen"), {"note": "seen"}),
    "create_replay": (lambda c: c.replays.create(filter=FILTER), {"filter": {"state": "dead"}, "dry_run": False}),
    "get_replay": (lambda c: c.replays.get("rpl_1"), None),
    "create_endpoint": (lambda c: c.endpoints.create(**ENDPOINT, description=None), ENDPOINT | {"description": None}),
    "list_endpoints": (lambda c: c.endpoints.list(status="paused"), {"status": "paused"}),
    "get_endpoint": (lambda c: c.endpoints.get("ep_1"), None),
    "change_endpoint": (lambda c: c.endpoints.update("ep_1", status="paused"), {"status": "paused"}),
    "delete_endpoint": (lambda c: c.endpoints.delete("ep_1"), None),
    "list_secrets": (lambda c: c.endpoints.secrets("ep_1"), None),
    "rotate_secret": (lambda c: c.endpoints.rotate_secret("ep_1", overlap_s=0), {"overlap_s": 0}),
    "test_endpoint": (lambda c: c.endpoints.test("ep_1"), None),
    "create_tenant": (
        lambda c: c.tenants.create(id="acme", name="Acme", strict=True), {"id": "acme", "name": "Acme", "strict": True},
    ),
    "list_tenants": (lambda c: c.tenants.list(), None),
    "get_tenant": (lambda c: c.tenants.get("acme"), None),
    "change_tenant": (lambda c: c.tenants.update("acme", name="Acme"), {"name": "Acme"}),
    "delete_tenant": (lambda c: c.tenants.delete("acme"), None),
    "create_event_type": (lambda c: c.event_types.create(name="a.b", schema={}), {"name": "a.b", "schema": {}}),
    "list_event_types": (lambda c: c.event_types.list(), None),
    "get_event_type": (lambda c: c.event_types.get("a.b"), None),
    "change_event_type": (lambda c: c.event_types.update("a.b", description=None), {"description": None}),
    "list_policies": (lambda c: c.policies.list(), None),
    "get_policy": (lambda c: c.policies.get("standard"), None),
    "preview_policy": (lambda c: c.policies.preview("standard"), {"policy": "standard"}),
    "list_lanes": (lambda c: c.lanes.list(), None),
    "list_breakers": (lambda c: c.breakers.list(), None),
    "probe_breaker": (lambda c: c.breakers.probe(**PLACE), PLACE),
    "close_breaker": (lambda c: c.breakers.close(**PLACE), PLACE),
    "list_notices": (lambda c: c.notices.list(kind="endpoint.paused"), {"kind": "endpoint.paused"}),
}  # fmt: skip
IDS = {
    "events": "evt_1", "deliveries": "dlv_1", "dead-letters": "dlv_1", "replays": "rpl_1", "endpoints": "ep_1",
    "tenants": "acme", "event-types": "a.b", "policies": "standard",
}  # fmt: skip
ELSEWHERE = {"publish", "publish_batch", "take_receipts"}  # `send`, `send_batch`; the inbox of a receiver
# The API describes these; their members are the user's, and read as JSON.
JSON = {"PolicyDocument": dict[str, Any], "PreviewDocument": answers.PreviewOut}


class Asked(NamedTuple):
    method: str
    path: str
    given: object
    type: object
    is_list: bool


class Caller:
    """A client that notes what its resources ask for."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def call(self, method: str, path: str, *, json: object = None, type: object = Any) -> Any:
        self.asked.append(Asked(method, path, json, type, False))

    def pages(self, path: str, query: Mapping[str, object] | None = None, *, type: object = Any) -> Any:
        self.asked.append(Asked("GET", path, query, type, True))


class Recorded(Caller):
    """Every noun of the API, on one caller."""


for name, noun in vars(Client).items():
    if isinstance(noun, Noun):
        setattr(Recorded, name, noun)


def path_of(operation: Operation) -> str:
    return re.sub(r"\{\w+\}", IDS.get(operation.path.split("/")[2], ""), operation.path)


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.path.startswith("/v1/") and one.name not in ELSEWHERE],
    ids=lambda one: one.name,
)
def test_every_call_of_the_api_has_a_method_that_asks_for_it_and_reads_its_answer(
    operation: Operation,
) -> None:
    caller = Recorded()
    call, given = CALLS[operation.name]
    call(caller)
    (asked,) = caller.asked
    assert asked[:3] == (operation.method, path_of(operation), given)
    assert asked.is_list == operation.is_list
    (answered,) = {operation.answers[status] for status in operation.answers}
    read = None if answered is None else JSON.get(getattr(answered, "__name__", ""), answered)
    assert asked.type == read
    if operation.body is not None:
        msgspec.convert(asked.given, operation.body)


def test_no_call_is_left_over() -> None:
    names = {one.name for one in OPERATIONS if one.path.startswith("/v1/")}
    assert CALLS.keys() == names - ELSEWHERE


def names_of(body: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(body)}


def filters_of(name: str) -> set[str]:
    (operation,) = (one for one in OPERATIONS if one.name == name)
    return {parameter.name for parameter in operation.query}


@pytest.mark.parametrize(
    ("typed", "given", "known"),
    [
        (fields.TenantFields, {"id", "name"}, names_of(NewTenant)),
        (fields.TenantChanges, set(), names_of(TenantChange)),
        (fields.EventTypeFields, {"name"}, names_of(NewEventType)),
        (fields.EventTypeFields, set(), names_of(EventTypeChange)),
        (fields.EndpointFields, {"tenant", "url", "event_types"}, names_of(NewEndpoint)),
        (fields.EndpointChanges, set(), names_of(EndpointChange)),
        (fields.SendFields, {"tenant", "type", "data"}, names_of(NewEvent)),
        (fields.DeliveryFilters, set(), names_of(ReplayFilter)),
        (fields.DeliveryFilters, set(), filters_of("list_deliveries")),
        (fields.DeadLetterFilters, set(), filters_of("list_dead_letters")),
        (fields.EventDeliveryFilters, set(), filters_of("list_event_deliveries")),
        (fields.EventFilters, set(), filters_of("list_events")),
        (fields.EndpointFilters, set(), filters_of("list_endpoints")),
        (fields.NoticeFilters, set(), filters_of("list_notices")),
        (EventFields, {"tenant", "numbered", "key"}, set(PutFields.__annotations__)),
    ],
)  # fmt: skip
def test_fields_and_filters_are_those_of_the_api(typed: Any, given: set[str], known: set[str]) -> None:
    assert set(typed.__annotations__) | given == known


def test_answers_are_typed_and_lists_read_page_by_page() -> None:
    tenant = examples.ANSWERS["Tenant"]
    pages = [
        answer(200, tenant),
        answer(200, {"data": [tenant], "next": "c1"}),
        answer(200, {"data": [tenant | {"id": "b", "of": "a newer server"}], "next": None}),
    ]
    with stand_in(*pages) as server, Client(server.url) as client:
        assert client.tenants.get("acme") == msgspec.convert(tenant, answers.TenantOut)
        assert [one.id for one in client.tenants.list()] == [tenant["id"], "b"]


def test_words_of_a_newer_server_are_read() -> None:
    delivery = examples.ANSWERS["Delivery"] | {"state": "resting", "outcome": "thrilled"}
    with stand_in(answer(200, delivery)) as server, Client(server.url) as client:
        assert client.deliveries.get("dlv_1").state == "resting"


def test_an_answer_of_another_form_says_how_to_read_it() -> None:
    endpoint = examples.ANSWERS["Endpoint"] | {"authentication": {"type": "by_handshake"}}
    with stand_in(answer(200, endpoint)) as server, Client(server.url) as client:
        with pytest.raises(Refused, match="by_handshake") as caught:
            client.endpoints.get("ep_1")
        assert (caught.value.code, caught.value.hint and "client.call" in caught.value.hint) == (
            "not_understood",
            True,
        )
        assert client.call("GET", "/v1/endpoints/ep_1")["authentication"] == {"type": "by_handshake"}


def test_the_twins_have_the_same_nouns() -> None:
    def nouns(kind: type) -> dict[str, object]:
        return {name: type(one._kind) for name, one in vars(kind).items() if isinstance(one, Noun)}

    assert nouns(Client) == nouns(AsyncClient) and len(nouns(Client)) == 11
    made = {type(getattr(Recorded(), name)) for name in nouns(Client)}
    assert made == {
        kind for kind in vars(resources).values()
        if isinstance(kind, type) and issubclass(kind, resources._Resource) and kind is not resources._Resource
    }  # fmt: skip


@pytest.mark.parametrize(
    "reply", [answer(200), answer(200, []), answer(200, {"ok": True}), answer(200, [{}])]
)
def test_answers_that_no_server_of_ours_gives_are_errors_of_a_client(reply: bytes) -> None:
    event = {"type": "a", "tenant": "t", "data": 1}
    with stand_in(reply) as server, Client(server.url, patience_s=0) as client:
        for act in (
            lambda: client.tenants.get("acme"), lambda: list(client.tenants.list()),
            lambda: client.send("a", 1, tenant="t"), lambda: client.send_batch([event]), lambda: client.send_batch([event] * 2),
        ):  # fmt: skip
            with pytest.raises(Refused) as caught:
                act()
            assert caught.value.code in ("not_surehook", "not_understood")
        assert client.tenants.delete("acme") is None  # it was done, whatever is said beside it


def test_a_new_wish_for_receipts_is_read_by_an_older_client() -> None:
    endpoint = examples.ANSWERS["Endpoint"] | {"receipts": {"finalize_within_s": 5, "of": "a newer server"}}
    with stand_in(answer(200, endpoint)) as server, Client(server.url) as client:
        wanted = client.endpoints.get("ep_1").receipts
        assert wanted is not None and wanted.finalize_within_s == 5
