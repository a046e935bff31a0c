"""Custom requests over real sockets: methods, fixed credentials, and OAuth2 against a token server of its own."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.e2e.calling import until
from tests.e2e.receivers import Reply, Seen, dead_url
from tests.e2e.shop import QUICK, Shop

SLOW = {"schedule": {"fixed": [30]}, "jitter": None}  # no second attempt while a test looks
SECRET = "hush hush&=%"


class TokenServer:
    """Client credentials for one client; tokens count up, and may be revoked."""

    def __init__(self, shop: Shop, **fields: Any) -> None:
        self.fields = {"token_type": "bearer", "expires_in": 3600, **fields}
        self.good: set[str] = set()
        self.reply: Reply | None = None  # instead of a token
        self._lock = threading.Lock()
        self._made = 0
        self.spot = shop.receiver.spot(rule=self._answer)

    @property
    def asked(self) -> int:
        return len(self.spot.seen)

    def _answer(self, seen: Seen) -> Reply:
        if self.reply is not None:
            return self.reply
        form = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        if seen.header("authorization") is not None:
            text = base64.b64decode(seen["authorization"].removeprefix("Basic ")).decode()
            name, secret = (parse_qs(f"x={part}")["x"][0] for part in text.split(":"))
        else:
            name, secret = form.get("client_id", ""), form.get("client_secret", "")
        if (name, secret, form.get("grant_type")) != ("me", SECRET, "client_credentials"):
            return Reply(401, (("www-authenticate", "Basic"),), b'{"error":"invalid_client"}')
        with self._lock:
            self._made += 1
            token = f"token-{self._made}"
            self.good.add(token)
        body = json.dumps({"access_token": token, "scope": form.get("scope"), **self.fields}).encode()
        return Reply(200, (("content-type", "application/json"),), body)

    def receives(self, seen: Seen) -> Reply:
        """A receiver that takes this server's tokens."""
        kind, _, token = (seen.header("authorization") or "").partition(" ")
        return Reply(200 if kind == "Bearer" and token in self.good else 401)

    def client(self, **fields: Any) -> dict[str, Any]:
        made = {"type": "oauth2", "token_url": self.spot.url, "client_id": "me", "client_secret": SECRET}
        return {**made, **fields}


def last(shop: Shop, event: str, *states: str) -> tuple[Any, list[Any]]:
    """The event's one delivery in one of the states, and its attempts."""
    delivery = shop.reaches(shop.delivery(event)["id"], *states)
    return delivery, shop.attempts(delivery["id"])


# -- fixed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_the_method_is_the_endpoints_own(shop: Shop, method: str) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot(503, 200)
    endpoint = shop.endpoint(tenant, spot.url, policy=QUICK, method=method)
    shop.finished(shop.publish(tenant))
    assert [seen.method for seen in spot.wait(2)] == [method, method]
    shop.api.post(f"/v1/endpoints/{endpoint['id']}/test")
    assert spot.wait(3)[2].method == method


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"type": "basic", "username": "jürgen", "password": "p:w"}, "authorization", "Basic asO8cmdlbjpwOnc="),
        ({"type": "bearer", "token": "a.b-c="}, "authorization", "Bearer a.b-c="),
        ({"type": "api_key", "header": "X-Api-Key", "value": "some key"}, "x-api-key", "some key"),
        ({"type": "api_key", "header": "Authorization", "value": "Key k"}, "authorization", "Key k"),
    ],
)  # fmt: skip
def test_fixed_credentials_are_on_every_request(shop: Shop, given: Any, name: str, value: str) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot(503, 200)
    endpoint = shop.endpoint(tenant, spot.url, policy=QUICK, authentication=given, headers={"x-own": "1"})
    shop.finished(shop.publish(tenant))
    shop.api.post(f"/v1/endpoints/{endpoint['id']}/test")
    assert [(seen[name], seen["x-own"]) for seen in spot.wait(3)] == [(value, "1")] * 3
    shop.api.patch(f"/v1/endpoints/{endpoint['id']}", {"authentication": None})
    shop.publish(tenant)
    assert spot.wait(4)[3].header(name) is None


def test_no_secret_is_in_the_log_or_in_an_answer(shop: Shop) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot(rule=server.receives)
    endpoint = shop.endpoint(tenant, spot.url, policy=QUICK, authentication=server.client())
    server.reply = Reply(401, (), SECRET.encode())  # one that says it aloud
    event = shop.publish(tenant)
    _, attempts = last(shop, event, "dead")
    assert len(attempts) == 4 and '"token.failed"' in shop.log
    shown = [json.dumps(attempts), json.dumps(shop.api.get(f"/v1/endpoints/{endpoint['id']}")), shop.log]
    assert not any("hush" in text for text in shown)


# -- OAuth2 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["basic", "body"])
def test_a_token_is_fetched_once_and_sent_with_every_request(shop: Shop, style: str) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot(rule=server.receives)
    client = server.client(style=style, scopes=["hooks:write", "x"], audience="https://api.example/")
    endpoint = shop.endpoint(tenant, spot.url, policy=QUICK, authentication=client)
    events = [shop.publish(tenant) for _ in range(20)]
    for event in events:
        assert shop.finished(event)["state"] == "delivered"
    again = shop.api.post(f"/v1/deliveries/{shop.delivery(events[0])['id']}/resend", status=201)
    assert shop.reaches(again["id"], "delivered")
    assert shop.api.post(f"/v1/endpoints/{endpoint['id']}/test")["outcome"] == "delivered"
    form = parse_qs(server.spot.one().body.decode())
    assert form["scope"] == ["hooks:write x"] and form["audience"] == ["https://api.example/"]
    assert ("client_secret" in form) == (style == "body")
    assert {seen["authorization"] for seen in spot.wait(22)} == {"Bearer token-1"}


def test_a_wrong_secret_sends_nothing_until_it_is_mended(shop: Shop) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot(rule=server.receives)
    policy = {"schedule": {"fixed": [0.2, 0.2, 3]}, "jitter": None}
    endpoint = shop.endpoint(
        tenant, spot.url, policy=policy, authentication=server.client(client_secret="no")
    )
    event = shop.publish(tenant)
    delivery = shop.delivery(event)["id"]
    until(lambda: len(shop.attempts(delivery)) == 3, "three attempts without a token")
    for attempt in shop.attempts(delivery):
        assert (attempt["outcome"], attempt["error"], attempt["status"]) == (
            "unreachable",
            "token_refused",
            None,
        )
        assert attempt["hint"] and not attempt["unknown"] and attempt["address"] is None
    assert not spot.seen
    tested = shop.api.post(f"/v1/endpoints/{endpoint['id']}/test")
    assert (tested["outcome"], tested["error"]) == ("unreachable", "token_refused")
    shop.api.patch(f"/v1/endpoints/{endpoint['id']}", {"authentication": server.client()})
    assert shop.reaches(delivery, "delivered")


def test_a_slow_token_server_costs_the_attempt_its_time_and_no_more(shop: Shop) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot(rule=server.receives)
    policy = {**SLOW, "timeouts": {"first": 0.5, "retry": 0.5}}
    server.reply = Reply(hang=True)
    shop.endpoint(tenant, spot.url, policy=policy, authentication=server.client())
    other = shop.endpoint(tenant, shop.receiver.spot().url, policy=policy)
    event = shop.publish(tenant)
    for delivery in shop.deliveries(event):
        if delivery["endpoint"] == other["id"]:
            assert shop.reaches(delivery["id"], "delivered", seconds=2.0)
            continue
        shop.reaches(delivery["id"], "retrying")
        (attempt,) = shop.attempts(delivery["id"])
        assert (attempt["outcome"], attempt["error"]) == ("unreachable", "token_timeout")
        assert 450 <= attempt["timings_ms"]["total"] <= 1500
    assert not spot.seen


def test_a_token_is_replaced_when_it_expires(shop: Shop) -> None:
    server = TokenServer(shop, expires_in=1)
    tenant, spot = shop.tenant(), shop.receiver.spot(rule=server.receives)
    shop.endpoint(tenant, spot.url, policy=QUICK, authentication=server.client())

    def another() -> bool:
        assert shop.finished(shop.publish(tenant))["state"] == "delivered"
        return server.asked >= 3

    until(another, "a third token", 15.0)
    assert {"Bearer token-1", "Bearer token-2"} <= {seen["authorization"] for seen in spot.seen}
    assert len(spot.seen) > server.asked, "most requests went with a token that was there"


def test_after_a_revocation_the_next_attempt_has_a_new_token(shop: Shop) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot(rule=server.receives)
    shop.endpoint(tenant, spot.url, policy=QUICK, authentication=server.client())
    assert shop.finished(shop.publish(tenant))["state"] == "delivered"
    server.good.clear()
    delivery, attempts = last(shop, shop.publish(tenant), "delivered", "dead")
    assert delivery["state"] == "delivered"
    assert [(attempt["outcome"], attempt["status"]) for attempt in attempts] == [
        ("refused", 401),
        ("delivered", 200),
    ]
    assert [seen["authorization"] for seen in spot.seen] == [
        "Bearer token-1",
        "Bearer token-1",
        "Bearer token-2",
    ]
    assert server.asked == 2


HOSTILE: dict[str, tuple[Reply, str]] = {
    "garbage": (Reply(200, (), b"<html>hello</html>"), "token_unusable"),
    "half": (Reply(200, (), b'{"access_token": "a'), "token_unusable"),
    "a megabyte": (Reply(200, (), b'{"x":"' + b"a" * 1_000_000 + b'","access_token":"a","token_type":"bearer"}'), "token_unusable"),
    "a header in a token": (Reply(200, (), b'{"access_token":"a\\r\\nx-evil: 1","token_type":"bearer"}'), "token_unusable"),
    "another kind": (Reply(200, (), b'{"access_token":"a","token_type":"mac"}'), "token_unusable"),
    "a redirect": (Reply(307, (("location", "http://127.0.0.1:1/"),)), "token_redirected"),
    "an error": (Reply(503), "token_failed"),
    "silence": (Reply(drop=True), "token_unreachable"),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "error"), HOSTILE.values(), ids=HOSTILE)
def test_a_token_server_that_says_something_else_is_named(shop: Shop, reply: Reply, error: str) -> None:
    server = TokenServer(shop)
    server.reply = reply
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url, policy=SLOW, authentication=server.client())
    delivery, (attempt,) = last(shop, shop.publish(tenant), "retrying")
    assert (delivery["outcome"], attempt["error"]) == ("unreachable", error)
    assert server.asked == 1 and not spot.seen


def test_a_token_server_that_is_not_there_is_named(shop: Shop) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url, policy=SLOW, authentication=server.client(token_url=dead_url()))
    _, (attempt,) = last(shop, shop.publish(tenant), "retrying")
    assert (attempt["outcome"], attempt["error"]) == ("unreachable", "token_unreachable")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://10.0.0.7/token", "address_forbidden"),
        ("http://169.254.169.254/latest", "address_forbidden"),
        ("http://[::ffff:10.0.0.7]/token", "address_forbidden"),
        ("ftp://127.0.0.1/token", "url_scheme"),
        ("http://me:secret@127.0.0.1/token", "url_userinfo"),
        ("http://127.1/token", "url_host_ambiguous"),
    ],
)
def test_a_token_url_is_judged_like_any_url(shop: Shop, url: str, code: str) -> None:
    server = TokenServer(shop)
    tenant, spot = shop.tenant(), shop.receiver.spot()
    asked = {
        "tenant": tenant,
        "url": spot.url,
        "event_types": ["*"],
        "authentication": server.client(token_url=url),
    }
    problem = shop.api.refused("POST", "/v1/endpoints", asked)
    assert (problem["status"], problem["code"], problem["field"]) == (422, code, "authentication.token_url")
    endpoint = shop.endpoint(tenant, spot.url)
    change = {"authentication": asked["authentication"]}
    assert shop.api.refused("PATCH", f"/v1/endpoints/{endpoint['id']}", change)["code"] == code


def test_a_token_url_that_todays_rules_refuse_is_never_called(tmp_path: Path) -> None:
    before = Shop(tmp_path)
    server = TokenServer(before)
    elsewhere = server.spot.url.replace("127.0.0.1", "127.0.0.2")
    after = Shop(tmp_path, SUREHOOK_ALLOW_NETWORKS="127.0.0.1/32")
    try:
        before.start()
        tenant, spot = before.tenant(), before.receiver.spot()
        endpoint = before.endpoint(
            tenant, spot.url, policy=SLOW, authentication=server.client(token_url=elsewhere)
        )
        before.server.stop()
        after.start()
        delivery, (attempt,) = last(after, after.publish(tenant), "retrying")
        assert (delivery["outcome"], attempt["error"]) == ("blocked", "token_forbidden")
        (notice,) = after.notices(tenant, "endpoint.blocked")
        assert (notice["endpoint"], notice["detail"]) == (endpoint["id"], "token_forbidden")
        assert not server.asked and not spot.seen
    finally:
        after.close()
        before.close()
