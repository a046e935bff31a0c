"""A receiver that forgets to take a new key into use loses nothing by it, and is hardly called meanwhile.

The sender's engine in virtual time; the receiver is the real inbox, which verifies and stores in SQLite on the same clock.
"""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from surehook.core import ids
from surehook.core.model import Secret
from surehook.inbox import Inbox, sources
from surehook.inbox.receive import IncomingRequest
from surehook.ports.transport import Answer
from tests.budget import every
from tests.delivery.house import Call, House, in_house
from tests.delivery.nodes import ALL, Town, in_town
from tests.delivery.test_share import Store

URL = "https://app.example/hooks/surehook"
OTHER = "https://b.example/hook"
OLD, NEW = b"k" * 32, b"n" * 32  # the first is what an endpoint of the house is made with
PROBE_S = 300
HOUR_S = 3_600
HEARD_S = 2  # until every node knows what one of them was told
SLOTS = 32  # calls that may be under way to one endpoint when the first refusal comes back
ANSWER_S = 0.02
MILLISECOND = 0.001  # the ledger rounds its times down to whole ones


def text_of(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


class Application:
    """An application with an inbox on one file. `deployed` starts it anew with other secrets, as a release does."""

    def __init__(self, file: Path, clock: Any) -> None:
        self._file, self._clock = file, clock
        self.answers: list[int] = []
        self.inbox = self._start(OLD)
        with self.inbox.store.engine.begin() as connection:
            connection.execute(text("create table effects (event_id text not null)"))

    def _start(self, *secrets: bytes) -> Inbox:
        source = sources.named("surehook", secret=[text_of(secret) for secret in secrets])
        inbox = Inbox(f"sqlite:///{self._file}", [source], clock=self._clock)
        inbox.create_tables()

        @inbox.on("surehook", "*")
        def done(event: Any, tx: Any) -> None:
            tx.execute(text("insert into effects values (:id)"), {"id": event.id})

        return inbox

    def deployed(self, *secrets: bytes) -> None:
        self.close()
        self.inbox = self._start(*secrets)

    def close(self) -> None:
        self.inbox.close()

    def __call__(self, call: Call) -> tuple[float, Answer]:
        """What it answers to a request of the sender."""
        reply = self.inbox.receive(
            IncomingRequest(
                method="POST", source="surehook", query="", url=call.url, headers=list(call.headers.items()),
                peer="203.0.113.7", body=call.request.body,
            )
        )  # fmt: skip
        self.answers.append(reply.status)
        lines = "".join(f"{name}: {value}\r\n" for name, value in reply.headers)
        return ANSWER_S, Answer(status=reply.status, headers=lines.encode(), body=reply.body)

    def effects(self) -> list[str]:
        """The events that took effect, each as often as it did."""
        self.inbox.work()
        with self.inbox.store.engine.begin() as connection:
            return sorted(row[0] for row in connection.execute(text("select event_id from effects")))


async def rotate(house: House, endpoint: bytes) -> None:
    """A new secret, and the old one signs no more."""
    now = house.clock.now()
    secret = Secret(ids.uuid7(now, house.entropy.bits(10)), endpoint, "v1", NEW, now, None)
    await house.ledger.rotate_secret(secret, old_expires_at=now)
    await house.engine.changed()


async def publish_for(house: House, seconds: int, *, every: int) -> list[str]:
    """The ids of the events of that time."""
    taken = []
    for _ in range(seconds // every):
        taken += await house.publish()
        await house.wait(every)
    return [ids.text(ids.EVENT, one.event) for one in taken]


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize(
    "policy", every(3, ["standard", "signing", {"profile": "standard", "breaker": None}]), ids=["standard", "signing", "no breaker"]
)  # fmt: skip
def test_an_hour_with_the_old_key_costs_a_call_per_300_s_and_no_event(policy: Any, tmp_path: Path) -> None:
    async def story(house: House) -> None:
        application = Application(tmp_path / "app.db", house.clock)
        house.receivers.scripts[URL] = application
        endpoint = await house.endpoint(URL, policy=policy)
        await house.endpoint(OTHER)
        before = await publish_for(house, 60, every=20)
        await rotate(house, endpoint)
        called = len(house.receivers.at(URL))
        during = await publish_for(house, HOUR_S, every=40)
        calls = house.receivers.at(URL)[called:]
        assert application.answers[called:] == [401] * len(calls)
        assert 2 <= len(calls) <= 1 + HOUR_S // PROBE_S
        assert min(gaps([call.at for call in calls])) > PROBE_S - MILLISECOND
        assert len(house.receivers.at(OTHER)) == len(before + during), "the neighbour noticed nothing"
        assert application.effects() == sorted(before)
        states = await house.states()
        assert states.get("parked:key") == len(during)

        application.deployed(NEW, OLD)
        await house.wait(PROBE_S + 10)
        assert set(await house.states()) == {"delivered"}
        assert application.effects() == sorted(before + during)
        application.close()

    in_house(story)


def test_only_calls_that_were_under_way_come_on_top_when_the_key_turns_in_the_rush(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        application = Application(tmp_path / "app.db", house.clock)
        house.receivers.scripts[URL] = application
        endpoint = await house.endpoint(URL)
        await rotate(house, endpoint)
        taken = await house.publish(100)
        await house.wait(3 * PROBE_S)
        calls = house.receivers.at(URL)
        first_refusal = calls[0].at + ANSWER_S
        after = [call.at for call in calls if call.at > first_refusal]
        assert len(calls) - len(after) <= SLOTS
        assert 2 <= len(after) <= 3
        assert min(gaps([first_refusal, *after])) > PROBE_S - MILLISECOND
        application.deployed(NEW)
        await house.wait(PROBE_S + 10)
        assert application.effects() == sorted(ids.text(ids.EVENT, one.event) for one in taken)
        application.close()

    in_house(story)


def test_a_sender_that_starts_anew_meanwhile_remembers_when_it_may_call(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        application = Application(tmp_path / "app.db", house.clock)
        house.receivers.scripts[URL] = application
        endpoint = await house.endpoint(URL)
        await rotate(house, endpoint)
        events = []
        for _ in range(6):
            events += await publish_for(house, 100, every=10)
            await house.engine.stop()
            house.engine = house.another()
            await house.engine.start()
        calls = house.receivers.at(URL)
        assert len(calls) <= 1 + 600 // PROBE_S
        assert min(gaps([call.at for call in calls])) > PROBE_S - MILLISECOND
        application.deployed(NEW)
        await house.wait(PROBE_S + 10)
        assert application.effects() == sorted(events)
        application.close()

    in_house(story)


@pytest.mark.slow
def test_three_nodes_make_the_calls_of_one(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        application = Application(tmp_path / "app.db", town.clock)
        town.receivers.scripts[URL] = application
        endpoint = await town.endpoint(URL)
        await rotate(town, endpoint)
        events = []
        for _ in range(3 * PROBE_S // 60):
            for engine in town.engines.values():
                town.engine = engine
                events += await publish_for(town, 20, every=20)
        times = sorted(call.at for name in town.engines for call in town.sent[name].at(URL))
        assert 2 <= len(times) <= 1 + 3
        assert min(gaps(times)) > PROBE_S - MILLISECOND
        application.deployed(NEW)
        await town.wait(PROBE_S + HEARD_S + 10)
        assert application.effects() == sorted(events)
        application.close()

    in_town(story, health=Store(), one=ALL, two=ALL, three=ALL)
