"""Whatever befalls an event loop's batches on SQLite, in whatever order: what was answered is stored, once, as it was sent."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing, suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from tests.budget import examples
from tests.inbox.test_loop_store import Place

IDS, BODIES = 4, 2
MESSAGE = st.tuples(st.integers(0, IDS - 1), st.integers(0, BODIES - 1))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("receive"), MESSAGE),
        st.tuples(st.just("give up"), MESSAGE),  # a client that goes before it has its answer
        st.tuples(
            st.sampled_from(
                [
                    "turns",
                    "another writes",
                    "a worker writes",
                    "both end",
                    "rows fail",
                    "commits fail",
                    "slow",
                    "well",
                ]
            ),
            st.none(),
        ),
    ),
    max_size=30,
)


class Story:
    """One inbox, those that write beside it, and what it was told and said."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.other = sqlite3.connect(place.file, isolation_level=None)
        self.has_turn = False
        self.fails = ""
        self.slow = False
        self.failed = False
        self.asked: list[tuple[tuple[int, int], asyncio.Task[int]]] = []
        engine = place.inbox.store.engine
        event.listen(engine, "before_cursor_execute", self._executing)
        event.listen(engine, "commit", lambda _: self._failing("commits"))

    def _executing(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT"):
            self.place.clock.passes(self.slow)
            self._failing("rows")

    def _failing(self, what: str) -> None:
        if self.fails == what:
            self.failed = True
            raise OperationalError("", None, sqlite3.OperationalError("disk I/O error"))

    def receive(self, message: tuple[int, int]) -> asyncio.Task[int]:
        number, body = message
        return asyncio.ensure_future(self.place.receive(f"evt_{number}", body=body))

    async def play(self, what: str, message: tuple[int, int] | None) -> None:
        turn = self.place.inbox.store.turn
        match what:
            case "receive":
                assert message is not None
                self.asked.append((message, self.receive(message)))
            case "give up":
                assert message is not None
                task = self.receive(message)
                await asyncio.sleep(0)
                task.cancel()
            case "turns":
                for _ in range(5):
                    await asyncio.sleep(0)
            case "another writes":
                with suppress(sqlite3.OperationalError):  # somebody does already, perhaps it
                    self.other.execute("begin immediate")
            case "a worker writes":
                self.has_turn = self.has_turn or turn.acquire(blocking=False)
            case "both end":
                self.end()
            case "slow":
                self.slow = not self.slow
            case _:
                self.fails = what.removesuffix(" fail")

    def end(self) -> None:
        if self.other.in_transaction:
            self.other.execute("rollback")
        if self.has_turn:
            self.place.inbox.store.turn.release()
            self.has_turn = False

    async def close(self) -> None:
        self.end()
        said = [(message, await task) for message, task in self.asked]
        self.end()
        self.fails = ""
        self.place.clock.passes(60)
        again = {
            (number, body): await self.receive((number, body))
            for number in range(IDS)
            for body in range(BODIES)
        }
        for message, status in said:
            assert status in ((200, 409, 503) if self.failed else (200, 409)), (message, status)
            assert status == 503 or again[message] == status, (message, status, again)
        for number in range(IDS):
            assert sorted(again[number, body] for body in range(BODIES)) == [200, 409]
        assert self.place.stored() == IDS


@settings(max_examples=examples(50), deadline=None)
@given(STEPS)
def test_what_was_answered_is_stored_once_as_it_was_sent(
    steps: list[tuple[str, tuple[int, int] | None]],
) -> None:
    async def go(place: Place) -> None:
        story = Story(place)
        with closing(story.other):
            for what, message in steps:
                await story.play(what, message)
            await story.close()

    with tempfile.TemporaryDirectory() as folder:
        place = Place(f"sqlite:///{folder}/inbox.db")
        try:
            asyncio.run(go(place))
        finally:
            place.inbox.close()
