"""The hot door over a whole engine: who may pass, and what an event's type has to say."""

from __future__ import annotations

import asyncio
import json
import mmap
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from surehook.api.auth import KeyRing
from surehook.api.ingest import Ingest, _body
from surehook.api.turns import TurnScheduler
from surehook.api.turnstile import REST_S
from surehook.core import limits
from surehook.core.errors import CommitUnknown, LedgerBroken, LedgerUnavailable
from surehook.core.model import EventType
from surehook.core.schema import Schema, compile_schema
from surehook.delivery import event_types
from surehook.delivery.chores import Chores
from tests.delivery.house import TENANT, House, in_house

KEY = "a-key-of-the-tests"
SCHEMA = {"properties": {"signer": {"properties": {"email": {"type": "string"}}}}}
GOOD, BAD = {"signer": {"email": "ada@example.org"}}, {"signer": {"email": 5}}


class Door:
    """`Ingest` in front of a house's engine; what is not ingest would be an error."""

    def __init__(self, house: House) -> None:
        self.house = house
        keys = KeyRing(house.ledger, own=[KEY])
        self.turns = TurnScheduler(house.engine.clock.boot)
        self._ingest = Ingest(
            self._elsewhere, engine=house.engine, keys=keys, refresh_keys=keys.load, turns=self.turns
        )
        self.scope: dict[str, Any] = {}
        self.elsewhere: dict[str, list[float]] = {}  # paths of other calls, and when each began

    async def _elsewhere(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["path"] in self.elsewhere, f"{scope['path']} left the door"
        self.elsewhere[scope["path"]].append(asyncio.get_running_loop().time())
        await send({"status": 200})
        await send({"body": b"null"})

    async def post(
        self,
        path: str,
        body: Any,
        *,
        query: str = "",
        key: str | None = KEY,
        parts: list[bytes] | None = None,
        **headers: str,
    ) -> tuple[int, Any]:
        lines = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
        lines += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self.scope = {
            "type": "http", "method": "POST", "path": path, "query_string": query.encode(), "headers": lines,
        }  # fmt: skip
        sent: list[Any] = []
        left = [] if parts is None else [*parts]

        async def receive() -> dict[str, Any]:
            if parts is not None:
                return {"type": "http.request", "body": left.pop(0), "more_body": len(left) > 0}
            return {"type": "http.request", "body": json.dumps(body).encode()}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._ingest(self.scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    async def one(self, data: Any = None, type: str = "doc.signed", **headers: str) -> tuple[int, Any]:
        return await self.post("/v1/events", {"tenant": TENANT, "type": type, "data": data}, **headers)

    async def batch(self, *items: dict[str, Any]) -> list[Any]:
        whole = [{"tenant": TENANT, "type": "doc.signed", "data": None, **item} for item in items]
        status, answers = await self.post("/v1/events/batch", whole)
        assert status == 202
        return list(answers)

    async def register(self, schema: Any, name: str = "doc.signed") -> Schema:
        compiled = compile_schema(json.dumps(schema).encode())
        await event_types.create(
            self.house.engine, name=name, description=None, schema=compiled, schema_version="1", policy=None
        )
        return compiled

    async def change(self, schema: Any) -> None:
        changes = {"schema": None if schema is None else compile_schema(json.dumps(schema).encode())}
        await event_types.change(self.house.engine, Chores(), "doc.signed", changes)


def at_the_door(story: Callable[[Door], Awaitable[None]]) -> None:
    async def inside(house: House) -> None:
        await story(Door(house))

    in_house(inside)


# -- who may pass -----------------------------------------------------------------------------------------


async def _raw(door: Door, path: str, lines: list[tuple[bytes, bytes]]) -> int:
    """The status of a call with these headers, whose body must not be asked for."""
    status: list[int] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body was asked for")

    async def send(message: Any) -> None:
        status.append(message.get("status", 0))

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": lines}
    await door._ingest(scope, receive, send)
    return status[0]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
@pytest.mark.parametrize("keys", [[KEY, KEY], ["wrong-key-of-the-tests", KEY], ["", KEY, KEY]])
def test_who_gives_two_keys_has_none(path: str, keys: list[str]) -> None:
    async def story(door: Door) -> None:
        lines = [(b"authorization", f"Bearer {key}".encode()) for key in keys]
        assert await _raw(door, path, lines) == 401

    at_the_door(story)


@pytest.mark.parametrize(("path", "length"), [("/v1/events", 262_145), ("/v1/events/batch", 8_388_609)])
def test_a_body_that_says_to_be_too_large_is_not_begun(path: str, length: int) -> None:
    async def story(door: Door) -> None:
        lines = [(b"content-length", b"%d" % length)]
        assert await _raw(door, path, lines) == 401
        lines += [(b"authorization", f"Bearer {KEY}".encode())]
        assert await _raw(door, path, lines) == 413

    at_the_door(story)


# -- schemas ----------------------------------------------------------------------------------------------


def test_an_event_that_is_not_as_its_schema_says_is_refused_and_not_kept() -> None:
    async def story(door: Door) -> None:
        await door.house.endpoint()
        await door.register(SCHEMA)
        status, problem = await door.one(BAD)
        assert (status, problem["code"], problem["field"]) == (422, "schema_mismatch", "data.signer.email")
        assert (await door.one(GOOD))[0] == 202
        assert (await door.one(BAD, type="doc.other"))[0] == 202
        await door.house.wait(1)
        assert [call.request.body.count(b"ada") for call in door.house.receivers.calls] == [1, 0]

    at_the_door(story)


def test_in_a_batch_each_bad_item_is_its_own_problem() -> None:
    async def story(door: Door) -> None:
        await door.register(SCHEMA)
        first, second, third = await door.batch({"data": BAD}, {"data": GOOD}, {"data": BAD})
        assert first["code"] == third["code"] == "schema_mismatch"
        assert first["field"] == "data.signer.email"
        assert second["id"].startswith("evt_")

    at_the_door(story)


def test_a_changed_schema_holds_for_the_next_event() -> None:
    async def story(door: Door) -> None:
        await door.register(SCHEMA)
        assert (await door.one(BAD))[0] == 422
        await door.change({"type": "object"})
        assert (await door.one(BAD))[0] == 202
        assert (await door.one([]))[0] == 422
        await door.change(None)
        assert (await door.one([]))[0] == 202

    at_the_door(story)


def test_the_version_that_an_event_names_chooses_its_schema() -> None:
    async def story(door: Door) -> None:
        await door.house.endpoint()
        engine, renamed = door.house.engine, {"type": "object", "required": ["document_id"]}
        new, any_of_it = compile_schema(json.dumps(renamed).encode()), compile_schema(b"{}")
        await door.register(SCHEMA)
        await event_types.change(engine, Chores(), "doc.signed", {"schemas": {"2": new, "0.9": any_of_it}})
        first, second, bare = (
            {"data": GOOD},
            {"data": {"document_id": "d"}, "schema_version": "2"},
            {"data": BAD},
        )
        assert all("id" in one for one in await door.batch(first, {**first, "schema_version": "1"}, second))
        assert all("id" in one for one in await door.batch({**bare, "schema_version": "0.9"}))
        mixed_up = await door.batch(
            bare,
            {**bare, "schema_version": "1"},
            {**first, "schema_version": "2"},
            {"data": {**BAD, "document_id": "d"}, "schema_version": "1"},
        )
        assert [one["field"] for one in mixed_up] == [
            "data.signer.email", "data.signer.email", "data.document_id", "data.signer.email",
        ]  # fmt: skip
        (unknown,) = await door.batch({**first, "schema_version": "3"})
        assert (unknown["code"], unknown["field"]) == ("unknown_schema_version", "schema_version")
        assert unknown["hint"] == "known: 0.9, 1, 2"
        await door.house.wait(1)
        sent = [json.loads(call.request.body)["schema_version"] for call in door.house.receivers.calls]
        assert sorted(sent) == ["0.9", "1", "1", "2"]
        await event_types.change(engine, Chores(), "doc.signed", {"schemas": None})
        (all_by_one,) = await door.batch({**first, "schema_version": "3"})
        assert "id" in all_by_one

    at_the_door(story)


def test_an_unknown_version_asks_the_book_before_it_is_refused() -> None:
    async def story(door: Door) -> None:
        await door.register(SCHEMA)
        await event_types.change(door.house.engine, Chores(), "doc.signed", {"schemas": {}})
        await door.house.ledger.change_event_type("doc.signed", {"schemas": b'{"2":{}}'})  # by another server
        (answer,) = await door.batch({"data": BAD, "schema_version": "2"})
        assert "id" in answer

    at_the_door(story)


def test_a_refusal_asks_the_book_before_it_believes_an_old_schema() -> None:
    async def story(door: Door) -> None:
        await door.register(SCHEMA)
        await door.house.ledger.change_event_type("doc.signed", {"schema": None})  # by another server
        assert (await door.one(BAD))[0] == 202
        await door.house.ledger.change_event_type("doc.signed", {"schema": json.dumps(SCHEMA).encode()})
        await door.house.engine.current()
        await door.house.ledger.change_event_type("doc.signed", {"schema": None})
        (answer,) = await door.batch({"data": BAD})
        assert "id" in answer

    at_the_door(story)


def test_a_schema_is_compiled_anew_only_where_its_bytes_are_others() -> None:
    async def story(door: Door) -> None:
        compiled = await door.register(SCHEMA)
        schemas = door.house.engine.directory.schemas
        assert schemas["doc.signed"].schema is compiled
        await door.house.endpoint()
        assert schemas["doc.signed"].schema is compiled
        await door.change({"type": "object"})
        assert schemas["doc.signed"].schema is not compiled
        await door.change(None)
        assert door.house.engine.directory.schemas == {}

    at_the_door(story)


def test_a_server_starts_over_a_book_with_an_unusable_schema_and_refuses_its_events() -> None:
    async def story(door: Door) -> None:
        bad = EventType("doc.signed", None, b'{"type":"text"}', "1", None, door.house.clock.now())
        await door.house.ledger.add_event_type(bad)
        await door.house.engine.current()
        status, problem = await door.one(GOOD)
        assert (status, problem["code"], problem["field"]) == (422, "invalid_schema", "type")
        assert (await door.one(GOOD, type="doc.other"))[0] == 202

    at_the_door(story)


# -- who may pass -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
@pytest.mark.parametrize("query", ["api_key=x", "Token=x", f"q={KEY}"])
@pytest.mark.parametrize("key", [KEY, None])
def test_a_key_in_the_query_string_is_a_401_and_leaves_the_logs(
    path: str, query: str, key: str | None
) -> None:
    async def story(door: Door) -> None:
        status, problem = await door.post(path, {}, query=query, key=key)
        assert (status, problem["code"]) == (401, "unauthorized")
        assert "query string" in problem["detail"] and KEY not in json.dumps(problem)
        assert door.scope["query_string"] == b"hidden"

    at_the_door(story)


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
def test_any_other_query_parameter_is_a_422_for_those_who_may_call(path: str) -> None:
    async def story(door: Door) -> None:
        assert (await door.post(path, {}, query="limit=1"))[1]["code"] == "unknown_parameter"
        assert (await door.post(path, {}, query="limit=1", key=None))[1]["code"] == "unauthorized"

    at_the_door(story)


# -- what an answer says ----------------------------------------------------------------------------------


def test_a_tenant_that_is_not_there_is_quoted_in_short() -> None:
    async def story(door: Door) -> None:
        status, problem = await door.post(
            "/v1/events", {"tenant": "\u202e" + "t" * 100_000, "type": "a", "data": 1}
        )
        assert (status, problem["code"]) == (422, "unknown_tenant")
        assert problem["detail"].isascii() and len(problem["detail"]) < 120

    at_the_door(story)


def test_a_conflict_names_the_key_where_it_was_given() -> None:
    async def story(door: Door) -> None:
        assert (await door.one(1, idempotency_key="k"))[0] == 202
        assert (await door.one(2, idempotency_key="k"))[1]["field"] == "Idempotency-Key"
        (answer,) = await door.batch({"data": 2, "idempotency_key": "k"})
        assert (answer["code"], answer["field"]) == ("idempotency_conflict", "idempotency_key")

    at_the_door(story)


def test_a_batch_answers_in_the_order_it_was_asked() -> None:
    async def story(door: Door) -> None:
        answers = await door.batch(
            {"data": 1, "idempotency_key": "a"}, {"tenant": "nobody"}, {"type": "no type"},
            {"data": 2, "idempotency_key": "a"}, {"data": 1, "idempotency_key": "a"},
        )  # fmt: skip
        told = [answer.get("code", "taken") for answer in answers]
        assert told == ["taken", "unknown_tenant", "invalid_event_type", "idempotency_conflict", "taken"]
        assert answers[0] == answers[4]

    at_the_door(story)


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (LedgerUnavailable("gone"), "ledger_unavailable", "not accepted"),
        (CommitUnknown("cut"), "outcome_unknown", "nobody knows whether it was accepted"),
        (LedgerBroken("EIO"), "outcome_unknown", "nobody knows whether it was accepted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_publisher_is_told_whether_the_event_may_have_been_accepted(
    error: Exception, code: str, detail: str
) -> None:
    async def story(house: House) -> None:
        door = Door(house)

        async def away(*anything: Any, **more: Any) -> Any:
            raise error

        house.ledger.accept = away  # type: ignore[method-assign]
        for status, problem in (
            await door.one(),
            await door.post("/v1/events/batch", [{"tenant": TENANT, "type": "doc.signed", "data": None}]),
        ):
            assert (status, problem["code"]) == (503, code)
            assert detail in problem["detail"] and "again" in problem["hint"]
            assert door.scope["surehook.ledger"] == str(error)

    in_house(story, stops=False)


# -- a crowd ------------------------------------------------------------------------------------------------


def test_other_calls_of_a_crowd_begin_apart_and_publishes_wait_for_none() -> None:
    async def story(door: Door) -> None:
        began = door.elsewhere["/v1/endpoints"] = []
        probed = door.elsewhere["/readyz"] = []
        crowd = [asyncio.ensure_future(door.post("/v1/endpoints", {})) for _ in range(20)]
        assert (await door.one())[0] == 202
        await door.post("/readyz", {})
        assert len(began) < 20 and len(probed) == 1
        await asyncio.gather(*crowd)
        assert all(later - earlier > 0.9 * REST_S for earlier, later in pairwise(began))

    at_the_door(story)


@pytest.mark.parametrize("size", [1, 10_000, 100_000])
def test_a_large_batch_is_the_same_however_its_bytes_come(size: int) -> None:
    async def story(door: Door) -> None:
        items = [{"tenant": TENANT, "type": "doc.signed", "data": "x" * 3_000}] * 100
        whole = json.dumps([*items, {"tenant": TENANT}, {**items[0], "data": "\ud800"}]).encode()
        few = [whole] if size == 1 else [whole[at : at + size] for at in range(0, len(whole), size)]
        status, answers = await door.post("/v1/events/batch", None, parts=few)
        assert status == 202
        assert [answer.get("deliveries") for answer in answers] == [0] * 100 + [None] * 2
        assert [answer["code"] for answer in answers[100:]] == ["missing_field", "bad_text"]
        status, answer = await door.post("/v1/events/batch", None, parts=[*few[:-1], few[-1][:-1]])
        assert (status, answer["code"]) == (422, "bad_text")
        status, answer = await door.post("/v1/events/batch", None, parts=few * 30)
        assert (status, answer["code"]) == (413, "body_too_large")

    at_the_door(story)


async def test_a_large_body_is_put_together_as_it_comes() -> None:
    """Not at its end, in one step of milliseconds."""
    parts = [bytes([number]) * 100_000 for number in range(20)]
    coming = iter([{"type": "http.request", "body": part, "more_body": True} for part in parts])

    async def receive() -> dict[str, Any]:
        return next(coming, {"type": "http.request"})

    body = await _body(receive, limits.BATCH_BODY_BYTES)
    assert isinstance(body, memoryview) and isinstance(body.obj, mmap.mmap)
    assert body == b"".join(parts)
