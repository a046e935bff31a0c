"""Token servers that misbehave at random, endpoints that revoke, people who change credentials: whatever happens,
one fetch at a time for each credential, no slot is lost, and once all is well again everything is delivered."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from surehook.core.authentication import ClientCredentials
from surehook.delivery import testcall
from surehook.delivery.settings import EngineSettings
from surehook.ports.reading import DeliveryFilter
from surehook.ports.transport import Answer
from tests.budget import every
from tests.delivery.house import Call, House, in_house

SEEDS = 12
STORM_S = 120
ENDPOINTS = [f"https://{name}.example/hook" for name in "abcd"]
SERVERS = ["https://login.example/token", "https://other.example/token"]
POLICY = {
    "profile": "standard", "schedule": {"exponential": {"base": 1, "factor": 2, "cap": 20, "retries": 60}},
    "jitter": None, "terminal": [], "breaker": {"window": 60, "failure_ratio": 0.5, "calls": 10, "probe_after": 10},
}  # fmt: skip
BAD = (
    Answer(failure="connect_refused"), Answer(failure="eof"), Answer(failure="not_http"), Answer(failure="no_resources"),
    Answer(failure="address_forbidden"), Answer(status=401), Answer(status=503), Answer(status=302),
    Answer(status=200, body=b"garbage"), Answer(status=200, body=b"{}", truncated=True),
)  # fmt: skip


class Storm:
    """A world that is bad until it is told to be good."""

    def __init__(self, house: House, seed: int) -> None:
        self.house = house
        self.chance = random.Random(seed)
        self.calm = False
        self.good: set[str] = set()
        self.made = 0
        self.fetching: dict[Any, int] = {}  # by token server and client
        self.at_once = 0
        for url in SERVERS:
            house.receivers.scripts[url] = self.token
        for url in ENDPOINTS:
            house.receivers.scripts[url] = self.receive

    def client(self) -> ClientCredentials:
        return ClientCredentials(self.chance.choice(SERVERS), self.chance.choice("xy"), "s")

    def token(self, call: Call) -> tuple[float, Answer] | None:
        who = (call.url, call.headers["authorization"])
        self.fetching[who] = self.fetching.get(who, 0) + 1
        self.at_once = max(self.at_once, self.fetching[who])
        after, answer = (0.01, None) if self.calm else self._mood()
        if after >= call.timeout_s:
            after, answer = call.timeout_s, Answer(failure="timeout", unknown=True)
        if answer is None:
            self.made += 1
            self.good.add(f"t{self.made}")
            fields = {
                "access_token": f"t{self.made}",
                "token_type": "bearer",
                "expires_in": self.chance.choice((1, 20, 900)),
            }
            answer = Answer(status=200, body=json.dumps(fields).encode())
        done = call._done
        assert done is not None

        def ended(answer: Answer) -> None:
            self.fetching[who] -= 1
            done(answer)

        call._done = ended
        return after, answer

    def _mood(self) -> tuple[float, Answer | None]:
        after = self.chance.choice((0.001, 0.1, 1.9, 2.1, 9.0, 1e9))
        return after, self.chance.choice((None, None, *BAD))

    def receive(self, call: Call) -> tuple[float, Answer]:
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        if not self.calm and self.chance.random() < 0.2:
            return call.timeout_s, Answer(failure="timeout", unknown=True)
        has_token = token in self.good or not token
        return 0.02, Answer(status=200 if has_token else 401, total_us=20_000)

    async def blow(self, made: list[bytes]) -> None:
        """One thing after another goes wrong."""
        for _ in range(STORM_S):
            what = self.chance.random()
            endpoint = self.chance.choice(made)
            if what < 0.5:
                await self.house.publish(self.chance.randrange(1, 15))
            elif what < 0.6:
                self.good.clear()
            elif what < 0.7:
                client = None if self.chance.random() < 0.2 else self.client()
                await self.house.set(endpoint, authentication=client)
            elif what < 0.75:
                await self.house.set(endpoint, status="paused")
            elif what < 0.85:
                await self.house.set(endpoint, status="active", failure_count=0)
            elif what < 0.95:
                asyncio.ensure_future(testcall.call(self.house.engine, endpoint))  # noqa: RUF006
            await self.house.wait(self.chance.choice((0.01, 0.3, 1.0, 2.0)))


@pytest.mark.parametrize("seed", every(4, range(SEEDS)))
def test_after_any_storm_everything_is_delivered(seed: int) -> None:
    async def story(house: House) -> None:
        storm = Storm(house, seed)
        made = [await house.endpoint(url, policy=POLICY) for url in ENDPOINTS]
        for endpoint in made:
            await house.set(endpoint, authentication=storm.client())
        await storm.blow(made)
        storm.calm = True
        for endpoint in made:
            await house.set(endpoint, status="active", failure_count=0)
        for _ in range(60):
            await house.wait(10)
            if not await unfinished(house):
                break
        assert await unfinished(house) == {}
        assert storm.at_once == 1, "one fetch at a time"
        assert house.engine.dispatch.in_flight() == {"first": 0, "retry": 0}
        for lane in house.engine.dispatch.lanes:
            assert lane.suspects_busy == 0
        for endpoint in made:
            grant = house.route(endpoint).credential
            assert grant is None or (not grant.waiting and not grant.is_busy)
        for call in house.receivers.calls:
            assert call._done is None, "every request has its one answer"

    in_house(story, seed=seed, settings=EngineSettings(slots_first=8, slots_retry=8, endpoint_slots=6))


async def unfinished(house: House) -> dict[str, int]:
    """States of what is not delivered, over all deliveries."""
    counts: dict[str, int] = {}
    after = None
    while True:
        page = await house.ledger.deliveries(DeliveryFilter(), limit=200, after=after)
        for view in page.data:
            if view.state != "delivered":
                counts[view.state] = counts.get(view.state, 0) + 1
        after = page.next
        if after is None:
            return counts
