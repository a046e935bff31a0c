"""/v1/dead-letters"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from surehook.api import show
from surehook.api.deliveries import DELIVERY_FILTERS, shown
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core import ids, limits
from surehook.core.answers import DeliveryOut
from surehook.delivery import deliveries
from surehook.ports.reading import DeliveryFilter


class NewDismissal(Struct, forbid_unknown_fields=True):
    note: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=limits.DESCRIPTION_CHARS,
            description="Why it needs no delivery any more.",
        ),
    ]


async def list_all(asked: ApiRequest) -> ApiAnswer:
    where = DeliveryFilter(**asked.query_filters())
    page = await asked.services.engine.ledger.dead_letters(where, limit=asked.limit, after=asked.after)
    return asked.page(page, partial(shown, asked))


async def dismiss(asked: ApiRequest) -> ApiAnswer:
    delivery = asked.id(ids.DELIVERY, "delivery")
    seen = await deliveries.dismiss(asked.services.engine, delivery, note=asked.body.note)
    return ApiAnswer(show.delivery(seen))


FILTERS = tuple(parameter for parameter in DELIVERY_FILTERS if parameter.name != "state")

OPERATIONS = (
    Operation(
        method="GET", path="/v1/dead-letters", name="list_dead_letters", handle=list_all,
        about="Deliveries that gave up and were neither replayed nor dismissed, newest event first.",
        answers={200: DeliveryOut}, is_list=True, query=FILTERS,
    ),
    Operation(
        method="POST", path="/v1/dead-letters/{id}/dismiss", name="dismiss_dead_letter", handle=dismiss,
        body=NewDismissal, about="Put a dead letter away with a note. The id is the delivery's.",
        answers={200: DeliveryOut}, problems=("not_found", "not_a_dead_letter"),
    ),
)  # fmt: skip
