"""/v1/deliveries"""

from __future__ import annotations

from functools import partial
from typing import get_args

from msgspec.structs import replace

from surehook.api import query, show
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.api.services import ManagementEngine
from surehook.core import ids
from surehook.core.answers import AttemptOut, DeliveryOut
from surehook.core.model import Attempt, OutcomeName, State
from surehook.core.outcome import BY_FAILURE
from surehook.core.receipt import CODE_CHARS, STAGES
from surehook.delivery import deliveries
from surehook.ports.reading import DeliveryFilter, DeliveryView
from surehook.ports.registry import Page

STATES: tuple[str, ...] = get_args(State)
OUTCOMES: tuple[str, ...] = get_args(OutcomeName)
ERRORS = tuple(BY_FAILURE)
PLACE_BYTES = 8  # a history is paged by position, since its rows have no ids


async def list_all(asked: ApiRequest) -> ApiAnswer:
    where = DeliveryFilter(**asked.query_filters())
    page = await asked.services.engine.ledger.deliveries(where, limit=asked.limit, after=asked.after)
    return asked.page(page, partial(shown, asked))


async def get(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(shown(asked, await deliveries.find(asked.services.engine, _id(asked))))


async def list_attempts(asked: ApiRequest) -> ApiAnswer:
    delivery = _id(asked)
    seen = await deliveries.find(asked.services.engine, delivery)
    history = await asked.services.engine.ledger.attempts(delivery)
    policy = await deliveries.policy_of(asked.services.engine, seen.endpoint, seen.type)
    newest = _newest(history, limit=asked.limit, after=asked.after)
    return asked.page(newest, partial(show.attempt, policy=policy))


async def resend(asked: ApiRequest) -> ApiAnswer:
    seen, is_new = await deliveries.resend(asked.services.engine, _id(asked))
    shape = shown(asked, seen)
    return ApiAnswer(shape, 201, {"location": f"/v1/deliveries/{shape.id}"}) if is_new else ApiAnswer(shape)


async def cancel(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(shown(asked, await deliveries.cancel(asked.services.engine, _id(asked))))


def shown(asked: ApiRequest, seen: DeliveryView) -> DeliveryOut:
    """A delivery as the API shows it. The `due_at` of a parked one is outdated: it becomes the time of the next probe where a
    breaker holds the delivery, else null."""
    if seen.state == "parked":
        seen = replace(seen, due_at=_probe_at(asked.services.engine, seen))
    return show.delivery(seen)


def _probe_at(engine: ManagementEngine, seen: DeliveryView) -> int | None:
    route = engine.directory.routes.get(seen.endpoint)
    if route is None or seen.reason not in ("breaker", "key") or route.breaker.is_closed:
        return None
    return route.breaker.probe_at


def _newest(history: list[Attempt], *, limit: int, after: bytes | None) -> Page:
    """A page of a history, newest first. The position is the number of entries before the end of the page."""
    end = len(history) if after is None else min(len(history), int.from_bytes(after, "big"))
    start = max(0, end - limit)
    position = start.to_bytes(PLACE_BYTES, "big") if start else None
    return Page(data=history[start:end][::-1], next=position)


def _id(asked: ApiRequest) -> bytes:
    return asked.id(ids.DELIVERY, "delivery")


DELIVERY_FILTERS = (
    query.tenant(),
    query.an_id("endpoint", ids.ENDPOINT, "Id of an endpoint."),
    query.one_of("state", STATES, "State of the delivery."),
    query.event_type(),
    query.one_of("outcome", OUTCOMES, "Outcome of its last attempt."),
    query.http_status("status", "Status that its last request was answered with."),
    query.one_of("error", ERRORS, "What went wrong with its last request, where that had no answer."),
    query.one_of("receipt", STAGES, "How far its receiver says that the event has come."),
    query.text("code", "Code that its receiver gave with the receipt, exactly.", chars=CODE_CHARS),
    query.text("subject", "Subject of the event, exactly."),
    query.text("correlation_id", "Correlation id of the event, exactly."),
    query.instant("since", "Its event was accepted at this instant or later."),
    query.instant("until", "Its event was accepted before this instant."),
)

OPERATIONS = (
    Operation(
        method="GET", path="/v1/deliveries", name="list_deliveries", handle=list_all,
        about="Deliveries, open and finished, newest event first.", answers={200: DeliveryOut}, is_list=True,
        query=DELIVERY_FILTERS,
    ),
    Operation(
        method="GET", path="/v1/deliveries/{id}", name="get_delivery", handle=get, about="One delivery.",
        answers={200: DeliveryOut}, problems=("not_found",),
    ),
    Operation(
        method="GET", path="/v1/deliveries/{id}/attempts", name="list_attempts", handle=list_attempts,
        about="The history of a delivery, newest entry first.", answers={200: AttemptOut}, is_list=True,
        problems=("not_found",),
    ),
    Operation(
        method="POST", path="/v1/deliveries/{id}/resend", name="resend_delivery", handle=resend,
        about="Deliver again: a new delivery for a finished one (201), or now instead of later for an open one (200).",
        detail="A replay keeps the event's id and bytes; it has its own delivery id, `replay_of`, and starts with attempt 1. "
        "Behind an open breaker neither is sent at once: the next probe is due now, and what is parked goes out when "
        "that is delivered (or after `POST /v1/breakers/close`).",
        answers={201: DeliveryOut, 200: DeliveryOut}, problems=("not_found", "endpoint_gone", "event_gone"),
    ),
    Operation(
        method="POST", path="/v1/deliveries/{id}/cancel", name="cancel_delivery", handle=cancel,
        about="Cancel a delivery that is not being sent.", answers={200: DeliveryOut},
        problems=("not_found", "delivery_sending", "delivery_finished"),
    ),
)  # fmt: skip
