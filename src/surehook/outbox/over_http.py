"""Publishes rows to a server over HTTP, in one request."""

from __future__ import annotations

from msgspec import Raw

from surehook.client.aio import AsyncClient
from surehook.client.calls import Sent, sent_each
from surehook.client.errors import Refused, Unreachable
from surehook.core.outbox import OutboxRow, item_of
from surehook.core.outbox_answers import TAKEN, RowAnswer
from surehook.ports.outbox import NotPublished

# Of a request as a whole: anything else is about the address, the key or the server.
ABOUT_ROWS = frozenset({
    "invalid_json", "wrong_type", "bad_text", "duplicate_key", "number_out_of_range", "too_deep", "too_many_events",
    "body_too_large",
})  # fmt: skip
TOO_LARGE = 413  # also of a proxy before the server: half of the rows may pass it


class OverHttp:
    """`client` does not repeat what fails: the relay does."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __call__(self, rows: list[OutboxRow]) -> list[RowAnswer]:
        items = [Raw(item_of(row)) for row in rows]
        try:
            answers = sent_each(await self._client.call("POST", "/v1/events/batch", json=items), len(items))
        except Unreachable as error:
            raise NotPublished(str(error)) from error
        except Refused as error:
            if error.code == "tenant_overloaded":
                # Nobody's were let in, so all are of tenants that have their part of the line.
                return [_answer(error)] * len(rows)
            is_about_rows = error.code in ABOUT_ROWS or (error.status == TOO_LARGE and len(rows) > 1)
            raise NotPublished(str(error), _answer(error) if is_about_rows else None) from error
        return [TAKEN if isinstance(each, Sent) else _answer(each) for each in answers]


def _answer(refusal: Refused) -> RowAnswer:
    return RowAnswer(refusal.status, refusal.code, refusal.detail)
