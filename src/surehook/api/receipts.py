"""/v1/receipts"""

from __future__ import annotations

from msgspec import Struct

from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core import ids
from surehook.core.receipt_message import BODY_BYTES, ReceiptMessage
from surehook.delivery import receipts


class TakenOut(Struct, frozen=True):
    taken: int
    unknown: list[str]


async def take(asked: ApiRequest) -> ApiAnswer:
    taken = await receipts.take(asked.services.engine, asked.headers, asked.body)
    return ApiAnswer(TakenOut(taken.taken, [ids.text(ids.DELIVERY, one) for one in taken.unknown]))


OPERATIONS = (
    Operation(
        method="POST", path="/v1/receipts", name="take_receipts", handle=take, body=ReceiptMessage, body_limit=BODY_BYTES,
        signed=True, needs_key=False, answers={200: TakenOut},
        about="Take receipts from a receiver. Signed with the endpoint's secret; needs no key.",
        detail="Headers `webhook-receipts` (the endpoint), `webhook-id` (`rcp_…`), `webhook-timestamp`, `webhook-signature`. "
        "Up to 100 receipts. `unknown` are deliveries that this endpoint never had; all unknown is a 404.",
        problems=("bad_signature", "unknown_delivery", "invalid_receipts", "bad_id", "bad_time"),
    ),
)  # fmt: skip
