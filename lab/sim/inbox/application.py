"""The customer's application: its inbox, its handlers and their tempers, in one process.

A handler writes a row of `effects` in the transaction that it is given; what it has to say by its temper it says before or after
that, so that a row that should have been undone would be seen. Tempers live in the world: no rollback takes them back.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from lab.sim.inbox.plan import Plan, Temper
from lab.sim.inbox.store import SimStore
from lab.sim.trace import Trace
from surehook.inbox import AsyncInbox, Ignore, Later, Refuse, sources
from surehook.inbox.event import Event
from surehook.inbox.rules import Rules
from surehook.inbox.sources import Field, Source
from surehook.inbox.workflow import SIGNING, Workflow
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy

SOURCE = "hook"  # the path of the endpoint's URL
UNDO = "undo"  # the name of who undoes, in `effects`
STOP_S = 5.0  # for requests in flight when it is told to stop
_WRITE = "insert into effects (event_id, replay, handler, document, sequence, before, after) values (?, ?, ?, ?, ?, ?, ?)"


class Broken(Exception):
    """Failure of a handler."""


class Tempers:
    """Behaviour of handlers towards each event; `mend` ends all that."""

    def __init__(self, plan: Plan, chance: random.Random) -> None:
        self._chance = chance
        self._left = dict(plan.tempers)
        self._mended = False
        self._undone: set[str] = set()

    def mend(self) -> None:
        self._mended = True

    def meet(self, event: Event, *, last: bool) -> None:
        """Raise what the event has coming. `last`: by the last of its handlers, which comes after what the first wrote."""
        kind, left = self._left.get(event.data["key"], ("fails", 0))
        if kind == "ignores" and last:
            raise Ignore("nothing to do here")
        if self._mended or left == 0 or (kind == "half" and not last):
            return
        if kind in ("fails", "later", "half", "relapses"):
            self._left[event.data["key"]] = (kind, left - 1)
        if kind == "relapses" and left == 2:
            return
        _say(kind)

    def undo(self, event: Event) -> None:
        """Raise what meets who undoes something: often, and once for each event after all is mended too."""
        if self._mended and event.id in self._undone:
            return
        self._undone.add(event.id)
        if self._chance.random() < 0.5:
            raise Broken("undo")

    def early(self) -> bool:
        """True where a handler says what it has to say before it writes."""
        return self._chance.random() < 0.5


def _say(kind: Temper) -> None:
    if kind == "later":
        raise Later("2s")
    if kind == "refuses":
        raise Refuse("not_here")
    raise Broken(kind)


class Application:
    """One process of it. `serve` is the way of a request; the rest is as the world's machines want a server."""

    def __init__(
        self,
        plan: Plan,
        source: Source,
        rules: Rules,
        store: SimStore,
        tempers: Tempers,
        clock: Clock,
        entropy: Entropy,
        trace: Trace,
    ) -> None:
        self.failed = asyncio.Event()
        self.failure: str | None = None
        self.inbox = AsyncInbox(
            store, [source], clock=clock, entropy=entropy, rules=rules, backoff=plan.backoff
        )
        self.open = True
        self._asgi = self.inbox.asgi()
        self._workers = plan.workers
        self._store = store
        self._tempers = tempers
        self._trace = trace
        self._in_flight = 0
        self._define(plan)

    def _define(self, plan: Plan) -> None:
        workflow = Workflow(_table(plan))
        for pattern in ("document.*",) if plan.narrow else ("document.*", "identity.*", "certificate.*"):
            self.inbox.follow(workflow, SOURCE, pattern)
        self.inbox.on(SOURCE, "document.*", version="1", name="signing", final=not plan.undo)(self._signing)
        self.inbox.on_undo(SOURCE, "document.*", name="undo")(self._undo)
        self.inbox.on(SOURCE, "identity.*", version="1", name="identity")(self._identity)
        self.inbox.on(SOURCE, "invoice.*", version="1", name="ledger")(self._ledger)
        self.inbox.on(SOURCE, "invoice.paid", version="1", name="paid")(self._last)
        self.inbox.on(SOURCE, "invoice.due", version="1", name="due", final=False)(self._last)

    # -- handlers ----------------------------------------------------------------------------------------------

    def _signing(self, event: Event, tx: Any) -> dict[str, str]:
        return self._handle("signing", event, tx, last=True)

    def _identity(self, event: Event, tx: Any) -> dict[str, str]:
        return self._handle("identity", event, tx, last=True)

    def _ledger(self, event: Event, tx: Any) -> dict[str, str]:
        return self._handle("ledger", event, tx, last=False)

    def _last(self, event: Event, tx: Any) -> dict[str, str]:
        return self._handle(event.type.partition(".")[2] if event.type else "", event, tx, last=True)

    def _undo(self, event: Event, tx: Any) -> None:
        early = self._tempers.early()
        if early:
            self._tempers.undo(event)
        change, body = event.change, event.body
        assert change is not None
        tx.exec_driver_sql(
            _WRITE,
            (event.id, event.replay, UNDO, body.get("subject"), None, change.before, change.after),
        )
        self._store.moment("handler")
        if not early:
            self._tempers.undo(event)
        self._trace.fired("inbox-undo")

    def _handle(self, name: str, event: Event, tx: Any, *, last: bool) -> dict[str, str]:
        early = self._tempers.early()
        if early:
            self._tempers.meet(event, last=last)
        change, body = event.change, event.body
        moved = (None, None) if change is None else (change.before, change.after)
        row = (event.id, event.replay, name, body.get("subject"), body.get("sequence"), *moved)
        tx.exec_driver_sql(_WRITE, row)
        self._store.moment("handler")
        if not early:
            self._tempers.meet(event, last=last)
        return {"done": name}

    # -- as a server -------------------------------------------------------------------------------------------

    async def serve(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, list[Any], bytes]:
        """The answer to one request: status, headers, body."""
        place, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "POST",
            "path": place,
            "query_string": query.encode(),
            "scheme": "http",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "client": ("192.0.2.1", 1024),
        }
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        self._in_flight += 1
        try:
            await self._asgi(scope, receive, send)
        finally:
            self._in_flight -= 1
        start, *content = said
        return start["status"], start["headers"], b"".join(piece["body"] for piece in content)

    async def start(self) -> None:
        self.inbox.start(self._workers)

    async def stop(self) -> None:
        """As a server of ASGI stops: nothing new, what is in flight is finished, then the lifespan ends."""
        self.open = False
        for _ in range(int(STOP_S / 0.1)):
            if not self._in_flight:
                break
            await asyncio.sleep(0.1)
        await self.inbox.close()


def source_of(secrets: list[str], versions: list[str]) -> Source:
    """The sender, as the receiver's configuration has it."""
    return sources.named(
        "surehook",
        name=SOURCE,
        secret=secrets,
        schema_version=Field("schema_version"),
        schema_versions=versions,
        unknown_schema="park",
    )


def _table(plan: Plan) -> Any:
    from msgspec import structs

    return structs.replace(SIGNING, order=plan.order, rejected=plan.rejected)
