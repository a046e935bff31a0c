"""No part of an engine stops without a word: loops, lines of group commit, and work that nobody waits for."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from lab.sim.clock import SimClock
from lab.sim.loop import SimLoop, run
from surehook.core.errors import CommitUnknown, LedgerBroken, LedgerUnavailable, NodeEvicted
from surehook.delivery import retry_end
from surehook.delivery.batch import Batches
from surehook.delivery.chores import CHORES_MAX, WAITING_MAX, Chores
from surehook.delivery.loops import AGAIN_FIRST_S, AGAIN_MOST_S, WELL_S, WRITE_FIRST_S, Loops
from surehook.delivery.outage import Outage
from surehook.ports.wakeups import WORK
from tests.delivery.house import House, answers, in_house

A, B = "https://a.example/hook", "https://b.example/hook"


class Said:
    """Facts and failures, as they come."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, dict[str, Any]]] = []
        self.failures: list[BaseException] = []

    def fact(self, name: str, **fields: Any) -> None:
        self.facts.append((name, fields))


def in_loops(story: Callable[[Loops, Said], Awaitable[None]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        said = Said()
        clock = SimClock(loop)
        outage = Outage(clock=clock, telemetry=said)
        node: Any = SimpleNamespace(fail=said.failures.append)
        loops = Loops(clock=clock, telemetry=said, outage=outage, node=node)
        await story(loops, said)
        await loops.stop()

    run(main())


def test_a_loop_that_meets_ledger_trouble_begins_again_and_says_so_once() -> None:
    async def story(loops: Loops, said: Said) -> None:
        begun: list[float] = []

        async def away() -> None:
            begun.append(asyncio.get_running_loop().time())
            raise LedgerUnavailable("gone")

        loops.keep("away", away)
        await asyncio.sleep(60)
        pauses = [later - earlier for earlier, later in itertools.pairwise(begun)]
        assert max(pauses) <= AGAIN_MOST_S + 0.01
        assert len(begun) < 140
        assert said.facts == [("ledger.away", {"asked": "away", "error": "gone"})]
        assert loops.outage.refused == len(begun)
        assert not said.failures

    in_loops(story)


def test_after_a_good_while_the_first_pause_is_short_again() -> None:
    async def story(loops: Loops, said: Said) -> None:
        begun: list[float] = []

        async def sometimes() -> None:
            begun.append(asyncio.get_running_loop().time())
            await asyncio.sleep(WELL_S + 1)
            raise LedgerUnavailable("gone")

        loops.keep("sometimes", sometimes)
        await asyncio.sleep(5 * WELL_S)
        pauses = [later - earlier - WELL_S - 1 for earlier, later in itertools.pairwise(begun)]
        assert pauses == pytest.approx([AGAIN_FIRST_S] * len(pauses))
        assert len(pauses) > 2

    in_loops(story)


@pytest.mark.parametrize(
    ("error", "begins_again", "said_as"),
    [
        (NodeEvicted(b"n" * 16), True, []),
        (LedgerBroken("fsync"), False, []),
        (ValueError("a defect"), False, ["loop.failed"]),
    ],
)
def test_what_a_loop_cannot_mend_reaches_the_engine(
    error: Exception, begins_again: bool, said_as: list[str]
) -> None:
    async def story(loops: Loops, said: Said) -> None:
        runs = 0

        async def part() -> None:
            nonlocal runs
            runs += 1
            raise error

        loops.keep("part", part)
        loops.do("errand", part)
        await asyncio.sleep(1)
        assert said.failures[:2] == [error, error]
        assert (runs > 2) is begins_again
        assert [name for name, _ in said.facts] == said_as * 2
        if said_as:
            assert "in part" in said.facts[0][1]["trace"], "a defect is told with its place"

    in_loops(story)


def test_a_write_is_tried_until_it_is_answered_and_at_once_where_nobody_knows_its_outcome() -> None:
    async def story(loops: Loops, said: Said) -> None:
        answers_in_turn = [LedgerUnavailable("gone")] * 3 + [CommitUnknown("cut"), "written"]
        tried: list[float] = []

        async def write() -> str:
            tried.append(asyncio.get_running_loop().time())
            answer = answers_in_turn.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        assert await loops.persist("record", write) == "written"
        pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
        assert pauses == pytest.approx([WRITE_FIRST_S, 2 * WRITE_FIRST_S, 4 * WRITE_FIRST_S, 0])
        assert loops.outage.refused == 3
        assert not said.failures

    in_loops(story)


@pytest.mark.parametrize("error", [NodeEvicted(b"n" * 16), LedgerBroken("fsync")])
def test_a_write_that_is_refused_for_good_is_told_to_the_node(error: Exception) -> None:
    async def story(loops: Loops, said: Said) -> None:
        async def write() -> None:
            raise error

        with pytest.raises(type(error)):
            await loops.persist("park", write)
        assert said.failures == [error]

    in_loops(story)


def test_a_line_goes_on_after_a_flush_that_raised() -> None:
    async def main() -> None:
        flushed: list[int] = []
        broke: list[tuple[list[int], str]] = []

        async def flush(batch: list[int]) -> None:
            await asyncio.sleep(0.01)
            if 1 in batch:
                raise ValueError("one")
            flushed.extend(batch)

        line: Batches[int] = Batches(
            flush, failed=lambda batch, error: broke.append((batch, str(error))), rows=1
        )
        for item in range(4):
            line.put(item)
        await line.drained()
        assert (flushed, broke) == ([0, 2, 3], [([1], "one")])

    run(main())


def test_a_410_is_recorded_although_the_configuration_cannot_be_read_after_it() -> None:
    """The reload stood inside the recorder's flush: trouble there ended its line, and what waited stayed `sending`."""

    async def story(house: House) -> None:
        gone, there = await house.endpoint(A), await house.endpoint(B)
        house.receivers.scripts[A] = answers(410)
        house.receivers.scripts[B] = answers(200, after=0.03)  # while the reload is under way
        version = house.ledger.version

        async def away() -> int:
            await asyncio.sleep(0.1)
            raise LedgerUnavailable("gone")

        await house.publish()
        setattr(house.ledger, "version", away)  # noqa: B010
        await house.wait(0.5)
        setattr(house.ledger, "version", version)  # noqa: B010
        await house.wait(3)
        assert await house.states() == {"dead": 1, "delivered": 1}
        assert house.engine.directory.version == await version(), "and it is read when it can be"
        assert (house.route(gone).status, house.route(there).status) == ("inactive", "active")

    in_house(story)


def test_a_defect_in_accepting_answers_who_waits_and_fails_the_engine() -> None:
    async def story(house: House) -> None:
        await house.endpoint(A)

        def defect(step: str) -> None:
            if step == "before accept":
                raise ValueError("a defect")

        house.faults = defect
        async with asyncio.timeout(5):
            with pytest.raises(LedgerUnavailable, match="nobody knows"):
                await house.publish()
        assert house.engine.failure == "a defect"
        assert house.engine.failed.is_set()
        assert "loop.failed" in house.facts.names

    in_house(story, stops=False)


@pytest.mark.parametrize("what", ["record", "park"])
def test_a_defect_in_recording_or_parking_fails_the_engine(what: str) -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(A)

        def defect(step: str) -> None:
            if step == f"before {what}":
                raise ValueError("a defect")

        if what == "park":
            house.receivers.scripts[A] = lambda call: None
            await house.publish(100)  # more than its slots: the rest waits in the queue
            house.faults = defect
            await house.set(endpoint, status="paused")
        else:
            house.faults = defect
            await house.publish()
        await house.wait(1)
        assert house.engine.failure == "a defect"

    in_house(story, stops=False)


@pytest.mark.parametrize("where", ["answers", "timers", "hints"])
def test_a_defect_in_a_callback_fails_the_engine(where: str) -> None:
    """They stand outside of the loops. asyncio logged such a defect; slots and memory stayed taken, or no timer was ever
    armed again, while the engine seemed ready."""

    async def story(house: House) -> None:
        await house.endpoint(A, policy={"profile": "standard", "schedule": {"fixed": [5]}, "jitter": None})
        house.receivers.scripts[A] = answers(503)
        engine = house.engine

        def defect(*anything: Any) -> None:
            raise ValueError("a defect")

        if where == "answers":
            setattr(engine.deliver, "_mind_breaker", defect)  # noqa: B010
        if where == "timers":
            await house.publish()
            await house.wait(2)
            setattr(engine.arrivals.timers, "_dispatch", SimpleNamespace(push=defect))  # noqa: B010
        if where == "hints":
            setattr(engine.claim_looks, "woken", defect)  # noqa: B010
            engine.peers.heard(WORK[0])
        await house.publish()
        await house.wait(10)
        assert engine.failure == "a defect"
        assert "loop.failed" in house.facts.names

    in_house(story, stops=False)


# -- work that a management call begins ------------------------------------------------------------------


def test_chores_wait_in_line_and_none_is_dropped() -> None:
    async def main() -> None:
        chores = Chores()
        done: list[int] = []
        at_once = most = 0

        def work(number: int) -> Callable[[], Any]:
            async def go() -> None:
                nonlocal at_once, most
                at_once += 1
                most = max(most, at_once)
                await asyncio.sleep(1)
                at_once -= 1
                done.append(number)

            return go

        for number in range(300):
            assert chores.begin(work(number), name="walk", about=number)
        for number in range(200, 300):  # in line already
            assert chores.begin(work(number), name="walk", about=number)
        await chores.idle()
        assert sorted(done) == list(range(300))
        assert most == CHORES_MAX

    run(main())


def test_more_walks_than_the_line_holds_become_one_over_everything() -> None:
    async def main() -> None:
        chores = Chores()
        manager = Walked()
        for number in range(CHORES_MAX + WAITING_MAX + 50):
            retry_end.begin_ending_retries(manager, chores, endpoint=number.to_bytes(16, "big"))  # type: ignore[arg-type]
        await chores.idle()
        assert len(manager.endpoints) == CHORES_MAX + WAITING_MAX + 1
        assert manager.endpoints.count(None) == 1

    run(main())


class Walked:
    """A manager whose ledger notes which endpoints' retries were asked for, and has none."""

    def __init__(self) -> None:
        self.endpoints: list[bytes | None] = []
        self.ledger = self.directory = self
        self.clock = None  # the ledger is never away

    def may_call_off(self, **of: Any) -> bool:
        return True

    async def deliveries(self, where: Any, *, limit: int, after: bytes | None) -> Any:
        await asyncio.sleep(0.001)
        if where.state == "retrying":  # the first of a walk's two lists
            self.endpoints.append(where.endpoint)
        return Empty()


class Empty:
    data: tuple[()] = ()
    next = None
