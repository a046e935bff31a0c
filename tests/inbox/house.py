"""An inbox in a test's hands: the same words for both kinds, a clock that is moved by hand, messages signed by us."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import text

from surehook.core import effects
from surehook.inbox import AsyncInbox, Inbox, sources
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.worker import Worker
from surehook.verify import sign

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
NOW = 1_764_000_000_000


class Clock:
    """ports.Clock; time passes when a test says so."""

    def __init__(self, at: int = NOW) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def boot(self) -> float:
        return self.at / 1000

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)

    def passes(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


def partner(**choices: Any) -> sources.Source:
    """A source of Standard Webhooks named `partner`, which hears of conflicts."""
    choices.setdefault("on_conflict", "refuse")
    return sources.named("standard", name="partner", secret=SECRET, **choices)


def partner_named(name: str) -> sources.Source:
    """The same, named otherwise."""
    return sources.named("standard", name=name, secret=SECRET)


def message(event_id: str, type: str = "document.signed", **data: Any) -> tuple[str, bytes]:
    return event_id, json.dumps({"type": type, **data}).encode()


def call(
    event_id: str, body: bytes, *, at: int, source: str = "partner", secret: str = SECRET
) -> IncomingRequest:
    headers = [(name, value) for name, value in sign(secret, event_id, body, timestamp=at // 1000).items()]
    return IncomingRequest(
        method="POST",
        source=source,
        query="",
        url=f"http://receiver/{source}",
        headers=headers,
        peer="127.0.0.1",
        body=body,
    )


def known_as_quick(inbox: Any) -> None:
    """As if each handler had been seen at work before: those of several events share a transaction."""
    for handler in inbox.handlers._all:
        inbox.transactions.handler_times.took(handler, 0.0)


class House:
    """One inbox on one database, and a table `effects` that its handlers write to."""

    def __init__(self, kind: str, url: str, runner: asyncio.Runner, **options: Any) -> None:
        self.kind, self.url, self._runner = kind, url, runner
        self.clock = options.pop("clock", None) or Clock()
        given = options.pop("sources", None) or [partner()]
        make: Any = Inbox if kind == "sync" else AsyncInbox
        self.inbox = make(url, given, clock=self.clock, **options)

    def do(self, value: Any) -> Any:
        """The value, waited for where it has to be."""
        if inspect.isawaitable(value):
            return self._runner.run(_wait(value))
        return value

    def turn(self, worker: Worker) -> float | None:
        """One turn of a worker."""
        return (
            effects.run(worker.turn()) if self.kind == "sync" else self.do(effects.run_async(worker.turn()))
        )

    def prepare(self) -> House:
        self.do(self.inbox.create_tables())
        self.sql("create table effects (event_id varchar(255) not null, word varchar(255))")
        return self

    def twin(self, **options: Any) -> House:
        """Another inbox on the same database, as another process has one."""
        return House(self.kind, self.url, self._runner, clock=self.clock, **options)

    def close(self) -> None:
        self.do(self.inbox.close())

    def sql(self, statement: str, **values: Any) -> list[Any]:
        """One statement of a test's own; its rows."""

        def rows(connection: Any) -> list[Any]:
            found = connection.execute(text(statement), values)
            return [tuple(row) for row in found] if found.returns_rows else []

        if self.kind == "sync":
            with self.inbox.store.engine.begin() as connection:
                return rows(connection)

        async def go() -> list[Any]:
            async with self.inbox.store.engine.begin() as connection:
                return await connection.run_sync(rows)

        return self.do(go())

    # -- in ---------------------------------------------------------------------------------------------------

    def receive(self, event_id: str, type: str = "document.signed", /, **data: Any) -> Any:
        """The answer to one message."""
        return self.send(*message(event_id, type, **data))

    def send(self, event_id: str, body: bytes, **choices: Any) -> Any:
        return self.do(self.inbox.receive(call(event_id, body, at=self.clock.at, **choices)))

    def at_once(self, calls: list[IncomingRequest]) -> list[Any]:
        """The answers to several requests that come at the same moment."""
        if self.kind == "async":

            async def go() -> list[Any]:
                return list(await asyncio.gather(*(self.inbox.receive(one) for one in calls)))

            return self.do(go())
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(self.inbox.receive, calls))

    # -- handlers ---------------------------------------------------------------------------------------------

    def on(self, effect: Callable[[Any], Any] | None = None, pattern: str = "*", **choices: Any) -> list[Any]:
        """A handler that writes a row of `effects` and returns what `effect(event)` returns; the events it was given.

        `effect` runs after the row was written, so that what it raises must undo it.
        """
        seen: list[Any] = []

        def blocking(event: Any, tx: Any) -> Any:
            seen.append(event)
            self.write(tx, event.id, event.body.get("word"))
            return effect(event) if effect else None

        async def waiting(event: Any, tx: Any) -> Any:
            seen.append(event)
            await self.write(tx, event.id, event.body.get("word"))
            return effect(event) if effect else None

        choices.setdefault("version", "1")
        define = self.inbox.on(choices.pop("source", "partner"), pattern, **choices)
        define(blocking if self.kind == "sync" else waiting)
        return seen

    def write(self, tx: Any, event_id: str, word: Any = None) -> Any:
        """The row of `effects` that a handler writes; to be waited for where the inbox is."""
        insert = text("insert into effects (event_id, word) values (:id, :word)")
        return tx.execute(insert, {"id": event_id, "word": word})

    def work(self) -> int:
        known_as_quick(self.inbox)
        return self.do(self.inbox.work())

    # -- looks ------------------------------------------------------------------------------------------------

    def effects(self) -> list[str]:
        """The ids of events whose effects stand, sorted."""
        return sorted(row[0] for row in self.sql("select event_id from effects"))

    def events(self, **wanted: Any) -> list[Any]:
        return self.do(self.inbox.events(**wanted))

    def states(self) -> dict[str, str]:
        """The state of every event's newest run."""
        return {one.id: one.state for one in self.events(limit=10_000)}


async def _wait(value: Any) -> Any:
    return await value
