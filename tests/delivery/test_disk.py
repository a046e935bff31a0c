"""A ledger whose disk runs full: nothing is sent below half of its floor, and what answers said is kept within bounds."""

from __future__ import annotations

from lab.ledger.ledger import MemoryLedger
from surehook.core.limits import ANSWER_BYTES_LATER, ANSWERS_WHOLE
from surehook.ports.reading import Room
from tests.delivery.house import House, answers, in_house

FLOOR = 64 << 20
URL = "https://a.example/hook"
OFTEN = {"profile": "standard", "schedule": {"fixed": [1] * 30}, "jitter": None, "breaker": None}


class SmallDisk(MemoryLedger):
    free = FLOOR - 1

    def room(self) -> Room:
        return Room(self.free, FLOOR)


class FullDisk(SmallDisk):
    free = 0


def disk_of(house: House) -> SmallDisk:
    assert isinstance(house.ledger, SmallDisk)
    return house.ledger


def test_below_half_of_the_floor_nothing_is_sent_and_with_room_it_goes_on_by_itself() -> None:
    async def story(house: House) -> None:
        disk = disk_of(house)
        house.receivers.scripts[URL] = answers(500)
        await house.endpoint(URL, policy=OFTEN)
        await house.publish()
        disk.free = FLOOR // 2
        before = len(house.receivers.calls)
        await house.wait(4)
        assert len(house.receivers.calls) > before, "what is under way goes on below the floor"

        disk.free = FLOOR // 2 - 1
        await house.wait(1.5)  # until the next beat
        before = len(house.receivers.calls)
        await house.publish(3)  # the door of this ledger is open all the same
        await house.wait(20)
        assert len(house.receivers.calls) == before
        assert house.engine.ready() is None and house.engine.failure is None

        disk.free = FLOOR // 2
        house.receivers.scripts[URL] = answers(200)
        await house.wait(5)
        assert await house.states() == {"delivered": 4}

    in_house(story, ledger=SmallDisk)


def test_a_start_below_half_of_the_floor_sends_nothing() -> None:
    async def story(house: House) -> None:
        await house.endpoint(URL)
        await house.publish()
        await house.wait(5)
        assert not house.receivers.calls
        disk_of(house).free = FLOOR
        await house.wait(3)
        assert await house.states() == {"delivered": 1}

    in_house(story, ledger=FullDisk)


def test_of_an_answer_that_comes_for_ever_the_first_ones_and_the_last_are_kept_whole() -> None:
    body = b"x" * 16_384

    async def story(house: House) -> None:
        house.receivers.scripts[URL] = answers(500, body=body)
        await house.endpoint(URL, policy=OFTEN)
        await house.publish()
        await house.wait(45)
        (view,) = await house.deliveries()
        story = await house.story(view)
        sizes = [len(entry.body) for entry in story]
        assert view.state == "dead"
        between = [ANSWER_BYTES_LATER] * (31 - ANSWERS_WHOLE - 1)
        assert sizes == [len(body)] * ANSWERS_WHOLE + between + [len(body)]
        assert [entry.truncated for entry in story] == [size < len(body) for size in sizes]

    in_house(story)
