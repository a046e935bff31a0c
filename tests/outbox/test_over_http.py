"""Whatever answers at the server's address: rows are put aside only for what a surehook server says of them."""

from __future__ import annotations

import pytest

from surehook.client import AsyncClient
from surehook.core.outbox import OutboxRow
from surehook.core.outbox_answers import TAKEN, RowAnswer
from surehook.outbox.over_http import OverHttp
from surehook.ports.outbox import NotPublished
from tests.cli.fake_api import KEY, answer, fake_api
from tests.client.stand_in import stand_in

ID = "evt_01m8k7m42de4rbf707a4gm7w62"
ROW = OutboxRow(1, ID, "acme", "a", "1", None, None, None, 5)


def problem(status: int, code: str) -> dict[str, object]:
    return {"status": status, "code": code, "detail": "why", "field": None, "hint": None}


async def published(response: bytes) -> object:
    with fake_api(**{"POST /v1/events/batch": response}) as api:
        async with AsyncClient(api.url, KEY, patience_s=0) as client:
            return await OverHttp(client)([ROW])


async def test_events_that_are_on_disk_are_taken() -> None:
    assert await published(answer(202, [{"id": ID, "deliveries": 1}])) == [TAKEN]


@pytest.mark.parametrize(
    ("status", "value"),
    [
        (200, {"status": "ok"}), (200, ["a"]), (200, []), (202, [{"id": ID, "deliveries": 1}] * 2), (204, None), (302, None),
        (400, None), (405, None), (404, problem(404, "not_found")), (421, problem(421, "served_elsewhere")),
        (401, problem(401, "unauthorized")), (503, problem(503, "overloaded")),
        (400, {"code": 400, "message": "Bad Request"}), (400, problem(400, "bad_request")), (422, problem(422, "unknown_tenant")),
        (413, None), (429, None),
    ],
)  # fmt: skip
async def test_rows_wait_where_the_address_the_key_or_the_server_is_wrong(status: int, value: object) -> None:
    with pytest.raises(NotPublished) as refused:
        await published(answer(status, value))
    assert refused.value.answer is None


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_json"), (413, "body_too_large"), (422, "wrong_type")]
)
async def test_a_request_that_is_refused_for_its_content_says_so(status: int, code: str) -> None:
    with pytest.raises(NotPublished) as refused:
        await published(answer(status, problem(status, code)))
    assert refused.value.answer is not None and refused.value.answer.is_final


async def test_a_line_that_is_full_for_all_tenants_of_a_request_rests_them_and_nobody_else() -> None:
    full = answer(429, problem(429, "tenant_overloaded"))
    assert await published(full) == [RowAnswer(429, "tenant_overloaded", "why")]


async def test_a_proxy_that_takes_no_large_request_may_take_half_of_it() -> None:
    with fake_api(**{"POST /v1/events/batch": answer(413)}) as api:
        async with AsyncClient(api.url, KEY, patience_s=0) as client:
            with pytest.raises(NotPublished) as refused:
                await OverHttp(client)([ROW, ROW])
    assert refused.value.answer is not None and refused.value.answer.is_final


async def test_an_answer_that_is_nested_too_deep_is_a_stranger_s() -> None:
    deep = b"[" * 200_000
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(deep), deep)
    with stand_in(reply) as server:
        async with AsyncClient(server.url, KEY, patience_s=0) as client:
            with pytest.raises(NotPublished, match="no surehook server gives"):
                await OverHttp(client)([ROW])
