"""Accepting while the configuration changes elsewhere: what was answered there holds here, and nobody is kept waiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from surehook.core import envelope
from surehook.core.errors import CommitUnknown, Problem
from surehook.core.model import EventType, Tenant
from surehook.delivery.catching_up import BEHIND_S
from surehook.delivery.settings import EngineSettings
from surehook.ports.ledger import Incoming, Taken
from tests.delivery.house import TENANT, House, in_house

OTHER = "globex"


def event(type: str = "doc.signed", *, tenant: str = TENANT, data: Any = None) -> envelope.EventIn:
    return envelope.decode_event(json.dumps({"tenant": tenant, "type": type, "data": data or {}}).encode())


async def take(house: House, *events: envelope.EventIn) -> list[str | None]:
    """What each event is answered with: a problem's code, or None where it was taken."""
    answers = await house.engine.take(events, (None,) * len(events))
    return [answer.code if isinstance(answer, Problem) else answer.problem for answer in answers]


def before_each(house: House, name: str, change: Callable[[], None], *, times: int) -> None:
    """Let somebody else change something just before the ledger's call of this name, so many times."""
    left = [times]

    def faults(step: str) -> None:
        if step == f"before {name}" and left[0]:
            left[0] -= 1
            change()

    house.faults = faults


class Watched:
    """The ledger's `accept`, keeping what it was given. `pause_s`: how long a call is on its way there."""

    def __init__(self, house: House, *, pause_s: float = 0) -> None:
        self._pause_s = pause_s
        self.batches: list[list[Incoming]] = []
        self.instants: list[int] = []  # that the calls were given as now
        self._accept = house.ledger.accept
        house.ledger.accept = self.accept  # type: ignore[method-assign]

    async def accept(self, batch: Any, **said: Any) -> Any:
        self.batches.append(list(batch))
        self.instants.append(said["now"])
        if self._pause_s:
            await asyncio.sleep(self._pause_s)
        return await self._accept(batch, **said)


def test_a_type_that_a_tenant_does_not_take_any_more_is_refused_by_a_node_with_old_memory() -> None:
    async def story(house: House) -> None:
        await house.ledger.add_event_type(EventType("known", None, None, "1", None, 0))
        await house.engine.changed()
        await house.ledger.change_tenant(TENANT, {"strict": True})  # by another node: 200
        answers = await take(house, event("known"), event("unknown"), event("known"), event("other"))
        assert answers == [None, "unknown_event_type", None, "unknown_event_type"]

    in_house(story)


def test_a_schema_that_was_set_elsewhere_refuses_what_does_not_fit() -> None:
    async def story(house: House) -> None:
        await house.ledger.add_event_type(EventType("known", None, None, "1", None, 0))
        await house.engine.changed()
        schema = json.dumps({"type": "object", "required": ["n"]}).encode()
        await house.ledger.change_event_type("known", {"schema": schema})
        assert await take(house, event("known"), event("known", data={"n": 1})) == ["schema_mismatch", None]

    in_house(story)


def test_an_event_for_a_tenant_that_was_removed_elsewhere_is_refused_alone() -> None:
    async def story(house: House) -> None:
        await house.ledger.add_tenant(Tenant(OTHER, OTHER, False, 0))
        await house.engine.changed()
        await house.ledger.remove_tenant(OTHER)
        assert await take(house, event(tenant=OTHER), event()) == ["unknown_tenant", None]

    in_house(story)


def test_a_request_that_waited_while_memory_was_renewed_is_judged_by_what_it_is_now() -> None:
    """The batch before it meets the change, so that memory is current when its own transaction asks."""

    async def story(house: House) -> None:
        await house.engine.changed()
        Watched(house, pause_s=0.1)
        first = asyncio.create_task(house.engine.take((event("a"),), (None,)))
        await house.wait(0.05)
        second = asyncio.create_task(house.engine.take((event("b"),), (None,)))
        await house.wait(0)
        await house.ledger.change_tenant(TENANT, {"strict": True})
        answers = await asyncio.gather(first, second)
        assert [getattr(one, "code", None) for (one,) in answers] == ["unknown_event_type"] * 2

    in_house(story, settings=EngineSettings(accept_rows=1))


def test_no_number_of_changes_keeps_an_event_from_being_taken() -> None:
    """A caller who changes something of another tenant before every look of ours."""

    async def story(house: House) -> None:
        await house.ledger.add_tenant(Tenant(OTHER, OTHER, False, 0))
        await house.endpoint()
        note = house.ledger.book.note_change
        before_each(house, "accept", lambda: note("tenant", OTHER.encode()), times=1_000)
        for _ in range(20):
            assert await take(house, event()) == [None]

    in_house(story)


def test_not_even_changes_of_its_own_tenant() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint()
        note = house.ledger.book.note_change
        before_each(house, "accept", lambda: note("endpoint", endpoint), times=1_000)
        for _ in range(20):
            assert await take(house, event()) == [None]
        await house.wait(5)
        assert await house.states() == {"delivered": 20}

    in_house(story)


def test_a_change_of_another_tenant_costs_a_batch_nothing() -> None:
    """It is written at once, and memory is brought up to the change afterwards, though nobody tells of it."""

    async def story(house: House) -> None:
        await house.ledger.add_tenant(Tenant(OTHER, OTHER, False, 0))
        await house.endpoint()
        watched = Watched(house)
        await house.ledger.change_tenant(OTHER, {"strict": True})
        assert await take(house, event()) == [None]
        assert len(watched.batches) == 1
        assert house.engine.directory.version < await house.ledger.version()
        await house.wait(BEHIND_S + 0.01)
        assert house.engine.directory.version == await house.ledger.version()
        assert house.engine.directory.tenants[OTHER].strict

    in_house(story)


def test_where_a_change_concerns_some_of_a_batch_the_others_are_not_made_anew() -> None:
    async def story(house: House) -> None:
        await house.ledger.add_tenant(Tenant(OTHER, OTHER, False, 0))
        await house.endpoint()
        watched = Watched(house)
        await house.ledger.change_tenant(OTHER, {"strict": True})
        answers = await take(house, event(), event(tenant=OTHER), event())
        assert answers == [None, "unknown_event_type", None]
        stale, taken = watched.batches
        ours = [one for one in stale if one.event.tenant == TENANT]
        assert len(ours) == len(taken) == 2
        assert all(one is before for one, before in zip(taken, ours, strict=True))

    in_house(story)


def test_a_description_is_no_change() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint()
        watched = Watched(house)
        for number in range(5):
            await house.ledger.change_endpoint(endpoint, {"description": str(number)}, now=number)
            assert await take(house, event()) == [None]
        assert len(watched.batches) == 5

    in_house(story)


def test_a_batch_whose_commit_is_unknown_is_not_given_up_for_a_change_that_is_not_its_own() -> None:
    async def story(house: House) -> None:
        await house.ledger.add_tenant(Tenant(OTHER, OTHER, False, 0))
        await house.endpoint()
        lost = [True]

        def faults(step: str) -> None:
            if step == "after accept" and lost:
                lost.pop()
                house.ledger.book.note_change("tenant", OTHER.encode())
                raise CommitUnknown("lost")

        house.faults = faults
        (answer,) = await house.engine.take((event(),), (None,))
        assert isinstance(answer, Taken) and answer.fresh
        await house.wait(5)
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_another_try_is_written_as_of_its_own_time() -> None:
    """Rows that were made for an earlier one are late by what lies between, and others are told of what is late."""

    async def story(house: House) -> None:
        await house.ledger.add_tenant(Tenant(OTHER, OTHER, False, 0))
        await house.endpoint()
        watched = Watched(house)
        asks = house.ledger.changes

        async def slow(*asked: Any, **said: Any) -> Any:
            await asyncio.sleep(3)
            return await asks(*asked, **said)

        house.ledger.changes = slow  # type: ignore[method-assign]
        before_each(
            house, "accept", lambda: house.ledger.book.note_change("tenant", TENANT.encode()), times=1
        )
        assert await take(house, event()) == [None]
        first, second = watched.instants
        assert second - first >= 3_000

    in_house(story)
