"""A refused request is gone with its answer: nothing of it waits for the collector, which counts objects and not bytes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from surehook.core.errors import CommitUnknown, LedgerFull, LedgerUnavailable, Problem, let_go
from tests.api.test_ingest import SCHEMA, Door
from tests.delivery.house import TENANT, House, in_house

LONG = "z" * 20_000
EVENT = {"tenant": TENANT, "type": "doc.signed", "data": {"pad": LONG}}
MISMATCH = {**EVENT, "data": {"signer": {"email": 5}, "pad": LONG}}
AHEAD = "evt_01m84s5zgzfskbypm6ns134d4y"


def rings_left(call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[list[object]]]:
    """What only the collector finds after some calls; of one's own locals nothing."""

    async def counted() -> list[object]:
        await call()
        await asyncio.sleep(0.1)
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await call()
            await asyncio.sleep(0.1)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            return list(gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()

    return counted


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({**EVENT, "tenant": "nobody"}, "unknown_tenant"),
        ({**EVENT, "x": 1}, "unknown_field"),
        ({**EVENT, "type": 5}, "wrong_type"),
        ({**EVENT, "id": AHEAD}, "event_id_ahead"),
        (MISMATCH, "schema_mismatch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
def test_nothing_of_a_refused_event_is_left(path: str, event: dict[str, Any], code: str) -> None:
    async def story(house: House) -> None:
        door = Door(house)
        await door.register(SCHEMA)
        body = event if path == "/v1/events" else [EVENT, event]

        async def call() -> None:
            _, answer = await door.post(path, body)
            assert (answer if isinstance(answer, dict) else answer[1])["code"] == code

        assert await rings_left(call)() == []

    in_house(story)


@pytest.mark.parametrize("error", [LedgerFull("floor"), LedgerUnavailable("away"), CommitUnknown("cut")])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/batch"])
def test_nothing_is_left_of_an_event_that_the_ledger_refused(path: str, error: Exception) -> None:
    async def story(house: House) -> None:
        door = Door(house)

        def refuse(step: str) -> None:
            raise type(error)(str(error))

        async def call() -> None:
            _, answer = await door.post(path, EVENT if path == "/v1/events" else [EVENT])
            assert "code" in (answer if isinstance(answer, dict) else answer[0])

        house.faults = refuse
        left = await rings_left(call)()
        house.faults = lambda step: None
        assert left == []

    in_house(story, stops=False)


def test_an_error_that_was_let_go_holds_no_frames_of_those_before_it_either() -> None:
    def fail() -> None:
        try:
            raise ValueError("first")
        except ValueError as error:
            raise Problem("second", "…") from error

    with pytest.raises(Problem) as caught:
        fail()
    problem = caught.value
    first = problem.__context__
    let_go(problem)
    assert first is not None
    assert [problem.__traceback__, problem.__context__, problem.__cause__, first.__traceback__] == [None] * 4
