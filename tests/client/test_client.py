"""Both clients keep the same rules: the cases run over the sync one and over its async twin."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from surehook.api.examples import ANSWERS
from surehook.client import AsyncClient, Client, Refused, Sent, Unreachable
from surehook.core import ids
from surehook.core.answers import DeliveryOut, EndpointOut
from tests.client.stand_in import Heard, answer, stand_in

ACCEPTED = answer(202, {"id": "evt_1", "deliveries": 2})
BUSY = answer(503, {"code": "overloaded", "detail": "The line is full."}, retry_after="3")
PROBLEM = answer(
    422, {"code": "unknown_tenant", "detail": "No such tenant.", "field": "tenant", "hint": "create it"}
)


class SyncTwin:
    """Calls a Client's methods; sleeps are noted, not slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def make(self, url: str, key: str | None = None, **options: Any) -> None:
        self.now = 0.0
        self._client = Client(
            url, key, sleep=self._sleep, monotonic=lambda: self.now, chance=bytes, **options
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def let_the_end_arrive(self) -> None:
        """The end of a loopback connection is there when `shutdown` returns."""

    def do(self, act: Callable[[Any], Any]) -> Any:
        result = act(self._client)
        return list(result) if inspect.isgenerator(result) else result

    def close(self) -> None:
        self._client.close()


class AsyncTwin(SyncTwin):
    """The same on an event loop of its own."""

    def make(self, url: str, key: str | None = None, **options: Any) -> None:
        self.now = 0.0
        self._loop = asyncio.new_event_loop()

        async def sleep(seconds: float) -> None:
            self._sleep(seconds)

        self._async = AsyncClient(url, key, sleep=sleep, monotonic=lambda: self.now, chance=bytes, **options)

    def let_the_end_arrive(self) -> None:
        """A loop reads it in its next turn."""
        self._loop.run_until_complete(asyncio.sleep(0.01))

    def do(self, act: Callable[[Any], Any]) -> Any:
        async def run() -> Any:
            result = act(self._async)
            return [entry async for entry in result] if inspect.isasyncgen(result) else await result

        return self._loop.run_until_complete(run())

    def close(self) -> None:
        async def end() -> None:
            await self._async.close()
            await asyncio.sleep(0)  # closed transports say so in the next turn

        self._loop.run_until_complete(end())
        self._loop.close()


@pytest.fixture(params=[SyncTwin, AsyncTwin])
def twin(request: pytest.FixtureRequest) -> Any:
    twin = request.param()
    yield twin
    twin.close()


def send(client: Any, **fields: Any) -> Any:
    return client.send("document.signed", {"document_id": "doc_1"}, tenant="acme", **fields)


def test_an_event_is_sent_with_the_key_of_the_caller(twin: Any) -> None:
    with stand_in(ACCEPTED) as server:
        twin.make(server.url, "secret")
        assert twin.do(lambda c: send(c, key="doc_1:signed", subject="doc_1")) == Sent("evt_1", 2)
    (heard,) = server.heard
    assert (heard.method, heard.target) == ("POST", "/v1/events")
    assert heard.headers["authorization"] == "Bearer secret"
    assert heard.headers["idempotency-key"] == "doc_1:signed"
    assert heard.json == {
        "tenant": "acme",
        "type": "document.signed",
        "subject": "doc_1",
        "data": {"document_id": "doc_1"},
    }


def test_an_event_without_a_key_gets_its_own_id(twin: Any) -> None:
    with stand_in(ACCEPTED) as server:
        twin.make(server.url)
        twin.do(send)
    (heard,) = server.heard
    assert ids.is_uuid7(ids.parse(ids.EVENT, heard.json["id"]))
    assert "idempotency-key" not in heard.headers
    assert "authorization" not in heard.headers


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_in_json_is_refused_before_it_is_sent(twin: Any, number: float) -> None:
    with stand_in(ACCEPTED) as server:
        twin.make(server.url)
        for data in ({"x": number}, [[number, None]], number):
            with pytest.raises(ValueError, match="NaN"):
                twin.do(lambda c, data=data: c.send("a", data, tenant="t"))
            with pytest.raises(ValueError, match="NaN"):
                twin.do(lambda c, data=data: c.send_batch([{"type": "a", "tenant": "t", "data": data}]))
        assert server.heard == []
        twin.do(lambda c: c.send("a", {"x": None, "y": 1.5, "z": b"null", "n": Raw(b"null")}, tenant="t"))
        assert server.heard[-1].json["data"] == {"x": None, "y": 1.5, "z": "bnVsbA==", "n": None}


def test_bytes_of_data_travel_as_they_are(twin: Any) -> None:
    with stand_in(ACCEPTED) as server:
        twin.make(server.url)
        twin.do(lambda c: c.send("a", b'{"n": 1.10}', tenant="t"))
    assert b'"data":{"n": 1.10}' in server.heard[0].body


def test_a_connection_is_used_again(twin: Any) -> None:
    with stand_in(ACCEPTED) as server:
        twin.make(server.url)
        for _ in range(3):
            twin.do(send)
    assert (len(server.heard), server.connections) == (3, 1)


def test_a_kept_connection_that_the_server_closed_is_replaced_without_a_wait(twin: Any) -> None:
    with stand_in(ACCEPTED) as server:
        twin.make(server.url)
        twin.do(send)
        server.hang_up()
        twin.do(send)
    assert server.connections == 2
    assert twin.slept == []


def test_a_connection_closed_while_idle_is_noticed_before_an_unrepeatable_request(twin: Any) -> None:
    with stand_in(answer(201, ANSWERS["Endpoint"])) as server:
        twin.make(server.url, patience_s=0)
        for _ in range(3):
            twin.do(lambda c: c.endpoints.create(tenant="acme", url="https://x", event_types=["*"]))
            server.hang_up()
            twin.let_the_end_arrive()
    assert len(server.heard) == 3


def test_an_event_whose_answer_was_lost_is_sent_again_unchanged(twin: Any) -> None:
    with stand_in(None, None, ACCEPTED) as server:
        twin.make(server.url)
        assert twin.do(send) == Sent("evt_1", 2)
    assert len({heard.body for heard in server.heard}) == 1
    assert len(server.heard) == 3
    assert twin.slept == [0.05, 0.1]


def test_a_request_that_is_not_safe_to_repeat_is_not_repeated(twin: Any) -> None:
    with stand_in(None, answer(201, {})) as server:
        twin.make(server.url)
        with pytest.raises(Unreachable) as caught:
            twin.do(lambda c: c.endpoints.create(tenant="acme", url="https://x", event_types=["*"]))
    assert caught.value.maybe_done
    assert len(server.heard) == 1


def test_a_busy_server_is_asked_again_when_it_said(twin: Any) -> None:
    with stand_in(BUSY, ACCEPTED) as server:
        twin.make(server.url)
        assert twin.do(send) == Sent("evt_1", 2)
    assert twin.slept == [3.0]


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_proxy_without_its_server_is_asked_again(twin: Any, status: int) -> None:
    with stand_in(answer(status), answer(status), ACCEPTED) as server:
        twin.make(server.url)
        assert twin.do(send) == Sent("evt_1", 2)
    assert twin.slept == [0.05, 0.1]
    assert len({heard.body for heard in server.heard}) == 1


@pytest.mark.parametrize(
    "reply", [answer(502), answer(503, {"code": "outcome_unknown", "detail": "nobody knows"})]
)
def test_a_change_that_may_have_been_done_is_not_asked_for_again(twin: Any, reply: bytes) -> None:
    with stand_in(reply, answer(201, ANSWERS["Endpoint"])) as server:
        twin.make(server.url)
        with pytest.raises(Refused):
            twin.do(lambda c: c.endpoints.create(tenant="acme", url="https://x", event_types=["*"]))
    assert len(server.heard) == 1


def test_a_request_that_came_too_slowly_to_be_read_is_sent_again(twin: Any) -> None:
    slow = answer(408, {"code": "request_timeout", "detail": "The body comes too slowly."})
    with stand_in(slow, ACCEPTED) as server:
        twin.make(server.url)
        assert twin.do(send) == Sent("evt_1", 2)


def test_patience_ends(twin: Any) -> None:
    with stand_in(BUSY) as server:
        twin.make(server.url, patience_s=7)
        with pytest.raises(Refused) as caught:
            twin.do(send)
    assert caught.value.code == "overloaded"
    assert twin.slept == [3.0, 3.0]


def test_a_try_that_may_have_been_done_is_not_forgotten_for_a_refusal_that_came_later(twin: Any) -> None:
    """The last word is about the last try alone: whoever heard nothing else would publish the event as another one."""
    doubtful = answer(503, {"code": "outcome_unknown", "detail": "nobody knows"}, retry_after="1")
    away = answer(503, {"code": "ledger_unavailable", "detail": "not accepted"}, retry_after="3")
    with stand_in(doubtful, *[away] * 9) as server:
        twin.make(server.url, patience_s=7)
        with pytest.raises(Refused) as caught:
            twin.do(send)
    assert caught.value.code == "outcome_unknown"
    assert len(server.heard) == 4


def test_a_refusal_carries_the_problem(twin: Any) -> None:
    with stand_in(PROBLEM) as server:
        twin.make(server.url)
        with pytest.raises(Refused) as caught:
            twin.do(send)
    error = caught.value
    assert (error.status, error.code, error.field, error.hint) == (
        422,
        "unknown_tenant",
        "tenant",
        "create it",
    )
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 404 X\r\ncontent-length: 6\r\n\r\n<html>", answer(404, ["x"]), answer(404, {"a": 1})]
)
def test_another_program_on_the_port_is_told_from_a_refusal(twin: Any, reply: bytes) -> None:
    with stand_in(reply) as server:
        twin.make(server.url)
        with pytest.raises(Refused, match="no surehook server gives"):
            twin.do(send)


def test_no_server_is_unreachable_and_nothing_was_done(twin: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    twin.make(url, patience_s=0)
    with pytest.raises(Unreachable, match="connection refused") as caught:
        twin.do(send)
    assert not caught.value.maybe_done


def test_a_silent_server_is_given_up_after_the_timeout(twin: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        twin.make(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.05, patience_s=0)
        with pytest.raises(Unreachable, match=r"no answer from \S+ within 0\.05 s") as caught:
            twin.do(send)
    assert caught.value.maybe_done


def test_something_that_is_not_http_is_said_to_be_so(twin: Any) -> None:
    with stand_in(b"SSH-2.0-OpenSSH_9.2\r\ncontent-length\r\n") as server:
        twin.make(server.url, patience_s=0)
        with pytest.raises(Unreachable, match="the answer is not HTTP"):
            twin.do(send)


def test_an_address_that_is_no_address_is_a_value_error(twin: Any) -> None:
    for url in ("localhost:8080", "ftp://h", "http://"):
        with pytest.raises(ValueError, match="is not an http"):
            Client(url)
    twin.make("http://127.0.0.1:9")


def test_a_batch_is_answered_event_by_event(twin: Any) -> None:
    reply = answer(
        202, [{"id": "evt_1", "deliveries": 1}, {"code": "bad_type", "detail": "No.", "status": 422}]
    )
    with stand_in(reply) as server:
        twin.make(server.url)
        good, bad = twin.do(
            lambda c: c.send_batch(
                [{"tenant": "t", "type": "a", "data": 1}, {"type": "", "idempotency_key": "k"}]
            )
        )
    assert good == Sent("evt_1", 1)
    assert isinstance(bad, Refused)
    first, second = server.heard[0].json
    assert "id" in first
    assert "id" not in second


def test_a_long_batch_is_cut_at_the_bound_of_the_server(twin: Any) -> None:
    def each(heard: Heard) -> bytes:
        return answer(202, [{"id": "evt_1", "deliveries": 0}] * len(heard.json))

    with stand_in(each) as server:
        twin.make(server.url)
        answers = twin.do(
            lambda c: c.send_batch({"tenant": "t", "type": "a", "data": n} for n in range(2500))
        )
    assert [len(heard.json) for heard in server.heard] == [1000, 1000, 500]
    assert len(answers) == 2500


def test_a_list_is_read_page_by_page(twin: Any) -> None:
    pages = [answer(200, {"data": [1, 2], "next": "c1"}), answer(200, {"data": [3], "next": None})]
    with stand_in(*pages) as server:
        twin.make(server.url)
        assert twin.do(lambda c: c.pages("/v1/deliveries", {"tenant": "a b", "state": None})) == [1, 2, 3]
    assert [heard.target for heard in server.heard] == [
        "/v1/deliveries?limit=200&tenant=a+b",
        "/v1/deliveries?limit=200&tenant=a+b&cursor=c1",
    ]


def test_every_verb_of_a_noun_reaches_its_path(twin: Any) -> None:
    endpoint, delivery = answer(200, ANSWERS["Endpoint"]), answer(200, ANSWERS["Delivery"])
    with stand_in(endpoint, endpoint, delivery, answer(204, None)) as server:
        twin.make(server.url + "/base/")
        assert isinstance(twin.do(lambda c: c.endpoints.get("a/b")), EndpointOut)
        twin.do(lambda c: c.endpoints.update("ep_1", status="paused"))
        assert isinstance(twin.do(lambda c: c.deliveries.resend("dlv_1")), DeliveryOut)
        assert twin.do(lambda c: c.endpoints.delete("ep_1")) is None
    assert [(h.method, h.target, h.body) for h in server.heard] == [
        ("GET", "/base/v1/endpoints/a%2Fb", b""),
        ("PATCH", "/base/v1/endpoints/ep_1", b'{"status":"paused"}'),
        ("POST", "/base/v1/deliveries/dlv_1/resend", b""),
        ("DELETE", "/base/v1/endpoints/ep_1", b""),
    ]


def test_the_twins_have_the_same_names() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(Client) == names(AsyncClient)
    assert vars(Client("http://h")).keys() - {"_wire"} == vars(AsyncClient("http://h")).keys() - {"_wire"}


def test_requests_beyond_the_bound_wait_their_turn() -> None:
    async def main(url: str) -> None:
        async with AsyncClient(url, connections=2) as client:
            await asyncio.gather(*(send(client) for _ in range(10)))
        await asyncio.sleep(0)

    with stand_in(ACCEPTED) as server:
        asyncio.run(main(server.url))
    assert len(server.heard) == 10
    assert server.connections <= 2


def test_a_list_that_never_ends_is_no_list_of_ours(twin: Any) -> None:
    with stand_in(answer(200, {"data": [], "next": "c1"})) as server:
        twin.make(server.url)
        with pytest.raises(Refused, match="no surehook server gives"):
            twin.do(lambda c: c.pages("/v1/deliveries"))
    assert len(server.heard) == 2


@pytest.mark.parametrize("wish", ["\xb2", "1e400", "9" * 400, "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wish_for_a_pause_that_is_no_number_is_passed_over(twin: Any, wish: str) -> None:
    busy = answer(503, {"code": "overloaded", "detail": "full"}).replace(
        b"content-type", b"retry-after: " + wish.encode("latin-1") + b"\r\ncontent-type"
    )
    with stand_in(busy, ACCEPTED) as server:
        twin.make(server.url)
        assert twin.do(send) == Sent("evt_1", 2)
    assert twin.slept == [0.05]


# Its connections of the first loop are the collector's, who warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_serves_one_loop_after_another() -> None:
    with stand_in(ACCEPTED) as server:
        client = AsyncClient(server.url)
        for _ in range(2):
            assert asyncio.run(send(client)) == Sent("evt_1", 2)
