"""Nothing is acknowledged that is not safe, nothing is put aside that is not to blame, and nothing spins."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable

from lab.sim.loop import run
from surehook.client.calls import Sent
from surehook.client.errors import Refused, Unreachable
from surehook.ingest.intake import PAUSE_MOST_S, Intake
from surehook.ingest.reading import BrokerMessage, IngestRules


class Given:
    """A message that notes what became of it."""

    def __init__(self, number: int, body: bytes | None = None) -> None:
        own = {"tenant": "acme", "type": "a", "data": number}
        self.message = BrokerMessage(
            json.dumps(own).encode() if body is None else body, message_id=f"m{number}"
        )
        self.fate: list[str] = []

    def ack(self) -> None:
        self.fate.append("acked")

    async def put_aside(self, code: str, detail: str, field: str | None) -> None:
        await asyncio.sleep(0.01)
        self.fate.append(code)


class Server:
    """Answers as `say` says; notes the requests and their times."""

    def __init__(self, say: Callable[[int], Sent | Refused] | None = None) -> None:
        self.say = say or (lambda number: Sent("evt", 1))
        self.whole: list[Exception] = []
        self.requests: list[tuple[float, list[int]]] = []

    async def post(self, items: list[bytes]) -> list[Sent | Refused]:
        numbers = [json.loads(item)["data"] for item in items]
        self.requests.append((asyncio.get_running_loop().time(), numbers))
        await asyncio.sleep(0.02)
        if self.whole:
            raise self.whole.pop(0)
        return [self.say(number) for number in numbers]


def in_intake(story: Callable[[Intake, Server], Awaitable[None]], server: Server | None = None) -> list[str]:
    told: list[str] = []
    there = server or Server()
    intake = Intake(
        there.post, rules=IngestRules(), new_id=lambda: "evt_x", sleep=asyncio.sleep, tell=told.append
    )
    run(story(intake, there))
    return told


def test_a_message_that_breaks_the_reader_is_put_aside_like_any_other() -> None:
    class Broken(Given):
        def __init__(self) -> None:
            super().__init__(0)
            self.message = BrokerMessage(b"{}", headers={1: 2})  # type: ignore[dict-item]

    async def story(intake: Intake, server: Server) -> None:
        broken, fine = Broken(), Given(1)
        intake.take(broken)
        intake.take(fine)
        await intake.drained()
        assert (broken.fate, fine.fate) == (["unreadable"], ["acked"])

    in_intake(story)


def test_what_waits_together_travels_together() -> None:
    async def story(intake: Intake, server: Server) -> None:
        all_of_them = [Given(number) for number in range(1_200)]
        for given in all_of_them:
            intake.take(given)
        await intake.drained()
        assert all(given.fate == ["acked"] for given in all_of_them)
        assert len(server.requests) <= 5
        assert intake.published == 1_200

    in_intake(story)


def test_one_refused_event_is_put_aside_and_its_neighbours_are_published() -> None:
    async def story(intake: Intake, server: Server) -> None:
        given = [Given(0), Given(1), Given(2, b"not json")]
        for each in given:
            intake.take(each)
        await intake.drained()
        assert [each.fate for each in given] == [["acked"], ["unknown_tenant"], ["invalid_json"]]

    refusal = Refused(422, "unknown_tenant", "there is no tenant")
    in_intake(story, Server(lambda number: refusal if number == 1 else Sent("evt", 1)))


def test_a_request_refused_as_a_whole_is_halved_to_the_one_to_blame() -> None:
    class Picky(Server):
        async def post(self, items: list[bytes]) -> list[Sent | Refused]:
            answers = await super().post(items)
            if any(json.loads(item)["data"] == 5 for item in items):
                raise Refused(413, "body_too_large", "too large")
            return answers

    async def story(intake: Intake, server: Server) -> None:
        given = [Given(number) for number in range(8)]
        for each in given:
            intake.take(each)
        await intake.drained()
        assert [each.fate for each in given] == [["acked"]] * 5 + [["body_too_large"]] + [["acked"]] * 2

    in_intake(story, Picky())


def test_a_server_that_is_away_is_waited_for_gently_and_blames_nobody() -> None:
    server = Server()
    server.whole = [
        *(Unreachable("http://x", "refused", maybe_done=False) for _ in range(12)),
        Refused(503, "ledger_unavailable", "away"),
        Refused(401, "unauthorized", "no valid key"),
    ]

    async def story(intake: Intake, server: Server) -> None:
        given = Given(0)
        intake.take(given)
        await intake.drained()
        assert given.fate == ["acked"]
        times = [at for at, _ in server.requests]
        gaps = [after - before for before, after in itertools.pairwise(times)]
        assert gaps[0] >= 0.2
        assert all(after >= before - 0.01 for before, after in itertools.pairwise(gaps))
        assert PAUSE_MOST_S <= gaps[-1] <= PAUSE_MOST_S + 0.1

    told = in_intake(story, server)
    assert len(told) == 2, "said once, and once more when it is over"


def test_an_event_that_the_server_could_not_take_now_is_offered_again_alone() -> None:
    turned_away = {3}

    def say(number: int) -> Sent | Refused:
        if number in turned_away:
            turned_away.discard(number)
            return Refused(503, "overloaded", "full")
        return Sent("evt", 1)

    async def story(intake: Intake, server: Server) -> None:
        given = [Given(number) for number in range(5)]
        for each in given:
            intake.take(each)
        await intake.drained()
        assert all(each.fate == ["acked"] for each in given)
        assert server.requests[-1][1] == [3]

    in_intake(story, Server(say))
