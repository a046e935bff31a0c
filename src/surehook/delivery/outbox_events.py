"""Publishes rows of an outbox that lies in the ledger's own database: no request and no second copy are between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, Overloaded, Problem
from surehook.core.idempotency import check_event_id
from surehook.core.outbox import OutboxRow, event_of
from surehook.core.outbox_answers import TAKEN, RowAnswer
from surehook.ports.clock import Clock
from surehook.ports.ledger import Taken
from surehook.ports.outbox import NotPublished

# The event loop goes on after judging events for so long.
SLICE_S = 0.002


class TakingEngine(Protocol):
    """The engine, as far as rows need it."""

    @property
    def clock(self) -> Clock: ...
    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]: ...
    def refuses(self, event: EventIn) -> Problem | None: ...
    async def current(self) -> None: ...
    @property
    def retention_ms(self) -> int: ...


class OutboxEvents:
    """`ports.outbox.Publish` on this process's engine."""

    def __init__(self, engine: TakingEngine) -> None:
        self._engine = engine

    async def __call__(self, rows: list[OutboxRow]) -> list[RowAnswer]:
        try:
            return await self._publish([event_of(row) for row in rows])
        except Overloaded as error:
            if error.status != 429:
                raise NotPublished(error.detail) from error
            # Nobody's events were let in, so all of them are of tenants that have their part of the line.
            return [RowAnswer(429, error.code, error.detail, float(error.retry_after_s))] * len(rows)
        except LedgerError as error:
            raise NotPublished(f"the ledger is away: {error}") from error

    async def _publish(self, events: list[EventIn | Problem]) -> list[RowAnswer]:
        judged = await self._judged(events)
        if any(isinstance(each, Problem) for each in judged):
            await self._engine.current()  # memory may be old
            judged = await self._judged(events)
        good = [each for each in judged if not isinstance(each, Problem)]
        answers = iter(
            await self._engine.take(good, [event.idempotency_key for event in good]) if good else ()
        )
        return [_answer(each if isinstance(each, Problem) else next(answers)) for each in judged]

    async def _judged(self, events: list[EventIn | Problem]) -> list[EventIn | Problem]:
        engine, judged = self._engine, list[EventIn | Problem]()
        began = engine.clock.boot()
        for event in events:
            judged.append(event if isinstance(event, Problem) else self._fault(event) or event)
            if engine.clock.boot() - began > SLICE_S:
                await engine.clock.sleep(0)
                began = engine.clock.boot()
        return judged

    def _fault(self, event: EventIn) -> Problem | None:
        engine = self._engine
        if event.id is not None:
            try:
                check_event_id(event.id, now_ms=engine.clock.now(), retention_ms=engine.retention_ms)
            except Problem as problem:
                return problem
        return engine.refuses(event)


def _answer(answer: Taken | Problem) -> RowAnswer:
    if isinstance(answer, Problem):
        return RowAnswer(answer.status, answer.code, answer.detail)
    if answer.problem is None:
        return TAKEN
    return RowAnswer(409, answer.problem, "another event has this id or key, or the ledger cannot store it")
