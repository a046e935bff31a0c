"""/v1/replays"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import json

from lab.ledger.ledger import MemoryLedger
from surehook.api.serving import open_door
from surehook.core import ids
from surehook.core.errors import LedgerUnavailable
from surehook.delivery import deliveries as operations
from surehook.delivery import replay
from surehook.ports.registry import Page
from tests.api.house import KEY, House, Metrics

ON_SQLITE = True


def filled(
    house: House, count: int, end: str = "dead", *, outcome: str = "refused", **fields: Any
) -> list[str]:
    made = [house.publish(house.filled_endpoint, **fields)[1][0] for _ in range(count)]  # type: ignore[attr-defined]
    for delivery in made:
        house.finish(delivery, end, outcome=outcome)
    return made


def idle(house: House) -> None:
    """From here on nothing is done in the background, as if the process died before it came to it."""
    house.run(house.services.chores.stop())


@pytest.fixture(autouse=True)
def endpoint(house: House) -> None:
    house.tenant()
    house.filled_endpoint = house.endpoint()  # type: ignore[attr-defined]


def replays_of(house: House) -> list[str]:
    return [row["replay_of"] for row in house.get("/v1/deliveries?limit=200")["data"] if row["replay_of"]]


def test_a_replay_makes_one_new_delivery_for_each_that_matches(house: House) -> None:
    dead = filled(house, 3)
    filled(house, 2, "delivered")
    response = house.call("POST", "/v1/replays", json={"filter": {"tenant": "acme", "state": "dead"}})
    job = house.get(response.headers["location"])

    assert response.status_code == 202 and response.json()["state"] == "running"
    assert (job["state"], job["matched"], job["created"]) == ("done", 3, 3)
    assert job["filter"] == {"tenant": "acme", "state": "dead"} and job["finished_at"]
    assert sorted(replays_of(house)) == sorted(dead)
    assert house.get("/v1/dead-letters")["data"] == [] and house.engine.woken


def test_a_dry_run_counts_and_makes_nothing(house: House) -> None:
    filled(house, 5)
    job = house.post("/v1/replays", {"filter": {"state": "dead"}, "dry_run": True}, 202)

    assert (job["state"], job["matched"], job["created"], job["dry_run"]) == ("done", 5, 0, True)
    assert replays_of(house) == []


class Backlog:
    """A ledger whose lists are not answered before they may be, as beside a backlog."""

    def __init__(self) -> None:
        self.inner, self.may_answer = MemoryLedger(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def deliveries(self, *args: Any, **named: Any) -> Any:
        await self.may_answer.wait()
        return await self.inner.deliveries(*args, **named)

    async def replay(self, job: bytes) -> Any:
        await self.may_answer.wait()  # it stands behind the list
        return await self.inner.replay(job)


def test_a_dry_run_is_answered_at_once_and_counts_on() -> None:
    ledger = Backlog()
    house = House(ledger)
    house.tenant()
    house.filled_endpoint = house.endpoint()  # type: ignore[attr-defined]
    ledger.may_answer.set()
    filled(house, 5)
    ledger.may_answer.clear()
    job = house.run(house.services.replays.begin({"state": "dead"}, dry_run=True))
    assert (job.state, job.matched) == ("running", 0)
    ledger.may_answer.set()
    house.run(house.services.chores.idle())
    job = house.run(house.services.replays.find(job.id))
    assert (job.state, job.matched, job.created) == ("done", 5, 0)
    house.close()


def test_a_replay_is_chosen_by_what_came_of_its_requests(house: House) -> None:
    """And a version that knows none of these fields fails the job, where it would deliver everything again."""
    filled(house, 2)
    filled(house, 1, correlation_id="c")
    filters: list[tuple[dict[str, Any], int]] = [
        ({"correlation_id": "c"}, 1), ({"status": 500}, 3), ({"status": 404}, 0), ({"error": "timeout"}, 0),
        ({"receipt": "rejected"}, 0), ({"code": "late"}, 0), ({"correlation_id": "c", "status": 500}, 1),
    ]  # fmt: skip
    for given, matched in filters:
        job = house.post("/v1/replays", {"filter": given, "dry_run": True}, 202)
        assert (job["matched"], job["filter"]) == (matched, given)
        kept = house.run(house.ledger.replay(ids.parse(ids.REPLAY, job["id"])))
        assert json.decode(kept.filter) == [given]
    assert house.call("POST", "/v1/replays", json={"filter": {"error": "late"}}).status_code == 422


def test_every_field_of_the_filter_cuts(house: House) -> None:
    house.tenant("other")
    one = filled(house, 1, subject="s", type="x.y")[0]
    filled(house, 1, "delivered")
    house.engine.clock.at += 1000
    filled(house, 2, tenant="other", outcome="timed_out")
    filters: list[tuple[dict[str, Any], int]] = [
        ({"tenant": "other"}, 2), ({"type": "x.y"}, 1), ({"subject": "s"}, 1), ({"state": "delivered"}, 1),
        ({"outcome": "timed_out"}, 2), ({"since": "2026-03-02T09:30:01Z"}, 2), ({"until": "2026-03-02T09:30:01Z"}, 2),
        ({"endpoint": house.filled_endpoint["id"]}, 4), ({"tenant": "acme", "subject": "s", "state": None}, 1),  # type: ignore[attr-defined]
    ]  # fmt: skip
    counted = [
        house.post("/v1/replays", {"filter": each, "dry_run": True}, 202)["matched"] for each, _ in filters
    ]

    assert counted == [count for _, count in filters]
    assert one not in replays_of(house)


def test_what_is_open_was_replayed_or_has_no_endpoint_is_left_alone(house: House) -> None:
    house.publish(house.filled_endpoint)  # type: ignore[attr-defined]
    replayed, plain = filled(house, 2)
    house.post(f"/v1/deliveries/{replayed}/resend", status=201)
    other = house.endpoint()
    _, (orphan,) = house.publish(other)
    house.finish(orphan)
    house.call("DELETE", f"/v1/endpoints/{other['id']}")
    job = house.post("/v1/replays", {"filter": {"tenant": "acme"}}, 202)

    assert house.get(f"/v1/replays/{job['id']}")["created"] == 1
    assert sorted(replays_of(house)) == sorted([replayed, plain])


def test_a_dismissed_dead_letter_shows_its_note_and_is_in_no_replay(house: House) -> None:
    dead, dismissed = filled(house, 2)
    answer = house.post(f"/v1/dead-letters/{dismissed}/dismiss", {"note": "settled"})
    job = house.post("/v1/replays", {"filter": {"state": "dead"}}, 202)

    assert (house.get(f"/v1/replays/{job['id']}")["created"], replays_of(house)) == (1, [dead])
    assert answer["dismissal"]["note"] == "settled" and answer["dismissal"]["at"]
    assert house.get(f"/v1/deliveries/{dismissed}")["dismissal"] == answer["dismissal"]
    assert house.get(f"/v1/deliveries/{dead}")["dismissal"] is None


def test_a_job_does_not_meet_its_own_replacements(house: House) -> None:
    """Replacements share the leading bits of their event's id, so they lie among the rows that are still to be walked."""
    endpoint = house.filled_endpoint  # type: ignore[attr-defined]
    _, made = house.publish(*[endpoint] * (replay.PAGE_ROWS + 20))
    for delivery in made:
        house.finish(delivery)
    ledger = house.ledger
    plain = ledger.advance_replay

    async def advance(before: Any, after: Any, originals: Any, replacements: Any, **kwargs: Any) -> Any:
        """Every replacement fails at once, as at a dead receiver."""
        answer = await plain(before, after, originals, replacements, **kwargs)
        house.engine.clock.at += 10
        await ledger.end(replacements, state="dead", reason=None, notices=[], now=house.engine.clock.at)
        return answer

    ledger.advance_replay = advance
    job = house.post("/v1/replays", {"filter": {"state": "dead"}}, 202)

    assert house.get(f"/v1/replays/{job['id']}")["created"] == len(made)


def test_what_is_resent_by_hand_meanwhile_is_not_replayed_as_well(house: House) -> None:
    one, two = filled(house, 2)
    ledger = house.ledger
    plain = ledger.deliveries

    async def deliveries(*args: Any, **kwargs: Any) -> Any:
        """Between the job's look and its writing, somebody else resends one of them."""
        page = await plain(*args, **kwargs)
        ledger.deliveries = plain
        await operations.resend(house.engine, ids.parse(ids.DELIVERY, one))
        return page

    ledger.deliveries = deliveries
    job = house.post("/v1/replays", {"filter": {"state": "dead"}}, 202)

    assert house.get(f"/v1/replays/{job['id']}")["created"] == 1
    assert sorted(replays_of(house)) == sorted([one, two])


def test_a_job_goes_on_after_a_restart_and_replays_nothing_twice(house: House) -> None:
    made = filled(house, replay.PAGE_ROWS + 5)
    idle(house)
    job = house.run(house.services.replays.begin({"state": "dead"}, dry_run=False))
    first = house.run(house.services.replays._page(job))
    assert first.created == replay.PAGE_ROWS

    again = house.new_services()
    house.run(again.start())
    house.run(again.chores.idle())
    rows = []
    cursor = ""
    while cursor is not None:
        page = house.get(f"/v1/deliveries?limit=200{cursor}")
        rows += page["data"]
        cursor = page["next"] and f"&cursor={page['next']}"

    assert sorted(row["replay_of"] for row in rows if row["replay_of"]) == sorted(made)
    assert house.run(house.ledger.replay(job.id)).created == len(made)


def test_two_nodes_that_walk_one_job_make_and_count_everything_once(house: House) -> None:
    made = filled(house, replay.PAGE_ROWS * 2 + 5)
    idle(house)
    job = house.run(house.services.replays.begin({"state": "dead"}, dry_run=False))
    others = [house.new_services() for _ in range(3)]

    async def walk() -> None:
        await asyncio.gather(*(other.replays.resume() for other in others))
        await asyncio.gather(*(other.chores.idle() for other in others))

    house.run(walk())
    seen = house.run(house.ledger.replay(job.id))
    assert (seen.state, seen.matched, seen.created) == ("done", len(made), len(made))


def test_a_look_takes_over_a_job_that_stands_still_and_no_other(house: House) -> None:
    filled(house, replay.PAGE_ROWS * 2 + 5)
    idle(house)
    walker = house.services.replays
    job = house.run(walker.begin({"state": "dead"}, dry_run=False))
    other = house.new_services()
    house.run(other.start(resume=False))
    house.run(other.replays.look())
    further = house.run(walker._page(job))
    house.run(other.replays.look())
    house.run(other.chores.idle())
    assert house.run(house.ledger.replay(job.id)) == further, "somebody walks it"
    house.run(other.replays.look())
    house.run(other.chores.idle())
    assert house.run(house.ledger.replay(job.id)).state == "done"


@pytest.mark.parametrize(("role", "walks"), [("all", True), ("api", True), ("worker", False)])
def test_a_door_on_a_ledger_of_several_walks_what_a_dead_node_left(
    house: House, role: str, walks: bool
) -> None:
    filled(house, 1)
    idle(house)
    job = house.run(house.services.replays.begin({"state": "dead"}, dry_run=False))
    door = house.run(
        open_door(
            house.engine, own_key=KEY, traffic=house.new_traffic(), metrics=Metrics(), role=role, sole=False
        )
    )
    for _ in range(2):
        assert house.run(house.ledger.replay(job.id)).state == "running"
        for look in house.engine.looks:
            house.run(look())
    house.run(door.services.chores.idle())
    assert house.run(house.ledger.replay(job.id)).state == ("done" if walks else "running")


def test_a_job_waits_while_the_ledger_is_away() -> None:
    away = iter([True, True])

    def faults(step: str) -> None:
        if step == "before advance_replay" and next(away, False):
            raise LedgerUnavailable("locked")

    house = House(MemoryLedger(faults=faults))
    house.tenant()
    house.filled_endpoint = house.endpoint()  # type: ignore[attr-defined]
    filled(house, 2)
    job = house.post("/v1/replays", {"filter": {"state": "dead"}}, 202)
    seen = house.get(f"/v1/replays/{job['id']}")
    house.close()

    assert (seen["state"], seen["created"]) == ("done", 2)


def test_running_jobs_are_bounded(house: House) -> None:
    async def begin() -> None:
        for _ in range(replay.RUNNING_MAX):
            await house.services.replays.begin({"tenant": "acme"}, dry_run=False)

    idle(house)
    house.run(begin())
    problem = house.post("/v1/replays", {"filter": {"tenant": "acme"}}, 409)

    assert problem["code"] == "too_many_replays"


@pytest.mark.parametrize("job", ["rpl_01kjpy44e0f2tacmq49pkz57h6", "rpl_", "x", "%00"])
def test_a_replay_that_is_not_there_is_not_found(house: House, job: str) -> None:
    assert house.call("GET", f"/v1/replays/{job}").json()["code"] == "not_found"


class Pages(MemoryLedger):
    """A list of so many pages on which nothing fits, and how many of them were read at once at most."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.pages, self.under_way, self.at_once, self.written = pages, 0, 0, 0

    async def deliveries(self, where: Any, *, limit: int, after: bytes | None) -> Page:
        self.under_way += 1
        self.at_once = max(self.at_once, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        place = 1 if after is None else int.from_bytes(after, "big") + 1
        return Page([], None if place == self.pages else place.to_bytes(16, "big"))

    async def advance_replay(self, *args: Any, **named: Any) -> Any:
        self.written += 1
        return await super().advance_replay(*args, **named)


def test_a_dry_run_writes_down_how_far_it_is_after_some_pages() -> None:
    house = House(ledger := Pages(replay.COUNTED_PAGES * 2 + 1))
    job = house.post("/v1/replays", {"filter": {"state": "dead"}, "dry_run": True}, 202)
    assert (house.get(f"/v1/replays/{job['id']}")["state"], ledger.written) == ("done", 3)
    house.close()


def test_a_list_waits_for_one_page_of_one_job() -> None:
    house = House(ledger := Pages(3))

    async def begin() -> None:
        for _ in range(replay.RUNNING_MAX):
            await house.services.replays.begin({"state": "dead"}, dry_run=False)
        await house.services.chores.idle()

    house.run(begin())
    assert ledger.at_once == 1
    house.close()
