"""Those who publish: they insist on an answer, and say the same thing again when they got none."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from lab.sim import beside, owed
from lab.sim.clock import EPOCH_MS
from lab.sim.loop import Process, ProcessDied
from surehook.core import ids
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerUnavailable, Overloaded, Problem
from surehook.ports.ledger import Taken

if TYPE_CHECKING:
    from lab.sim.node import Machine
    from lab.sim.world import World

PATIENCE_S = 30.0  # until a client hangs up; one in ten hangs up almost at once
LATE = "storage_late"  # with which all of a line may wait for as long
FOR_NOW = (429, 503)  # statuses of events that were refused within a request that was not
TWINS_SHARE = 0.1  # of requests, where there are several nodes
PROMPT = {owed.NEAR: owed.LATE_S, beside.CALM: beside.SLOT_S}  # seconds from commit to arrival, by tenant
TRIES = 40  # of one request; a storm with a server away for long stretches is outlived by most


class Publishers:
    """Publish what the options say. Half of all events carry an idempotency key, some an id of their own; those
    are published again until they are answered. The rest is sent once: nobody could tell a repeat."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.seed.stream("publishers")
        self._twins = world.seed.stream("twins")
        world.checkers.prompt = {} if world.options.broker is not None else PROMPT
        self._open = 0
        self._all_begun = False
        self._answers: dict[str, tuple[bytes, int]] = {}  # by key or id

    @property
    def done(self) -> bool:
        """Everybody has an answer, or has given up."""
        return self._all_begun and self._open == 0

    async def run(self) -> None:
        world = self._world
        for number, (at, tenant, event_type, size) in enumerate(world.options.publishes):
            await asyncio.sleep(max(0.0, world.began + at - world.loop.time()))
            events, keys = self._compose(number, at, tenant, event_type, size)
            for each in (events, keys), *self._repeats(events, keys):
                self._open += 1
                world.loop.spawn(None, self._insist(*each))
        self._all_begun = True

    def _compose(
        self, number: int, at: float, tenant: str, event_type: str, size: int
    ) -> tuple[list[EventIn], list[str | None]]:
        """The events of request `number`, and their keys."""
        events, keys = [], []
        for item in range(size):
            kind = self._chance.choice(("key", "key", "id", "none"))
            if kind == "id" and self._world.options.has("steps", "skew"):
                kind = "key"  # an id is judged by the clock
            event_id = (
                ids.uuid7(EPOCH_MS + int(at * 1000), self._chance.randbytes(10)) if kind == "id" else None
            )
            text = "é" * self._chance.randrange(200) + owed.padding(tenant, number)
            data = {"n": number, "item": item, "text": text}
            events.append(
                EventIn(
                    tenant=tenant,
                    type=event_type,
                    data=json.dumps(data).encode(),
                    id=event_id,
                    subject=f"doc_{number}",
                )
            )
            keys.append(f"key-{number}-{item}" if kind == "key" else None)
        return events, keys

    def _repeats(
        self, events: list[EventIn], keys: list[str | None]
    ) -> list[tuple[list[EventIn], list[str | None]]]:
        """Some publish at the same moment from another process too, which several nodes may then write beside each
        other, and beside claims of what one of them has written. Not where changes are told, which are tried by what is
        published after them and nothing else."""
        options = self._world.options
        if options.nodes == 1 or options.configuring or self._twins.random() >= TWINS_SHARE:
            return []
        repeated = _repeatable(events, keys)
        return [repeated] if repeated[0] else []

    async def _insist(self, events: list[EventIn], keys: list[str | None]) -> None:
        world = self._world
        try:
            for _ in range(TRIES):
                machine = world.a_machine()
                process = machine.process
                patience_s = 0.003 if self._chance.random() < 0.1 else PATIENCE_S
                try:
                    async with asyncio.timeout(patience_s):
                        answers = await self._ask(machine, events, keys)
                except (ProcessDied, Overloaded, LedgerUnavailable, TimeoutError) as error:
                    world.trace.note("refused", f"{keys[0]} {type(error).__name__}")
                    if isinstance(error, TimeoutError) and patience_s == PATIENCE_S:
                        self._gave_up(machine, process, events[0].tenant)
                    events, keys = _repeatable(events, keys)
                    if not events:
                        return
                    await asyncio.sleep(0.1 + 3 * self._chance.random())
                    continue
                refused = self._note(events, keys, answers)
                if refused:  # for now, and not all of them
                    events, keys = [events[at] for at in refused], [keys[at] for at in refused]
                elif self._chance.random() >= 0.1:
                    return
                events, keys = _repeatable(events, keys)  # the answer was lost on its way: say it again
                if not events:
                    return
        finally:
            self._open -= 1

    def _gave_up(self, machine: Machine, process: Process | None, tenant: str) -> None:
        """Somebody was patient, and got no answer: from a process that stood still, or is slow, or has forgotten them.
        The process itself says whether it stood still: worlds freeze machines without that fault, too."""
        world = self._world
        if process is None or process is not machine.process or process.frozen or world.options.has(LATE):
            return
        if world.passing.forgotten(process.name, tenant, runs_since=process.thawed_at):
            world.book.find(f"{process.name} let a publish of {tenant} wait for {PATIENCE_S:.0f} s")

    def _note(
        self, events: list[EventIn], keys: list[str | None], answers: list[Taken | Problem]
    ) -> list[int]:
        """Take the answers down; returns the places of what was refused for now."""
        world = self._world
        refused: list[int] = []
        for at, (event, key, answer) in enumerate(zip(events, keys, answers, strict=True)):
            if isinstance(answer, Problem) and answer.status in FOR_NOW:
                refused.append(at)
                continue
            if isinstance(answer, Problem) or answer.problem is not None:
                world.book.find(f"an honest event was refused: {answer!r}")
                continue
            name = key or (event.id.hex() if event.id is not None else None)
            world.trace.note("accepted", f"{answer.event.hex()} {answer.fan_out} {answer.fresh}")
            world.checkers.promised(answer.event, answer.fan_out)
            if name is not None:
                before = self._answers.setdefault(name, (answer.event, answer.fan_out))
                if before[0] != answer.event and not world.options.has("steps"):
                    world.book.find(f"{name} became two events: {before[0].hex()} and {answer.event.hex()}")
        return refused

    async def _ask(
        self, machine: Machine, events: list[EventIn], keys: list[str | None]
    ) -> list[Taken | Problem]:
        """Publish; whoever publishes a single event has it watched while it waits."""
        process = machine.process
        if len(events) > 1 or process is None:
            return await machine.call(partial(_take, events, keys))  # type: ignore[no-any-return]
        digest = self._world.passing.came(process.name, events[0])
        try:
            return await machine.call(partial(_take, events, keys))  # type: ignore[no-any-return]
        finally:
            self._world.passing.went(process.name, digest)


def _repeatable(events: list[EventIn], keys: list[str | None]) -> tuple[list[EventIn], list[str | None]]:
    """Those that may be said again: they have a key or an id."""
    kept = [at for at, event in enumerate(events) if keys[at] is not None or event.id is not None]
    return [events[at] for at in kept], [keys[at] for at in kept]


async def _take(events: list[EventIn], keys: list[str | None], server: Any) -> list[Taken | Problem]:
    answers: list[Taken | Problem] = await server.take(events, keys)
    return answers
