"""Ready work through a broker that may lose, double and reorder: the ledger decides, and nothing is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lab.sim.broker import SimBroker, Trouble
from lab.sim.entropy import Seed
from lab.sim.loop import SimLoop, run
from surehook.core import parcel
from surehook.core.model import FIRST, RETRY, Lane
from surehook.delivery.handoff import link, send, sweep
from surehook.delivery.settings import EngineSettings
from surehook.ports.handoff import BrokerAway
from tests.budget import every
from tests.delivery.firm import Firm
from tests.delivery.house import answers

A = "https://a.example/hook"
RETRIED = {"profile": "standard", "schedule": {"fixed": [2, 4]}, "jitter": None, "breaker": None}


class SimFirm(Firm):
    def __init__(
        self, loop: SimLoop, *, workers: int, trouble: Trouble | None, worker: EngineSettings | None
    ) -> None:
        self.broker = SimBroker(loop, Seed(1).stream("broker"), trouble)
        super().__init__(loop, lambda: self.broker.at(None), workers=workers, worker=worker)


def in_firm(
    story: Callable[[SimFirm], Awaitable[None]],
    *,
    seed: int = 0,
    workers: int = 2,
    trouble: Trouble | None = None,
    worker: EngineSettings | None = None,
    policy: Any = RETRIED,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        firm = SimFirm(loop, workers=workers, trouble=trouble, worker=worker)
        await firm.start(policy=policy)
        await firm.house.wait(2)
        await story(firm)
        await firm.stop()

    run(main(), seed=seed)


def test_what_one_node_accepts_is_brought_to_workers_by_the_broker() -> None:
    async def story(firm: SimFirm) -> None:
        began = firm.house.clock.boot()
        await firm.publish(20)
        await firm.house.wait(0.2)
        assert firm.sent == 20
        assert max(call.at for call in firm.house.receivers.calls) - began < 0.2, "nobody waited for a poll"
        assert firm.claimed == 20
        await firm.house.wait(1)
        assert await firm.house.states() == {"delivered": 20}
        assert [len(queue) for queue in firm.broker.queues] == [0, 0]
        assert not any(line.unacked for line in firm.broker.lines), "all was acknowledged"

    in_firm(story)


def test_a_retry_is_handed_over_before_it_is_due_and_leaves_at_its_time() -> None:
    async def story(firm: SimFirm) -> None:
        firm.house.receivers.scripts[A] = answers(500)
        await firm.publish(1)
        await firm.house.wait(20)
        first, second, third = (call.at for call in firm.house.receivers.calls)
        assert 2.0 <= second - first - 0.01 <= 2.05
        assert 4.0 <= third - second - 0.01 <= 4.05
        assert firm.claimed == 3
        assert await firm.house.states() == {"dead": 1}

    in_firm(story)


def test_a_message_that_comes_twice_sends_nothing_twice() -> None:
    async def story(firm: SimFirm) -> None:
        await firm.publish(100)
        await firm.house.wait(5)
        assert firm.sent == 100
        assert await firm.house.states() == {"delivered": 100}

    in_firm(story, trouble=Trouble(twice=1.0, swapped=0.3))


def test_what_was_lost_on_its_way_is_handed_over_again_within_seconds() -> None:
    async def story(firm: SimFirm) -> None:
        firm.broker.trouble.lost = 1.0
        await firm.publish(50)
        await firm.house.wait(0.5)
        assert firm.sent == 0
        firm.broker.trouble.lost = 0.0
        await firm.house.wait(16)
        assert firm.sent == 50
        assert firm.house.engine.handoff.is_connected

    in_firm(story)


@pytest.mark.parametrize("act", ["purge", "delete"])
def test_a_queue_that_is_emptied_or_deleted_costs_seconds_and_nothing_else(act: str) -> None:
    async def story(firm: SimFirm) -> None:
        for worker in firm.workers:
            worker.dispatch.paused = True  # they take messages and open none
        await firm.publish(50)
        await firm.house.wait(0.5)
        getattr(firm.broker, act)(0)
        for worker in firm.workers:
            worker.dispatch.paused = False
        await firm.house.wait(20)
        assert firm.sent == 50
        assert await firm.house.states() == {"delivered": 50}

    in_firm(story)


def test_without_a_broker_work_goes_on_from_the_ledger_and_returns_to_it() -> None:
    async def story(firm: SimFirm) -> None:
        firm.broker.go_away()
        await firm.publish(30)
        await firm.house.wait(link.FALLBACK_S + 1.5)
        assert firm.sent == 30
        assert firm.claimed == 0
        firm.broker.come_back()
        await firm.house.wait(8)
        assert all(worker.handoff.is_connected for worker in firm.workers)
        await firm.publish(30)
        await firm.house.wait(0.2)
        assert firm.sent == 60
        assert firm.claimed == 30

    in_firm(story)


def test_a_lane_in_trouble_leaves_the_other_alone() -> None:
    async def story(firm: SimFirm) -> None:
        firm.broker.go_away(1)
        await firm.house.wait(10)
        for worker in firm.workers:
            assert [link.is_connected for link in worker.handoff.links] == [True, False]
            assert [link.may_claim() for link in worker.handoff.links] == [False, True]
        firm.house.receivers.scripts[A] = answers(500)
        await firm.publish(5)
        await firm.house.wait(20)
        assert firm.sent == 15
        assert await firm.house.states() == {"dead": 5}

    in_firm(story)


def test_a_queue_that_does_not_flow_does_not_stop_idle_workers() -> None:
    async def story(firm: SimFirm) -> None:
        firm.broker.trouble.lost = 1.0  # confirmed, and gone: as a queue without its majority
        await firm.publish(10)
        await firm.house.wait(link.STALL_S + 3)
        assert firm.sent == 10
        assert firm.claimed == 0

    in_firm(story)


def test_a_watermark_that_does_not_come_out_tells_a_queue_that_stands_still() -> None:
    """Sooner than the watermarks that do not come at all, so that a busy machine has time to spare before its bound."""

    async def story(firm: SimFirm) -> None:
        firm.broker.trouble.lost = 1.0
        await firm.publish(10)
        await firm.house.wait(sweep.WATERMARK_S + link.UNDER_WAY_S + 2 * link.MARKS_S)
        assert firm.sent == 10
        firm.broker.trouble.lost = 0.0
        await firm.house.wait(sweep.WATERMARK_S + 2 * link.MARKS_S)
        assert not any(worker.handoff.may_claim() for worker in firm.workers), (
            "a watermark came: it flows again"
        )

    in_firm(story)


@pytest.mark.parametrize("alarm", [False, True], ids=["frozen", "in its memory alarm"])
@pytest.mark.parametrize("lanes", [(0,), (0, 1)], ids=["one lane", "both lanes"])
def test_a_broker_that_stands_still_stops_nothing_for_longer_than_fifteen_seconds(
    alarm: bool, lanes: tuple[Lane, ...]
) -> None:
    """No connection breaks, and new ones come to nothing or prove nothing: only a confirm or a watermark says that it moves."""

    async def story(firm: SimFirm) -> None:
        firm.broker.stand_still(*lanes, alarm=alarm)
        published: list[float] = []
        for _ in range(12):
            published.append(asyncio.get_running_loop().time())
            await firm.publish(3)
            await firm.house.wait(5)
        await firm.house.wait(10)
        assert firm.sent == 36
        waited = [call.at - published[number // 3] for number, call in enumerate(firm.house.receivers.calls)]
        assert max(waited) < 12.0, "a busy machine has three seconds more"
        assert max(waited[9:]) < 3.0, (
            "once it is known, work is claimed at once, and a new line does not change that"
        )
        firm.broker.come_back()
        await firm.house.wait(70)  # the rarest watermarks
        await firm.publish(20)
        await firm.house.wait(2)
        assert firm.sent == 56
        assert firm.claimed >= 20, "and then it is brought again"

    in_firm(story)


def test_a_long_queue_is_never_filled_twice() -> None:
    async def story(firm: SimFirm) -> None:
        await firm.publish(150)
        await firm.house.wait(3600)
        copies = firm.broker.copies(0)
        assert len(copies) == 150
        assert set(copies.values()) == {1}
        assert len(firm.broker.queues[0]) < 150 + 3600 / 40, "watermarks become rare where nobody takes them"

    in_firm(story, workers=0)


def test_an_hour_without_a_broker_fills_its_queue_once() -> None:
    async def story(firm: SimFirm) -> None:
        firm.broker.go_away()
        await firm.publish(150)
        await firm.house.wait(3600)
        firm.broker.come_back()
        await firm.house.wait(60)
        copies = firm.broker.copies(0)
        assert len(copies) == 150
        assert set(copies.values()) == {1}

    in_firm(story, workers=0)


def test_accepting_waits_for_no_broker_and_its_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "WAITING_IDS_MAX", 20)

    async def story(firm: SimFirm) -> None:
        firm.house.engine.handoff.links[0]._line.publish = never  # the broker takes and confirms nothing
        began = firm.house.clock.boot()
        await firm.publish(100)
        assert firm.house.clock.boot() - began < 0.1
        assert firm.house.engine.handoff.send.room(FIRST) == 0
        marked = len(firm.house.ledger.book.marked[0])
        assert marked == 20, "what found no place is left to the sweeper"

    in_firm(story, workers=0)


def test_a_queue_that_confirms_nothing_takes_no_place_of_the_other_lane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send, "WAITING_IDS_MAX", 20)

    async def story(firm: SimFirm) -> None:
        line = firm.house.engine.handoff
        line.links[0]._line.publish = never
        await firm.publish(100)
        assert (line.send.room(FIRST), line.send.room(RETRY)) == (0, 20)

    in_firm(story, workers=0)


async def never(*_: object) -> None:
    await asyncio.get_running_loop().create_future()


def test_a_full_worker_takes_no_more_than_its_memory_holds() -> None:
    async def story(firm: SimFirm) -> None:
        firm.house.receivers.scripts[A] = answers(200, after=1.0)
        await firm.publish(120)
        for _ in range(40):
            await firm.house.wait(0.5)
            assert all(worker.dispatch.memory.held <= 8 for worker in firm.workers)
        await firm.house.wait(40)
        assert firm.sent == 120
        assert await firm.house.states() == {"delivered": 120}

    in_firm(story, worker=EngineSettings(memory_deliveries=8, endpoint_share=8))


def test_large_bodies_come_as_memory_has_room_and_what_is_left_is_asked_for_again() -> None:
    """Messages bound rows alone. What a claim left for want of bytes stays in its message: nothing is handed over twice."""
    large = 20 << 10

    async def story(firm: SimFirm) -> None:
        urls = [A, *(f"https://a{number}.example/hook" for number in range(1, 10))]
        for url in urls[1:]:
            await firm.house.endpoint(url)
        for worker in firm.workers:
            await worker.changed()
        for url in urls:
            firm.house.receivers.scripts[url] = answers(200, after=0.1)
        await firm.house.publish(12, size=large)
        highest = 0
        for _ in range(400):
            await firm.house.wait(0.01)
            highest = max(highest, *(worker.dispatch.memory.held_bytes for worker in firm.workers))
        assert highest < 5 * large, "what fits, and the row that goes beyond"
        assert firm.sent == 120
        assert await firm.house.states() == {"delivered": 120}
        assert firm.broker.published == 120
        assert firm.claimed == 120
        assert not any(line.unacked for line in firm.broker.lines)

    in_firm(story, workers=1, worker=EngineSettings(memory_bytes=4 * large, memory_deliveries=1_000))


def test_a_message_with_the_ids_of_one_in_front_of_it_is_acknowledged_once() -> None:
    """Where what was left stands in two messages, and one of them has nothing else."""
    large = 20 << 10

    async def story(firm: SimFirm) -> None:
        firm.house.receivers.scripts[A] = answers(200, after=0.1)
        for worker in firm.workers:
            worker.dispatch.paused = True
        await firm.house.publish(8, size=large)
        await firm.house.wait(0.5)
        ids = sorted(row.id for row in firm.house.ledger.book.rows.values())
        firm.broker.append(0, parcel.encode_ids(ids[:1]))
        firm.broker.append(0, parcel.encode_ids(ids))
        firm.broker.hand_out(0)
        for worker in firm.workers:
            worker.dispatch.paused = False
        await firm.house.wait(3)
        assert (firm.sent, firm.claimed) == (8, 8)
        assert not any(line.unacked for line in firm.broker.lines)

    in_firm(story, workers=1, worker=EngineSettings(memory_bytes=4 * large))


def test_one_node_sweeps_and_another_goes_on_when_it_loses_its_line() -> None:
    async def story(firm: SimFirm) -> None:
        book = firm.house.ledger.book
        sweeper = next(engine for engine in firm.engines if engine.node.id == book.sweepers[0])
        link = sweeper.handoff.links[0]
        link._broker = Nobody()
        link._line.end("the connection was reset")
        await firm.house.wait(2 * 1.0 + 1)
        assert book.sweepers[0] not in (None, sweeper.node.id)
        assert book.sweepers[0] in book.nodes

    in_firm(story)


class Nobody:
    async def connect(self, lane: int) -> Any:
        raise BrokerAway("nobody listens")


def test_foreign_messages_are_thrown_away() -> None:
    async def story(firm: SimFirm) -> None:
        for body in (b"", b"hello", b"sh\x02\x00" + bytes(16), b"sh\x01\x00" + bytes(15), b"sh\x01\x01"):
            firm.broker.append(0, body)
        await firm.publish(5)
        await firm.house.wait(1)
        assert firm.sent == 5
        assert sum(worker.handoff.takes[0].foreign for worker in firm.workers) == 5
        assert not any(line.unacked for line in firm.broker.lines)

    in_firm(story)


@pytest.mark.parametrize("seed", every(5, range(25)))
def test_whatever_the_broker_does_everything_is_delivered_once(seed: int) -> None:
    async def story(firm: SimFirm) -> None:
        chance = Seed(seed).stream("story")
        for _ in range(30):
            await firm.publish(chance.randint(1, 12))
            await firm.house.wait(chance.choice((0.0, 0.01, 0.5, 3.0)))
            match chance.choice(("cut", "purge", "delete", "away", "nothing", "nothing", "nothing")):
                case "cut":
                    firm.broker.cut()
                case "purge":
                    firm.broker.purge(0)
                case "delete":
                    firm.broker.delete(0)
                case "away":
                    firm.broker.go_away()
                    await firm.house.wait(chance.choice((0.1, 2.0, 12.0)))
                    firm.broker.come_back()
        firm.broker.trouble = Trouble()
        await firm.house.wait(60)
        delivered = await firm.house.states()
        assert set(delivered) == {"delivered"}
        assert firm.sent == len(firm.house.ledger.book.stories)
        assert [len(queue) for queue in firm.broker.queues] == [0, 0]
        assert not any(line.unacked for line in firm.broker.lines)

    in_firm(story, seed=seed, trouble=Trouble(lost=0.2, twice=0.2, swapped=0.2, unconfirmed=0.1))


def test_a_parcel_is_read_as_it_was_written() -> None:
    ids = [bytes([n]) * 16 for n in range(100)]
    assert parcel.decode(parcel.encode_ids(ids)) == ids
    assert parcel.decode(parcel.encode_watermark(1 << 40)) == parcel.Watermark(1 << 40)
    assert parcel.decode(parcel.encode_ids(ids) + bytes(16)) is None
