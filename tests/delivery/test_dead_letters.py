"""What a dead letter keeps of its last request: as it was sent, without what is secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surehook.core import ids
from surehook.core.authentication import Authentication, Bearer, ClientCredentials, KeyHeader
from surehook.core.model import Endpoint
from surehook.delivery.heads import static_heads
from surehook.delivery.request import kept_of
from surehook.delivery.retry_end import end_pending_retries
from surehook.ports.reading import DeliveryView
from surehook.ports.transport import Answer, Request
from tests.delivery.house import Call, House, answers, in_house

A = "https://a.example/hook"
SECRET = "s3cret-of-theirs"
OWN = {"X-Region": SECRET}
LATER = "webhook-signature webhook-timestamp"  # the history has the instant
RETRIED: dict[str, Any] = {"profile": "yousign", "schedule": {"fixed": [1, 3600]}, "breaker": None}


def kept(view: DeliveryView) -> dict[str, str]:
    assert view.request_headers is not None
    assert SECRET.encode() not in view.request_headers
    found: dict[str, str] = json.loads(view.request_headers)
    return found


def told(call: Call, *, left_out: str = "webhook-signature") -> dict[str, str]:
    """What is to be kept of a call."""
    own = call.request.private.decode().lower().splitlines()
    private = {line.partition(": ")[0] for line in own}
    sent = {name.lower(): value for name, value in call.headers.items()}
    return {
        name: "•••" if name in private else value
        for name, value in sent.items()
        if name not in left_out.split()
    }


@pytest.mark.parametrize("shown", [None, Bearer(SECRET), KeyHeader("X-Customer", SECRET)])
def test_it_keeps_what_it_died_of(shown: Authentication | None) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(410)
        endpoint = await house.endpoint(A)
        await house.set(endpoint, headers=OWN, authentication=shown)
        await house.publish()
        await house.wait(1)
        (view,) = await house.deliveries()
        (call,) = house.receivers.calls
        assert kept(view) == told(call)
        assert {"webhook-id", "webhook-timestamp", "webhook-attempt", "content-type", "user-agent"} <= kept(
            view
        ).keys()
        assert kept(view)["x-region"] == "•••"

    in_house(story)


def test_a_change_while_it_is_under_way_does_not_change_what_was_sent() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(410, after=0.5)
        endpoint = await house.endpoint(A)
        await house.set(endpoint, headers=OWN, authentication=KeyHeader("X-Customer", SECRET))
        await house.publish()
        await house.wait(0.1)
        await house.set(endpoint, headers={"X-Other": "o"}, authentication=None)
        await house.wait(1)
        (view,) = await house.deliveries()
        assert kept(view) == told(house.receivers.calls[0])
        assert {"x-region", "x-customer"} <= kept(view).keys()

    in_house(story)


def test_one_whose_token_was_not_to_be_had_tells_of_no_credentials() -> None:
    async def story(house: House) -> None:
        token_url = "https://token.example/"
        house.receivers.scripts[token_url] = lambda call: (0.01, Answer(failure="connect_refused"))
        endpoint = await house.endpoint(A, policy={"profile": "standard", "schedule": {"fixed": []}})
        await house.set(endpoint, authentication=ClientCredentials(token_url, "me", SECRET))
        await house.publish()
        await house.wait(5)
        (view,) = await house.deliveries()
        assert view.state == "dead" and "authorization" not in kept(view)

    in_house(story)


def test_one_that_dies_of_its_age_tells_of_the_request_before() -> None:
    """In parking, where others end it; or in hand, when its next call would be too late."""

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        policy = {**RETRIED, "schedule": {"fixed": [1, 100]}, "max_age": 120}
        endpoint = await house.endpoint(A, policy=policy)
        await house.set(endpoint, headers=OWN)
        await house.publish()
        await house.wait(50)
        assert len(house.receivers.calls) == 2
        await house.set(endpoint, policy=json.dumps({**policy, "max_age": 60}).encode())
        await house.wait(200)
        (view,) = await house.deliveries()
        assert (view.state, view.attempts) == ("dead", 2)
        assert len(house.receivers.calls) == 2
        assert kept(view) == told(house.receivers.calls[-1], left_out=LATER)

    in_house(story)


def test_one_whose_retries_are_called_off_tells_of_the_request_before() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        endpoint = await house.endpoint(A, policy=RETRIED)
        await house.set(endpoint, headers=OWN, authentication=Bearer(SECRET))
        await house.publish()
        await house.wait(50)
        await house.set(endpoint, policy=json.dumps({**RETRIED, "auto_retry": False}).encode())
        await end_pending_retries(house.engine, endpoint=endpoint)
        (view,) = await house.deliveries()
        assert (view.state, view.attempts) == ("dead", 2)
        assert kept(view) == told(house.receivers.calls[-1], left_out=LATER)

    in_house(story)


def test_one_that_dies_of_its_age_alone_keeps_nothing() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(A, policy={"profile": "standard", "max_age": 60})
        route = house.route(endpoint)
        route.breaker.trip("failures", house.clock.now())
        await house.publish()
        await house.set(endpoint, policy=json.dumps({"profile": "standard", "max_age": 1}).encode())
        await house.wait(30)
        (view,) = await house.deliveries()
        assert (view.state, view.attempts) == ("dead", 0)
        assert view.request_headers is None

    in_house(story)


def test_the_most_that_is_kept_is_bounded() -> None:
    """By what an endpoint may send: twenty names of 64 characters, without their values."""
    headers = {f"x-{n:02}".ljust(64, "n"): "v" * 1_024 for n in range(20)}
    endpoint = Endpoint(
        bytes(16), "t" * 64, A, ("*",), None, "active", None, 0, "none", headers, None, 0, 0,
        authentication=KeyHeader("k" * 64, "v" * 4_096),
    )  # fmt: skip
    said, private = static_heads(endpoint)
    ours = b"".join(
        b"%b: %b\r\n" % (name, ids.text(ids.DELIVERY, bytes(16)).encode())
        for name in (b"webhook-id", b"webhook-delivery-id", b"n" * 64, b"m" * 64)
    )
    key_ids = b" ".join([ids.text(ids.SECRET, bytes(16)).encode()] * 32)
    target: Any = None
    request = Request(
        target=target, body=b"", timeout_s=1, connect_timeout_s=1, private=private,
        headers=b"%b%bwebhook-key-id: %b\r\ntraceparent: %b\r\n" % (said, ours, key_ids, b"0" * 55),
    )  # fmt: skip
    assert len(kept_of(request)) < 4_096
