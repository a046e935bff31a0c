"""OAuth2 in virtual time: one fetch for many, nothing that hangs, every failure with its name."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from surehook.core.authentication import ClientCredentials
from surehook.delivery import testcall, tokens
from surehook.delivery.credential import Credential
from surehook.delivery.settings import EngineSettings
from surehook.delivery.tokens import Tokens
from surehook.ports.transport import Answer, Request
from tests.delivery.house import HANGS, REFUSES, Call, House, Script, in_house

A, B = "https://a.example/hook", "https://b.example/hook"
TOKEN_URL = "https://login.example/token"
CLIENT = ClientCredentials(TOKEN_URL, "me", "hush")
SHORT = {"profile": "standard", "schedule": {"fixed": [5, 5]}, "jitter": None, "breaker": None}


class TokenServer:
    """Hands out `t1`, `t2`, … and remembers nothing but how often it was asked."""

    def __init__(self, house: House, *, after: float = 0.1, **answer: Any) -> None:
        self.asked: list[Call] = []
        self.after = after
        self.fields: dict[str, Any] = {"token_type": "Bearer", "expires_in": 3600}
        self.answer = answer
        house.receivers.scripts[TOKEN_URL] = self

    def __call__(self, call: Call) -> tuple[float, Answer]:
        self.asked.append(call)
        if self.after >= call.timeout_s:
            return call.timeout_s, Answer(failure="timeout", unknown=True)
        if self.answer:
            return self.after, Answer(**self.answer)
        body = json.dumps({"access_token": f"t{len(self.asked)}", **self.fields}).encode()
        return self.after, Answer(status=200, body=body)


def wants(*good: str) -> Script:
    """A receiver that takes these tokens, and answers 401 to others."""

    def script(call: Call) -> tuple[float, Answer]:
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        return 0.01, Answer(status=200 if token in good else 401, total_us=10_000)

    return script


async def endpoint(
    house: House, url: str = A, *, policy: Any = SHORT, client: Any = CLIENT, **more: Any
) -> bytes:
    made = await house.endpoint(url, policy=policy)
    await house.set(made, authentication=client, **more)
    return made


async def entries(house: House) -> list[tuple[str | None, str | None]]:
    """Outcome and error of every attempt, delivery by delivery."""
    return [
        (entry.outcome, entry.error) for view in await house.deliveries() for entry in await house.story(view)
    ]


def tokens_of(calls: list[Call]) -> list[str]:
    return [call.headers["authorization"] for call in calls]


# -- defects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["a token that came", "no token in time", "an answer"])
def test_a_defect_in_what_the_transport_or_a_timer_calls_fails_the_engine(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were logged, and whoever waited for the token waited for ever, a slot in hand."""

    async def story(house: House) -> None:
        def defect(*anything: Any, **more: Any) -> None:
            raise ValueError("a defect")

        TokenServer(house, after=8 if where == "no token in time" else 0.1)
        await endpoint(house)
        step = {
            "a token that came": (Tokens, "_keep"),
            "no token in time": (Tokens, "left"),
            "an answer": (Credential, "answered"),
        }
        monkeypatch.setattr(*step[where], defect)
        await house.publish()
        await house.wait(9)
        assert house.engine.failure == "a defect"
        assert "loop.failed" in house.facts.names

    in_house(story, stops=False)


# -- the way it should go -----------------------------------------------------------------------------------


def test_a_burst_waits_for_one_fetch_and_leaves_with_its_token() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        await endpoint(house)
        await house.publish(50)
        await house.wait(1)
        assert len(server.asked) == 1
        assert tokens_of(house.receivers.at(A)) == ["Bearer t1"] * 50
        assert await house.states() == {"delivered": 50}

    in_house(story)


def test_the_request_for_a_token_is_what_the_standard_says() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        await endpoint(house)
        await house.publish()
        await house.wait(1)
        (call,) = server.asked
        assert call.request.method == b"POST" and call.request.body == b"grant_type=client_credentials"
        assert call.headers["content-type"] == "application/x-www-form-urlencoded"
        assert b64decode(call.headers["authorization"].removeprefix("Basic ")) == b"me:hush"
        assert call.request.redirects == 0 and call.timeout_s == tokens.FETCH_S
        assert not any(name.startswith("webhook-") for name in call.headers)

    in_house(story)


def test_endpoints_of_a_tenant_share_the_token_of_a_credential() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        await endpoint(house, A)
        await endpoint(house, B)
        await house.publish(3)
        await house.wait(1)
        assert len(server.asked) == 1
        assert tokens_of(house.receivers.calls[1:]) == ["Bearer t1"] * 6
        await endpoint(house, "https://c.example/", client=ClientCredentials(TOKEN_URL, "other", "hush"))
        await house.publish()
        await house.wait(1)
        assert len(server.asked) == 2

    in_house(story)


def test_a_token_is_fetched_anew_when_its_life_is_over() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=0.0)
        server.fields["expires_in"] = 100  # used for 90 s
        await endpoint(house)
        for wait_s in (1, 88, 2, 1):
            await house.publish()
            await house.wait(wait_s)
        assert [token[-2:] for token in tokens_of(house.receivers.at(A))] == ["t1", "t1", "t1", "t2"]
        assert len(server.asked) == 2

    in_house(story)


def test_an_endpoint_without_oauth2_never_meets_the_token_server() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        made = await house.endpoint()
        await house.publish()
        await house.wait(1)
        assert house.route(made).credential is None and not server.asked
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_a_test_call_takes_the_same_way() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        made = await endpoint(house)
        attempt = await testcall.call(house.engine, made)
        assert (attempt.outcome, attempt.status) == ("delivered", 200)
        assert attempt.total_us is not None and attempt.total_us >= 100_000, "the wait for the token counts"
        assert tokens_of(house.receivers.at(A)) == ["Bearer t1"]
        server.answer = {"status": 401}
        house.route(made).credential.token = None
        attempt = await testcall.call(house.engine, made)
        assert (attempt.outcome, attempt.error, attempt.status) == ("unreachable", "token_refused", None)
        assert len(house.receivers.at(A)) == 1

    in_house(story)


# -- 401 ----------------------------------------------------------------------------------------------------


def test_a_token_that_was_revoked_is_thrown_away_once_for_all_that_had_it() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=0.0)
        await endpoint(house)
        house.receivers.scripts[A] = wants("t1")
        await house.publish()
        await house.wait(1)
        house.receivers.scripts[A] = wants("t2")
        await house.publish(20)
        await house.wait(1)
        assert len(server.asked) == 1, "the deliveries follow their policy: nothing is sent again at once"
        assert (await entries(house)).count(("refused", None)) == 20
        await house.wait(5)
        assert len(server.asked) == 2
        assert await house.states() == {"delivered": 21}

    in_house(story)


def test_an_endpoint_that_takes_no_token_does_not_have_one_fetched_each_time() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=0.0)
        await endpoint(house)
        house.receivers.scripts[A] = wants()
        for _ in range(30):
            await house.publish()
            await house.wait(1)
        assert len(server.asked) == 2, "one that was new, one that was fetched after its 401"
        await house.wait(60)
        await house.publish()
        await house.wait(1)
        assert len(server.asked) == 3

    in_house(story)


# -- failures -----------------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    "refused": ({"status": 401, "body": b'{"error":"invalid_client"}'}, "unreachable", "token_refused"),
    "down": ({"failure": "connect_refused"}, "unreachable", "token_unreachable"),
    "broken": ({"status": 503}, "unreachable", "token_failed"),
    "moved": (
        {"status": 302, "headers": b"location: https://b.example/\r\n"},
        "unreachable",
        "token_redirected",
    ),
    "garbage": ({"status": 200, "body": b"<html>"}, "unreachable", "token_unusable"),
    "cut": ({"status": 200, "body": b'{"access_token"', "truncated": True}, "unreachable", "token_unusable"),
    "private": ({"failure": "address_forbidden"}, "blocked", "token_forbidden"),
}


@pytest.mark.parametrize(("answer", "outcome", "error"), FAILURES.values(), ids=FAILURES)
def test_without_a_token_nothing_is_sent_and_the_retry_says_why(
    answer: Any, outcome: str, error: str
) -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=0.0, **answer)
        await endpoint(house)
        await house.publish()
        await house.wait(1)
        assert await entries(house) == [(outcome, error)]
        assert await house.states() == {"retrying": 1} and not house.receivers.at(A)
        server.answer = {}
        await house.wait(5)
        assert await house.states() == {"delivered": 1}
        assert "token.failed" in house.facts.names

    in_house(story)


def test_a_line_behind_a_failed_fetch_moves_on_with_its_answer() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=0.5, status=401)
        await endpoint(house)
        await house.publish(200)
        await house.wait(1)
        assert len(server.asked) == 1
        assert await entries(house) == [("unreachable", "token_refused")] * 200
        await house.wait(30)
        assert await house.states() == {"dead": 200}, "every retry is in the history, none is spent silently"
        assert len(await entries(house)) == 600
        assert len(server.asked) <= 4

    in_house(story)


def test_a_token_server_that_hangs_costs_one_slot_and_holds_up_nobody_else() -> None:
    async def story(house: House) -> None:
        TokenServer(house, after=1e9)
        await endpoint(house, A)
        await house.publish(40)
        await house.endpoint(B, policy=SHORT)
        await house.publish(40)
        await house.wait(0.3)
        assert len(house.receivers.at(B)) == 40
        assert house.engine.dispatch.in_flight() == {"first": 1, "retry": 0}
        await house.wait(60)
        assert house.engine.dispatch.memory.held == 0, "nothing hangs"
        assert set(await entries(house)) == {
            ("delivered", None),
            ("unreachable", "token_timeout"),
        }

    in_house(story, settings=EngineSettings(slots_first=4, slots_retry=4))


def test_an_attempt_ends_in_its_own_time_however_slow_the_token_server_is() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=3.0)  # longer than the first lane's timeout of 2 s
        await endpoint(house)
        await house.publish()
        await house.wait(2.5)
        (view,) = await house.deliveries()
        (entry,) = await house.story(view)
        assert entry.error == "token_timeout" and entry.total_us == pytest.approx(2_000_000, abs=1000)
        await house.wait(10)
        assert await house.states() == {"delivered": 1} and len(server.asked) == 1, (
            "the fetch outlived its waiter"
        )

    in_house(story)


def test_the_endpoint_gets_what_the_token_left_of_the_time() -> None:
    async def story(house: House) -> None:
        TokenServer(house, after=1.5)
        await endpoint(house)
        house.receivers.scripts[A] = HANGS
        await house.publish()
        await house.wait(2.1)
        (call,) = house.receivers.at(A)
        assert call.timeout_s == pytest.approx(0.5, abs=0.01)
        assert await entries(house) == [("timed_out", "timeout")]

    in_house(story)


def test_failed_fetches_open_the_breaker_and_a_probe_finds_the_mended_server() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=0.0, status=401)
        policy = {**SHORT, "breaker": {"window": 600, "failure_ratio": 0.4, "calls": 20, "probe_after": 300}}
        await endpoint(house, policy=policy)
        for _ in range(4):
            await house.publish(10)
            await house.wait(1.5)
        assert set(await house.states()) <= {"parked:breaker", "retrying"}
        await house.wait(60)
        asked = len(server.asked)
        await house.wait(200)
        assert len(server.asked) == asked, "an open breaker leaves the token server alone too"
        server.answer = {}
        await house.wait(120)
        assert await house.states() == {"delivered": 40}

    in_house(story)


def test_new_credentials_hold_at_once_for_those_who_wait() -> None:
    async def story(house: House) -> None:
        TokenServer(house, after=1e9)
        made = await endpoint(house)
        await house.publish(5)
        await house.wait(0.5)
        good = TokenServer(house)
        await house.set(made, authentication=ClientCredentials(TOKEN_URL, "me", "new"))
        await house.wait(1)
        assert len(house.receivers.at(A)) == 4 and len(good.asked) == 1
        await house.wait(10)
        assert await house.states() == {"delivered": 5}

    in_house(story)


def test_credentials_that_go_and_come_back_are_not_fetched_twice_at_once() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house, after=5.0)
        made = await endpoint(house, policy={**SHORT, "timeouts": {"first": 20, "retry": 20}})
        await house.publish()
        await house.wait(0.5)
        await house.set(made, authentication=None)
        await house.set(made, authentication=CLIENT)
        await house.publish(5)
        await house.wait(1)
        assert len(server.asked) == 1
        await house.wait(9)
        assert len(server.asked) == 1 and await house.states() == {"delivered": 6}

    in_house(story)


def test_taking_the_credentials_away_frees_the_line() -> None:
    async def story(house: House) -> None:
        TokenServer(house, after=1e9)
        made = await endpoint(house)
        await house.publish(5)
        await house.wait(0.5)
        await house.set(made, authentication=None)
        await house.wait(0.5)
        assert len(house.receivers.at(A)) == 4

    in_house(story)


def test_a_shutdown_hands_back_what_waits_for_a_token() -> None:
    async def story(house: House) -> None:
        TokenServer(house, after=1e9)
        await endpoint(house, policy={**SHORT, "timeouts": {"first": 60, "retry": 60}})
        await house.publish(5)
        await house.wait(0.5)
        await house.engine.stop()
        assert await house.states() == {"scheduled": 5}, "unsent: no attempt, nothing interrupted"
        assert await entries(house) == []

    in_house(story, settings=EngineSettings(grace_s=1.0), stops=False)


def test_requests_that_wait_for_one_token_are_bounded() -> None:
    async def story(house: House) -> None:
        TokenServer(house, after=1e9)
        made = await endpoint(house)
        route = house.engine.directory.routes[made]
        answers: list[Answer] = []
        for _ in range(tokens.WAITING + 1):
            request = Request(target=route.target, headers=b"", body=b"", timeout_s=5, connect_timeout_s=5)
            house.engine.tokens.send(request, route.credential, answers.append)
        await house.wait(1)
        assert [answer.failure for answer in answers] == ["no_resources"]
        await house.wait(5)
        assert [answer.failure for answer in answers[1:]] == ["token_timeout"] * tokens.WAITING

    in_house(story)


def test_kept_tokens_are_bounded() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        house.engine.tokens.kept_most = 2
        made = [await endpoint(house, A, client=ClientCredentials(TOKEN_URL, f"c{n}", "s")) for n in range(4)]
        await house.publish()
        await house.wait(1)
        assert len(server.asked) == 4
        kept = [house.route(one).credential.token is not None for one in made]
        assert sum(kept) == 2

    in_house(story)


def test_an_unreachable_endpoint_says_nothing_about_its_token() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        made = await endpoint(house)
        house.receivers.scripts[A] = REFUSES
        await house.publish()
        await house.wait(12)
        assert await house.states() == {"dead": 1} and len(server.asked) == 1
        assert not house.route(made).credential.token.is_taken

    in_house(story)


def test_a_401_of_another_host_says_nothing_about_the_token() -> None:
    async def story(house: House) -> None:
        server = TokenServer(house)
        await endpoint(house)
        house.receivers.scripts[A] = lambda call: (0.01, Answer(status=401, redirected=1, total_us=1))
        await house.publish()
        await house.wait(12)
        assert len(server.asked) == 1

    in_house(story)


def test_a_late_401_does_not_throw_away_the_token_that_came_after() -> None:
    old, new = (tokens.AccessToken(text, since=0.0, until=100.0) for text in ("old", "new"))
    grant = tokens.Credential("acme", CLIENT)
    grant.token = old
    grant.answered(old, unauthorized=True)
    assert grant.token is None
    grant.token = new
    grant.answered(old, unauthorized=True)
    assert grant.token is new and new.until == 100.0
